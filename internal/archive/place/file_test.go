package place_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
)

func open(t *testing.T, dir string) *place.File {
	t.Helper()
	p, err := place.OpenFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFile(t *testing.T) {
	t.Parallel()
	placetest.Run(t, open(t, t.TempDir()))
}

func TestMemory(t *testing.T) {
	t.Parallel()
	placetest.Run(t, placetest.NewMemory())
}

func TestFileIsOfADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"relative", filepath.Join(dir, "missing"), file} {
		if _, err := place.OpenFile(name); err == nil {
			t.Errorf("OpenFile(%q) worked", name)
		}
	}
	if got, want := open(t, dir).String(), "file://"+dir; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

// TestFileIsNotMounted: a directory that is empty because its disk is gone must not be
// filled, and must not look like an archive without objects.
func TestFileIsNotMounted(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{"empty", "removed"} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "mount")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		p := open(t, dir)
		if err := p.Put(t.Context(), "a/b", []byte("1"), true); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir, filepath.Join(parent, "elsewhere")); err != nil {
			t.Fatal(err)
		}
		if gone == "empty" {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Get(t.Context(), "a/b"); err == nil || errors.Is(err, place.ErrNotFound) {
			t.Errorf("%s: Get = %v, want an error that is not ErrNotFound", gone, err)
		}
		if err := p.Put(t.Context(), "a/b", []byte("2"), true); err == nil || errors.Is(err, place.ErrExists) {
			t.Errorf("%s: Put = %v, want an error", gone, err)
		}
		for _, err := range p.List(t.Context(), "", "") {
			if err == nil {
				t.Errorf("%s: List found something", gone)
			}
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: %v was written", gone, left)
		}
	}
}

// TestFileSweepsWhatWasLeft: a process that was killed leaves a file that has no name yet.
func TestFileSweepsWhatWasLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unfinished := filepath.Join(dir, ".unfinished")
	if err := os.Mkdir(unfinished, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": time.Hour} {
		file := filepath.Join(unfinished, name)
		if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		made := time.Now().Add(-age)
		if err := os.Chtimes(file, made, made); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t, dir)
	if err := p.Put(t.Context(), "a", nil, true); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(unfinished)
	if err != nil || len(left) != 1 || left[0].Name() != "young" {
		t.Errorf("left are %v, %v, want only what is young", left, err)
	}
	for o := range p.List(t.Context(), "", "") {
		if o.Name != "a" {
			t.Errorf("%s is listed", o.Name)
		}
	}
}
