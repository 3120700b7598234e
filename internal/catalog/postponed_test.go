package catalog_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// leaveCount leaves that a counter grows by 1.
func leaveCount(t *testing.T, d *engine.Database, name string) *engine.Leaving {
	t.Helper()
	n, err := tree.DecodeBytes([]byte(`{".sv":{"increment":1}}`), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := d.NewLeaving()
	request := l.Later(tree.Put(tree.Path{}.Child(name), n))
	request.Who = root
	if _, err := d.Write(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	return l
}

// counters returns what is there when each of n counters is 1.
func counters(n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(`"c%03d":1`, i))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestPostponed: what there was no room for when clients went, or when the server started, is
// written once there is room, and once.
func TestPostponed(t *testing.T) {
	t.Parallel()
	const clients = 300
	full := vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1, UsedBytes: 1<<40 - 1}
	for _, atStart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			disk := vfs.NewCrashableMem()
			c, closeAll := open(t, disk)
			d := create(t, c, "db")
			var leavings []*engine.Leaving
			for i := range clients {
				leavings = append(leavings, leaveCount(t, d, fmt.Sprintf("c%03d", i)))
			}
			if atStart {
				disk = disk.CrashClone(vfs.CrashCloneCfg{})
				disk.TestingSetDiskUsage(full)
				closeAll()
				c, closeAll = open(t, disk)
			}
			defer func() { closeAll() }()
			disk.TestingSetDiskUsage(full)
			time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
			var log bytes.Buffer
			var waiting atomic.Int64
			logger := slog.New(slog.NewTextHandler(&log, nil))
			p := catalog.NewPostponed(logger, &waiting, nil)
			defer p.Close()
			if atStart {
				c.RunLeft(t.Context(), logger, p)
			} else {
				for _, l := range leavings {
					if _, err := l.Run(t.Context()); !engine.IsPostponed(err) {
						t.Fatalf("on a full disk Run = %v, want one that can be postponed", err)
					}
					p.Add(d, l.Connection())
				}
			}
			time.Sleep(time.Minute) //nolint:forbidigo // fake time
			d, err := c.Database("db")
			if err != nil {
				t.Fatal(err)
			}
			if got := waiting.Load(); got != clients || read(t, d) != "null" {
				t.Errorf("%d clients wait, want %d; the data is %s", got, clients, read(t, d))
			}
			disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1 << 39, UsedBytes: 1 << 39})
			time.Sleep(10 * time.Second) //nolint:forbidigo // fake time
			if got, want := read(t, d), counters(clients); got != want || waiting.Load() != 0 {
				t.Errorf("%d clients wait; the data is %.80s…, want %.80s…", waiting.Load(), got, want)
			}
			synctest.Wait()
			if text := log.String(); strings.Count(text, "cannot be written now") != 1 || !strings.Contains(text, "had to wait, is written\" clients=300") {
				t.Errorf("the log says %.2000s", text)
			}
		})
	}
}

// TestPostponedNothing: for a connection that has left nothing, nothing is written, least of all
// what others have left who are still there.
func TestPostponedNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, closeAll := open(t, vfs.NewCrashableMem())
		defer closeAll()
		d := create(t, c, "db")
		other := leaveCount(t, d, "c")
		var waiting atomic.Int64
		p := catalog.NewPostponed(slog.New(slog.DiscardHandler), &waiting, nil)
		defer p.Close()
		p.Add(d, d.NewLeaving().Connection())
		time.Sleep(10 * time.Second) //nolint:forbidigo // fake time
		if got := read(t, d); got != "null" || waiting.Load() != 0 {
			t.Errorf("%d wait; the data is %s, want that nothing was written", waiting.Load(), got)
		}
		if _, err := other.Run(t.Context()); err != nil || read(t, d) != `{"c":1}` {
			t.Errorf("then the other one goes: %v, %s", err, read(t, d))
		}
	})
}

// TestPostponedUnconfirmed: a write that was given up while the disk hung, and was made after all,
// is not made again.
func TestPostponedUnconfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Int64
		c, closeAll := openWith(t, store.Options{FS: vfs.NewMem(), SlowSync: func() { time.Sleep(time.Duration(slow.Swap(0))) }}) //nolint:forbidigo // fake time
		defer closeAll()
		d := create(t, c, "db")
		l := leaveCount(t, d, "c000")
		slow.Store(int64(3 * time.Hour))
		if _, err := l.Run(t.Context()); !engine.IsPostponed(err) {
			t.Fatalf("on a disk that hangs Run = %v, want one that can be postponed", err)
		}
		var waiting atomic.Int64
		p := catalog.NewPostponed(slog.New(slog.DiscardHandler), &waiting, nil)
		defer p.Close()
		p.Add(d, l.Connection())
		time.Sleep(6 * time.Hour) //nolint:forbidigo // fake time
		if got := read(t, d); got != counters(1) || waiting.Load() != 0 {
			t.Errorf("the data is %s, want that it was written once; %d wait", got, waiting.Load())
		}
	})
}

// TestPostponedGivesUp: it ends with the server, while the disk is full, and says nothing more of a
// database that is dropped.
func TestPostponedGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		c, closeAll := open(t, disk)
		defer closeAll()
		d, dropped := create(t, c, "db"), create(t, c, "dropped")
		l, other := leaveCount(t, d, "c000"), leaveCount(t, dropped, "c000")
		disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1, UsedBytes: 1<<40 - 1})
		time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
		var log bytes.Buffer
		var waiting atomic.Int64
		p := catalog.NewPostponed(slog.New(slog.NewTextHandler(&log, nil)), &waiting, nil)
		for _, l := range []*engine.Leaving{l, other} {
			if _, err := l.Run(t.Context()); err == nil {
				t.Fatal("Run on a full disk = nil")
			}
		}
		p.Add(dropped, other.Connection())
		p.Add(d, l.Connection())
		if err := c.Drop("dropped"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // fake time
		if got := waiting.Load(); got != 1 {
			t.Errorf("%d wait, want 1: the other's database is gone", got)
		}
		p.Close()
		p.Add(d, l.Connection())
		synctest.Wait()
		if strings.Contains(log.String(), "ERROR") {
			t.Errorf("the log says %s", &log)
		}
	})
}
