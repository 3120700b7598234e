package wholefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/wholefile"
)

// made makes a directory with two files, of which the second says that it is whole.
func made(t *testing.T, dir string) string {
	t.Helper()
	dir = filepath.Join(dir, "made")
	err := os.Mkdir(dir, 0o700)
	for _, name := range []string{"a", "whole"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// expectPlace finds a place as it should be, and puts a directory there.
func expectPlace(t *testing.T, path string, filled bool) {
	t.Helper()
	p, err := wholefile.NewPlace(path, "made")
	if err != nil || p.Filled != filled {
		t.Fatalf("%+v, %v; want it filled: %t", p, err, filled)
	}
	beside := filepath.Dir(path)
	if filled {
		beside = path
	}
	dir := made(t, beside)
	if again, err := wholefile.NewPlace(path, "made"); err != nil || again != p {
		t.Errorf("with what was begun it is %+v, %v", again, err)
	}
	if err := p.Put(dir, "whole"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "whole"} {
		if text, err := os.ReadFile(filepath.Join(path, name)); err != nil || string(text) != name {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was made is still beside it: %v", err)
	}
	if _, err := wholefile.NewPlace(path, "made"); !errors.Is(err, wholefile.ErrNotEmpty) {
		t.Errorf("a place that is taken: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	none, empty, root := filepath.Join(t.TempDir(), "x"), filepath.Join(t.TempDir(), "x"), filepath.Join(t.TempDir(), "x")
	if err := errors.Join(os.Mkdir(empty, 0o700), os.MkdirAll(filepath.Join(root, "lost+found"), 0o700)); err != nil {
		t.Fatal(err)
	}
	expectPlace(t, none, false)
	expectPlace(t, empty, false)
	expectPlace(t, root, true)
}

// TestPlaceIsTaken: what somebody has put there meanwhile stays.
func TestPlaceIsTaken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.MkdirAll(filepath.Join(path, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := wholefile.NewPlace(path, "made")
	if err != nil {
		t.Fatal(err)
	}
	dir := made(t, path)
	if err := os.WriteFile(filepath.Join(path, "whole"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Put(dir, "whole"); !errors.Is(err, wholefile.ErrNotEmpty) {
		t.Errorf("Put = %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(path, "whole")); err != nil || len(text) > 0 {
		t.Errorf("it is %q now, %v", text, err)
	}
}

// TestPlaceOfAFile: neither a file nor what would be below one is a place, and the error names the path.
func TestPlaceOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if p, err := wholefile.NewPlace(path, "made"); err == nil || !strings.HasPrefix(err.Error(), path+": it is a file, or below one") {
			t.Errorf("NewPlace(%s) = %+v, %v", path, p, err)
		}
	}
}

// TestPlaceOfALink: a link says on which disk a directory is to be. It stays, and one that leads nowhere is refused.
func TestPlaceOfALink(t *testing.T) {
	t.Parallel()
	there, link := filepath.Join(t.TempDir(), "there"), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(there, link); err != nil {
		t.Fatal(err)
	}
	if p, err := wholefile.NewPlace(link, "made"); err == nil || !strings.Contains(err.Error(), link+": it is a link that leads nowhere") {
		t.Errorf("a link that leads nowhere: %+v, %v", p, err)
	}
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := wholefile.NewPlace(link, "made")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Put(made(t, filepath.Dir(p.Path)), "whole"); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != there {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if _, err := os.Stat(filepath.Join(there, "whole")); err != nil {
		t.Error(err)
	}
}
