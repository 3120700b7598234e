package wholefile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestMountedPlace: the root of a file system cannot be replaced. It needs the right to mount one.
func TestMountedPlace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("livetree-test", path, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skipf("the root of a file system is NOT tested: a tmpfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	expectPlace(t, path, true)
}
