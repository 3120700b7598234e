//go:build unix

package owneronly_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/livetree/livetree/internal/owneronly"
)

// put makes a file or, with a name that ends in a slash, a directory of a mode.
func put(t *testing.T, root, name string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(root, name)
	var err error
	if name == "" || name[len(name)-1] == '/' {
		err = os.MkdirAll(path, 0o700)
	} else {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err == nil {
		err = os.Chmod(path, mode) // whatever the umask says
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTighten(t *testing.T) {
	root := filepath.Join(t.TempDir(), "data")
	outside := filepath.Join(t.TempDir(), "outside")
	put(t, outside, "/", 0o755)
	for _, dir := range []string{"/", "lost+found/", "store/", "tls/", "secrets/"} {
		put(t, root, dir, 0o755)
	}
	for name, mode := range map[string]os.FileMode{
		"store/000001.log": 0o644, "store/000002.sst": 0o600, "tls/ca.pem": 0o644, "tls/ca.key": 0o640, "secrets/default": 0o604, "LIVETREE": 0o666,
	} {
		put(t, root, name, mode)
	}
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "data-link") // as operators have it
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	want := []string{".", "LIVETREE", "secrets", "secrets/default", "store", "store/000001.log", "tls", "tls/ca.key"}
	if loose, err := owneronly.Loose(link); err != nil || !slices.Equal(loose, want) {
		t.Errorf("Loose = %q, %v, want %q", loose, err, want)
	}
	if loose, err := owneronly.Tighten(link); err != nil || !slices.Equal(loose, want) {
		t.Errorf("Tighten = %q, %v, want %q", loose, err, want)
	}
	if loose, err := owneronly.Loose(link); err != nil || len(loose) > 0 {
		t.Errorf("after Tighten Loose = %q, %v, want none", loose, err)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "tls/ca.pem": 0o644, "tls/ca.key": 0o600, "LIVETREE": 0o600, "store": 0o700, "lost+found": 0o755} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q has the mode %v, %v, want %v", name, info.Mode().Perm(), err, want)
		}
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("a directory behind a link has the mode %v, %v, want it as it was", info.Mode().Perm(), err)
	}
}

func TestLooseOfNothing(t *testing.T) {
	if loose, err := owneronly.Loose(filepath.Join(t.TempDir(), "none")); err == nil || len(loose) > 0 {
		t.Errorf("Loose of nothing = %q, %v, want an error", loose, err)
	}
}
