//go:build unix

package place_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFileHangs: calls that never return, as on a mount whose server is gone, end with their
// context, also when there are many of them. Opening a pipe hangs like that.
func TestFileHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	p := open(t, dir)
	for range 40 { // more than may hang
		hung(t, func(ctx context.Context) error { return readAll(ctx, p, "pipe") })
	}
	hung(t, func(ctx context.Context) error { return p.Put(ctx, "a", nil, true) })
	hung(t, func(ctx context.Context) error {
		for _, err := range p.List(ctx, "", "") {
			return err
		}
		return nil
	})
	end, err := os.OpenFile(pipe, os.O_RDWR, 0) // it lets them go
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Put(t.Context(), "a", nil, true); err != nil {
		t.Errorf("after they returned: %v", err)
	}
	if err := end.Close(); err != nil {
		t.Error(err)
	}
}
