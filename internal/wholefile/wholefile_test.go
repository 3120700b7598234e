package wholefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/livetree/livetree/internal/wholefile"
)

func content(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWriteReplacesAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	for _, text := range []string{"first", "second, which is longer", ""} {
		if err := wholefile.Write(name, 0o640, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, name); got != text {
			t.Errorf("the file holds %q, want %q", got, text)
		}
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode(); runtime.GOOS != "windows" && mode != 0o640 {
		t.Errorf("the file has the mode %v, want 0640", mode)
	}
}

// TestCreateFollowsNoLink puts a link where the temporary file goes: what it leads
// to must not change.
func TestCreateFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	victim, name := filepath.Join(dir, "victim"), filepath.Join(dir, "a")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, name+".tmp"); err != nil {
		t.Skip(err)
	}
	if err := wholefile.Write(name, 0o600, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, victim); got != "precious" {
		t.Errorf("the file behind the link holds %q", got)
	}
	if got := content(t, name); got != "new" {
		t.Errorf("the file holds %q, want new", got)
	}
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the file is %v, %v; want a plain file", info, err)
	}
}

// TestCreateTakesNoForeignMode leaves a file of another mode in the way, as anybody
// who may write to the directory can.
func TestCreateTakesNoForeignMode(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name+".tmp", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name+".tmp", 0o666); err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(name + ".tmp")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	f, err := wholefile.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("secret"); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the file has the mode %v, %v; want 0600", info.Mode(), err)
	}
	if n, _ := open.Read(make([]byte, 8)); n > 0 {
		t.Error("a file that was opened before shows what is written")
	}
	if err := f.Commit(); err != nil {
		t.Error(err)
	}
}

// TestCommitOfTwo has two write the same file: what takes its place is whole.
func TestCommitOfTwo(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	first, err := wholefile.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	second, err := wholefile.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(); err == nil {
		t.Errorf("the first commits, and puts %q in place", content(t, name))
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f, err := wholefile.Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Discard(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("there is %v, %v; want nothing", files, err)
	}
}

func TestCreateWhereADirectoryIs(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.MkdirAll(filepath.Join(name+".tmp", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Write(name, 0o600, nil); err == nil {
		t.Error("Write replaces a directory that is not empty")
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}
