package engine_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// spoil has a store's row of a path be one that cannot be read.
func spoil(t *testing.T, fs vfs.FS, id store.ID, at string) {
	t.Helper()
	raw, err := pebble.Open("data/"+layout.PebbleDir, &pebble.Options{
		FS: fs, Levels: [7]pebble.LevelOptions{{FilterPolicy: bloom.FilterPolicy(10)}}, FormatMajorVersion: pebble.FormatNewest, ErrorIfNotExists: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Set(layout.DataKey(nil, id, path(t, at)), []byte("\x00{bad"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedNoticePublishesNothing: a write whose notice for a hook cannot be worked out, because a row is damaged, is refused. Nothing is
// published of it, although it is answered together with what others commit.
func TestRefusedNoticePublishesNothing(t *testing.T) {
	fs := vfs.NewMem()
	f := open(t, store.Options{FS: fs})
	pattern, err := hook.ParsePattern("/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.AddHook(t.Context(), f.Database, hook.Hook{Name: "h", Pattern: pattern, URL: "https://example.com/"}); err != nil {
		t.Fatal(err)
	}
	put := func(d *engine.Database, at string, value string) error {
		n, err := tree.Decode(strings.NewReader(value), tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Write(context.Background(), engine.Request{Write: tree.Put(path(t, at), n), Who: admin})
		return err
	}
	if err := put(f.Database, "/a", `{"x":"`+strings.Repeat("x", 3000)+`","y":"`+strings.Repeat("y", 3000)+`"}`); err != nil {
		t.Fatal(err)
	}
	id := engine.IDOf(f.Database)
	f.Database.Close()
	if err := f.Store.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, fs, id, "/a/x")

	g := open(t, store.Options{FS: fs, SlowSync: func() { time.Sleep(2 * time.Millisecond) }}) //nolint:forbidigo // a slow disk
	number, err := g.Store.Create("other")
	if err != nil {
		t.Fatal(err)
	}
	other, err := enginetest.OpenDatabase(g.Store, number, engine.Options{Clock: g.Clock})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	stop := make(chan struct{})
	var all sync.WaitGroup
	var commits atomic.Int64
	for range 8 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := put(other, "/n", "1"); err != nil {
					t.Error(err)
					return
				}
				commits.Add(1)
			}
		})
	}
	for commits.Load() < 100 && !t.Failed() {
		if err := put(g.Database, "/a/y", "1"); err == nil {
			t.Error("a write is made whose notice cannot be")
		}
	}
	close(stop)
	all.Wait()
	view := g.View()
	defer view.Close()
	stored, err := view.Tree().Position()
	if published := g.Database.Published().Position; err != nil || published != stored {
		t.Errorf("position %d is published, and the newest commit is %d, %v", published, stored, err)
	}
}
