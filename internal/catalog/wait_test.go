package catalog_test

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// A hangingFS is a file system whose calls hang while the test says so.
type hangingFS struct {
	vfs.FS
	syncs, reads hang
}

// A hang holds one call up. Those after it go through.
type hang struct {
	until   atomic.Pointer[chan struct{}]
	hanging atomic.Bool
}

// begin has the next call hang until the returned function is called.
func (h *hang) begin() (end func()) {
	until := make(chan struct{})
	h.until.Store(&until)
	return func() { close(until) }
}

func (h *hang) wait() {
	if until := h.until.Swap(nil); until != nil {
		h.hanging.Store(true)
		<-*until
		h.hanging.Store(false)
	}
}

func (fs *hangingFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &hangingFile{f, fs}, nil
}

func (fs *hangingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.file(fs.FS.Create(name, category))
}

func (fs *hangingFS) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.file(fs.FS.ReuseForWrite(old, name, category))
}

func (fs *hangingFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return fs.file(fs.FS.Open(name, opts...))
}

type hangingFile struct {
	vfs.File
	fs *hangingFS
}

func (f *hangingFile) Sync() error {
	f.fs.syncs.wait()
	return f.File.Sync()
}

func (f *hangingFile) SyncData() error {
	f.fs.syncs.wait()
	return f.File.SyncData()
}

// ReadAt hangs when a database is opened, not when Pebble reads for itself.
func (f *hangingFile) ReadAt(p []byte, at int64) (int, error) {
	if bytes.Contains(debug.Stack(), []byte("engine.Open(")) {
		f.fs.reads.wait()
	}
	return f.File.ReadAt(p, at)
}

// longRules returns rules that do not fit into a small cache.
func longRules() string {
	noise := make([]byte, 100<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	return `{"rules":{".read":true}} // ` + hex.EncodeToString(noise)
}

// TestOtherDatabasesGoOn: what takes long for one database holds up no request for another.
func TestOtherDatabasesGoOn(t *testing.T) {
	for _, c := range []struct {
		what string
		hang func(*hangingFS) *hang
		do   func(*catalog.Catalog) error
	}{
		{"made", func(fs *hangingFS) *hang { return &fs.syncs }, func(c *catalog.Catalog) error {
			_, err := c.Create("new")
			return err
		}},
		{"dropped", func(fs *hangingFS) *hang { return &fs.syncs }, func(c *catalog.Catalog) error { return c.Drop("old") }},
		{"opened", func(fs *hangingFS) *hang { return &fs.reads }, func(c *catalog.Catalog) error {
			_, err := c.Database("old")
			return err
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			fs := &hangingFS{FS: vfs.NewMem()}
			databases, closeAll := open(t, fs)
			old, err := databases.Create("old")
			if err == nil {
				_, err = old.SetRules(t.Context(), longRules())
			}
			if err != nil {
				t.Fatal(err)
			}
			closeAll()
			databases, closeAll = openWith(t, store.Options{FS: fs, CacheBytes: 1, MemTableBytes: 32 << 10})
			defer closeAll()
			two, err := databases.Create("two")
			if err == nil {
				err = write(two, 2)
			}
			if err != nil {
				t.Fatal(err)
			}
			hang := c.hang(fs)
			end := sync.OnceFunc(hang.begin())
			defer end()
			done := make(chan error, 1)
			go func() { done <- c.do(databases) }()
			for !hang.hanging.Load() {
				if len(done) > 0 {
					t.Fatalf("a database was %s without the disk: %v", c.what, <-done)
				}
				runtime.Gosched()
			}
			d, err := databases.Database("two")
			if err != nil {
				t.Errorf("Database(two) while another is %s: %v", c.what, err)
			} else if got := read(t, d); got != "2" {
				t.Errorf("while another is %s, two holds %s, want 2", c.what, got)
			}
			databases.Each(func(string, *engine.Database) bool { return true })
			if len(done) > 0 {
				t.Errorf("a database was %s before the disk went on", c.what)
			}
			end()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNameIsHeld: while a database is dropped, requests go on until it is, and what makes
// another of its name waits. Close waits for both.
func TestNameIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &hangingFS{FS: vfs.NewMem()}
		c, closeAll := open(t, fs)
		old, err := c.Create("one")
		if err == nil {
			err = write(old, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		end := fs.syncs.begin()
		dropped, created, closed := make(chan error, 1), make(chan error, 1), make(chan struct{})
		go func() { dropped <- c.Drop("one") }()
		synctest.Wait()
		var again *engine.Database
		go func() {
			var err error
			again, err = c.Create("one")
			created <- err
		}()
		synctest.Wait()
		if d, err := c.Database("one"); d != old || err != nil || read(t, d) != "1" {
			t.Errorf("while it is dropped, Database gives %p, %v, want the old one %p with its data", d, err, old)
		}
		refused := make(chan error, 1)
		go func() { refused <- write(old, 2) }()
		synctest.Wait()
		if len(dropped)+len(created)+len(refused) != 0 {
			t.Error("something was answered before the drop was durable")
		}
		end()
		if err := <-dropped; err != nil {
			t.Error(err)
		}
		if err := <-created; err != nil {
			t.Fatal(err)
		}
		if err := <-refused; fault.KindOf(err) != fault.NotFound {
			t.Errorf("a write after the drop: %v, want not found", err)
		}
		if got := read(t, again); got != "null" {
			t.Errorf("a new database of an old name holds %s, want null", got)
		}

		end = fs.syncs.begin()
		go func() { _, err := c.Create("two"); created <- err }()
		synctest.Wait()
		go func() {
			c.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close did not wait for a database that is being made")
		default:
		}
		if _, err := c.Create("three"); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("Create while the catalog is closed: %v, want unavailable", err)
		}
		end()
		<-closed
		if err := <-created; err != nil {
			t.Error(err)
		}
		closeAll()
	})
}
