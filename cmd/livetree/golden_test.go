package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/server"
	"github.com/livetree/livetree/internal/store"
)

var goldenWrite = flag.Bool("golden.write", false, "write the golden backup and the golden archive of the present versions; only before those are released")

// goldenDir holds a backup and an archive of each version that was ever released, with what
// they hold as JSON. Data directories are in the package store, which also knows when a version rises.
const goldenDir = "testdata/golden"

// goldenTree is what they hold, and goldenShown how it is read.
const goldenTree = `{"list":["a","b"],"people":{"ann":{".priority":1,"age":7,"name":"Ann"},"ben":{"age":8,"name":"Ben"}},"text":"ß 😀"}`

var goldenShown = strings.Replace(goldenTree, `".priority":1,`, "", 1)

// TestGoldenDataDirectories: the command opens a data directory of each version in place, checks it, serves it, writes
// to it, and does so again.
func TestGoldenDataDirectories(t *testing.T) {
	t.Parallel()
	versions, err := filepath.Glob(filepath.FromSlash("../../internal/store/testdata/golden/v*/data"))
	if err != nil || len(versions) < store.FormatVersion {
		t.Fatalf("%d golden directories, %v", len(versions), err)
	}
	for _, version := range versions {
		t.Run(filepath.Base(filepath.Dir(version)), func(t *testing.T) {
			t.Parallel()
			data := copied(t, version)
			if code, out, errs := command("check", data); code != 0 {
				t.Errorf("check: exit %d, %s%s", code, out, errs)
			}
			want := `"replayed"`
			if !strings.Contains(version, "v1") && filepath.Base(filepath.Dir(version)) != "v2" {
				want = "null" // a connection has left a write there, which the start makes
			}
			serveGolden(t, data, "main", "battery staple", "/tail/in/the/log", want)
		})
	}
}

// serveGolden serves a data directory twice, reads something, and writes to it.
func serveGolden(t *testing.T, data, database, secret, path, want string) {
	t.Helper()
	for i := range 2 {
		s, err := startInProcess(data, func(c *server.Config) { c.DefaultDatabase, c.Secret = database, "" })
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			args []string
			want string
		}{
			{[]string{"get", path, "--json"}, want + "\n"},
			{[]string{"get", "/written/number"}, map[int]string{0: "null\n", 1: "0\n"}[i]},
			{[]string{"set", "/written/number", fmt.Sprint(i)}, "set /written/number\n"},
		} {
			code, out, errs := command(append(step.args, "--data", data, "--db", database, "--auth", secret)...)
			if code != 0 || out != step.want {
				t.Errorf("time %d: livetree %q: exit %d, %q, %s; want %q", i+1, step.args, code, out, errs, step.want)
			}
		}
		s.stop()
		if code, out, errs := command("check", data); code != 0 {
			t.Errorf("check after it was served: exit %d, %s%s", code, out, errs)
		}
	}
}

// TestGoldenBackupsAndArchives: those of each version are verified, restored and served.
func TestGoldenBackupsAndArchives(t *testing.T) {
	if *goldenWrite {
		writeGolden(t)
	}
	t.Parallel()
	for kind, verify := range map[string][]string{"backup": {"backup", "verify"}, "archive": {"archive", "verify"}} {
		versions, err := filepath.Glob(filepath.Join(goldenDir, kind+"-v*"))
		if err != nil || len(versions) == 0 {
			t.Fatalf("%d golden %ss, %v", len(versions), kind, err)
		}
		for _, version := range versions {
			t.Run(filepath.Base(version), func(t *testing.T) {
				t.Parallel()
				from, to := copied(t, version), filepath.Join(t.TempDir(), "restored")
				before := files(t, from)
				if kind == "archive" {
					from = "file://" + from
				}
				if code, out, errs := command(append(verify, from)...); code != 0 {
					t.Errorf("verify: exit %d, %s%s", code, out, errs)
				}
				if code, out, errs := command("restore", from, to); code != 0 {
					t.Fatalf("restore: exit %d, %s%s", code, out, errs)
				}
				if after := files(t, strings.TrimPrefix(from, "file://")); !maps.Equal(before, after) {
					t.Error("reading it has changed it")
				}
				secret := scriptSecret
				if kind == "archive" { // which holds none
					secret = ""
				}
				serveGolden(t, to, "default", secret, "/golden", goldenShown)
				wantPriority(t, to, secret)
			})
		}
	}
}

