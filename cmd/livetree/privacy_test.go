//go:build unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/livetree/livetree/internal/owneronly"
)

// TestDataIsPrivate: a data directory that others could read, from an older version
// or made by an operator, is for its owner alone after a start, whatever is made
// in it meanwhile. Before, doctor and check say so.
func TestDataIsPrivate(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	loosen(t, data)
	serve := func() string {
		t.Helper()
		p := start(t, serving(data)...)
		p.expect("PUT", "/a.json?auth="+strings.TrimSpace(read(t, filepath.Join(data, "secrets", "default"))), `{"b":1}`, `{"b":1}`)
		if code := p.stop(syscall.SIGTERM); code != 0 {
			t.Fatalf("exit %d, %s", code, p.stderr.String())
		}
		if loose, err := owneronly.Loose(data); err != nil || len(loose) > 0 {
			t.Errorf("others may read %q, %v", loose, err)
		}
		return p.stderr.String()
	}
	const line = "others could read the data directory"
	for range 2 {
		if log := serve(); strings.Contains(log, line) { // it was empty, then private
			t.Errorf("the log says %q:\n%s", line, log)
		}
	}
	loosen(t, data)
	if code, out, errs := command("check", data); code != 0 || !strings.Contains(out, "others on this machine may read it") {
		t.Errorf("check: exit %d, %s%s; want a note that others may read it", code, out, errs)
	}
	if _, out, _ := command("doctor", "--data", data, "--url", "https://127.0.0.1:1"); !strings.Contains(out, "failed   privacy      others may read "+data) {
		t.Errorf("doctor says\n%s", out)
	}
	if log := serve(); strings.Count(log, line) != 1 {
		t.Errorf("the log of the start of a directory that was loosened does not say %q once:\n%s", line, log)
	}
}

// TestForeignStaysAsItIs: a directory of somebody else, which is named by mistake, is refused with all its modes.
func TestForeignStaysAsItIs(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	loosen(t, data)
	if code, _, errs := command(serving(data)...); code != 1 || !strings.Contains(errs, "it holds files but no LIVETREE") {
		t.Errorf("serve: exit %d, %s; want it refused", code, errs)
	}
	if loose, err := owneronly.Loose(data); err != nil || len(loose) != 2 {
		t.Errorf("others may read %q, %v; want the directory and the file in it, as before", loose, err)
	}
}

// loosen lets everybody read a directory, as if it was made under an ordinary umask.
func loosen(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
