package owneronly_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/livetree/livetree/internal/owneronly"
)

// TestKeyForAll: a key that every user can read is noticed; one for a group is not, which a container may need.
func TestKeyForAll(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it has no such modes")
	}
	name := filepath.Join(t.TempDir(), "key")
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o440: false, 0o644: true, 0o604: true} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if got := owneronly.IsForAll(name); got != want {
			t.Errorf("a key of mode %o is for all: %v", mode, got)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if owneronly.IsForAll(name) {
		t.Error("a key that is missing is for all")
	}
}
