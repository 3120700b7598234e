//go:build !no_cluster

package etcdlog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
)

// TestWasRemoved: the files of a member that was removed say so, whether it ended in order or not. Those of the others do not, nor do files that cannot be read.
func TestWasRemoved(t *testing.T) {
	t.Parallel()
	c := found(t, 2, nil)
	first, victim := c.lives[0].Member, c.lives[1].Member
	c.until("a record is taken", func(ctx context.Context) error { return appendTo(ctx, first, 0, 10) })
	c.until("a member is removed", func(ctx context.Context) error { return first.Remove(ctx, victim.ID()) })
	c.until("the other goes on", func(ctx context.Context) error { return appendTo(ctx, first, 0, 10) })
	if err := <-victim.Failed(); !errors.Is(err, etcdlog.ErrRemoved) {
		t.Fatalf("the member that was removed ends with %v, want ErrRemoved", err)
	}
	dirs := []string{filepath.Join(c.dir, "0"), filepath.Join(c.dir, "1")}
	killed := filepath.Join(c.dir, "killed")
	if err := os.CopyFS(killed, os.DirFS(dirs[1])); err != nil {
		t.Fatal(err)
	}
	c.stop()
	c.lives = nil
	// What a disk has that was cut off between the two: the log knows of the removal, and the file does not.
	if err := os.Remove(filepath.Join(killed, "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{dirs[0]: false, dirs[1]: true, killed: true, t.TempDir(): false} {
		if got := etcdlog.WasRemoved(dir); got != want {
			t.Errorf("WasRemoved of %s is %v, want %v", filepath.Base(dir), got, want)
		}
	}
}