// wantPriority wants the priority that is not shown otherwise.
func wantPriority(t *testing.T, data, secret string) {
	t.Helper()
	s, err := startInProcess(data)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if code, out, errs := command("get", "/golden/people/ann/.priority", "--data", data, "--auth", secret); code != 0 || out != "1\n" {
		t.Errorf("the priority is %q, exit %d, %s", out, code, errs)
	}
}

// writeGolden makes a backup and an archive of the present versions.
func writeGolden(t *testing.T) {
	dir := t.TempDir()
	data, archive := filepath.Join(dir, "data"), filepath.Join(dir, "archive")
	if err := os.Mkdir(archive, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := startInProcess(data, func(c *server.Config) {
		c.Archive = server.Archive{URL: "file://" + archive, Keep: time.Hour, Spool: 1 << 30}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"set", "/golden", goldenTree}, {"set", "/golden/people/eve", `{"age":9}`}, {"remove", "/golden/people/eve"},
		{"rules", "set", roomsJSON},
	} {
		if code, _, errs := command(append(args, "--data", data, "--auth", scriptSecret)...); code != 0 {
			t.Fatalf("livetree %q: %s", args, errs)
		}
	}
	s.stop()
	for _, private := range []string{"tls", "secrets", "admin"} {
		if err := os.RemoveAll(filepath.Join(data, private)); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := store.Open(data, store.Options{BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Take(t.Context(), opened, data, filepath.Join(dir, "backup"), backup.Options{Version: "v1.0.0"}); err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"backup", "archive"} {
		to := filepath.Join(goldenDir, kind+"-v1")
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(filepath.Join(dir, kind))); err != nil {
			t.Fatal(err)
		}
	}
}

// copied returns a copy of a directory.
func copied(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// files returns the content of all files below a directory by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestNewerVersionsAreRefused: what a later version has written is refused with one line, and stays as it is.
func TestNewerVersionsAreRefused(t *testing.T) {
	t.Parallel()
	golden := filepath.FromSlash("../../internal/store/testdata/golden")
	data := copied(t, filepath.Join(golden, fmt.Sprintf("v%d", store.FormatVersion), "data"))
	write(t, filepath.Join(data, "LIVETREE"), fmt.Sprintf("livetree data directory, format %d\n", store.FormatVersion+1))
	taken := copied(t, filepath.Join(goldenDir, "backup-v1"))
	manifest := filepath.Join(taken, "manifest.json")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(`"format": 1`), []byte(`"format": 2`), 1)
	write(t, manifest, string(text))
	write(t, manifest+".sha256", fmt.Sprintf("%x  manifest.json\n", sha256.Sum256(text)))
	kept := copied(t, filepath.Join(goldenDir, "archive-v1"))
	raiseSegment(t, kept)
	for _, test := range []struct {
		args []string
		dir  string
		want string
	}{
		{serving(data), data, "written by a newer Livetree"},
		{[]string{"check", data}, data, "written by a newer Livetree"},
		{[]string{"accept-loss", data, filepath.Join(t.TempDir(), "rescued")}, data, "written by a newer Livetree"},
		{[]string{"backup", "verify", taken}, taken, "use a newer Livetree"},
		{[]string{"restore", taken, filepath.Join(t.TempDir(), "restored")}, taken, "use a newer Livetree"},
		{[]string{"archive", "verify", "file://" + kept}, kept, "from a newer version of Livetree"},
		{[]string{"restore", "file://" + kept, filepath.Join(t.TempDir(), "restored")}, kept, "from a newer version of Livetree"},
	} {
		before := files(t, test.dir)
		code, out, errs := command(test.args...)
		if code != 1 || out != "" || !oneLine(errs) || !strings.Contains(errs, test.want) {
			t.Errorf("livetree %q: exit %d, %q, %q; want exit 1 and one line with %q", test.args, code, out, errs, test.want)
		}
		after := files(t, test.dir)
		delete(after, filepath.Join(data, "LOCK")) // which is empty
		delete(before, filepath.Join(data, "LOCK"))
		if !maps.Equal(before, after) {
			t.Errorf("livetree %q has changed files: there were %d, and are %d", test.args, len(before), len(after))
		}
	}
}

// raiseSegment has the first segment of an archive be of a later version.
func raiseSegment(t *testing.T, archive string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(archive, "lines", "*", "segments", "*1"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	content, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	content[5]++
	body := content[:len(content)-sha256.Size]
	sum := sha256.Sum256(body)
	write(t, names[0], string(append(body, sum[:]...)))
}
