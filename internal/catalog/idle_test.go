package catalog_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

var idleDatabases = flag.Int("catalog.databases", 10_000, "how many databases TestIdleDatabasesCostLittle opens")

const (
	// maxOpened and maxWritten are how many bytes a database may take that was opened, and
	// how many more after it was written to and its writer has ended.
	maxOpened  = 1 << 10
	maxWritten = 4 << 10
	// idleWrites is how many writes a database is sent.
	idleWrites = 20
)

// part returns text as the end of a request: what keeps it keeps all of the request.
func part(text string) string {
	head := strings.Repeat("x", 100<<10) + text
	return head[len(head)-len(text):]
}

// TestIdleDatabasesCostLittle opens many databases: each takes some memory and no
// goroutine, also after it was written to.
func TestIdleDatabasesCostLittle(t *testing.T) {
	count := *idleDatabases
	if testing.Short() {
		count = min(count, 2000)
	}
	fs := vfs.NewMem()
	c, closeAll := open(t, fs)
	for i := range count {
		if _, err := c.Create(idleName(i)); err != nil {
			t.Fatal(err)
		}
	}
	closeAll()

	// The cache of rows is one for all databases, and has a bound of its own.
	c, closeAll = openWith(t, store.Options{FS: fs, RowBytes: -1})
	defer closeAll()
	s := &idleStand{t: t, fs: fs, catalog: c}
	opened, most := int64(maxOpened), int64(maxWritten)
	if raceEnabled {
		opened += opened / 8 // 1,041 bytes were seen
		most *= 8            // about 15 KiB were seen with the race detector; the cause is not known
	}
	s.use("opened", count, opened, func(*engine.Database) error { return nil })
	s.use("written to", count/20, most, writeOften)
}

func idleName(i int) string { return fmt.Sprintf("db-%06d", i) }

// writeOften makes writes of each kind that a client can ask for.
func writeOften(d *engine.Database) error {
	for i := range idleWrites {
		p, err := tree.ParsePath(part(fmt.Sprintf("rooms/room-%d/members", i)))
		if err != nil {
			return err
		}
		req := engine.Request{Write: tree.Put(p, tree.LeafNode(tree.IntegerLeaf(1))), Who: auth.Identity{Admin: true}}
		if i%4 == 1 {
			req.Push = true
		}
		if i%4 == 2 {
			req.Write = tree.Write{At: p, Patch: true, Assignments: []tree.Assignment{{Path: p, Node: tree.LeafNode(tree.IntegerLeaf(2))}}}
		}
		if _, err := d.Write(context.Background(), req); err != nil {
			return err
		}
	}
	return nil
}

type idleStand struct {
	t       *testing.T
	fs      vfs.FS
	catalog *catalog.Catalog
}

// use does something with many databases, and holds what each of them takes then to a bound.
func (s *idleStand) use(what string, count int, maxBytes int64, f func(d *engine.Database) error) {
	s.t.Helper()
	bytes, goroutines := s.heapBytes(), runtime.NumGoroutine()
	for i := range count {
		d, err := s.catalog.Database(part(idleName(i)))
		if err == nil {
			err = f(d)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	// A writer stays for a moment. Pebble may have begun a compaction.
	more := runtime.NumGoroutine() - goroutines
	for range 12_000 { // two minutes; the machine may be busy
		if more <= 10 {
			break
		}
		<-time.After(10 * time.Millisecond)
		more = runtime.NumGoroutine() - goroutines
	}
	if more > 10 {
		s.t.Errorf("%d goroutines more after %d databases were %s", more, count, what)
	}
	each := (s.heapBytes() - bytes) / int64(count)
	for tries := 0; each > maxBytes && tries < 100; tries++ {
		<-time.After(100 * time.Millisecond) // a compaction takes memory while it runs
		each = (s.heapBytes() - bytes) / int64(count)
	}
	if each > maxBytes {
		s.t.Errorf("each database that was %s takes %d bytes, want at most %d", what, each, maxBytes)
	} else {
		s.t.Logf("each database that was %s takes %d bytes", what, each)
	}
}

// heapBytes returns how much memory is in use, without the files.
func (s *idleStand) heapBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) - s.fileBytes("data") - s.fileBytes("data/store")
}

// fileBytes returns the size of the files in a directory.
func (s *idleStand) fileBytes(dir string) (bytes int64) {
	names, err := s.fs.List(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range names {
		info, err := s.fs.Stat(s.fs.PathJoin(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err != nil {
			s.t.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes
}
