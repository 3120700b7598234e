package catalog_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// open returns the catalog of a store in memory, and what closes both.
func open(t testing.TB, fs vfs.FS) (*catalog.Catalog, func()) {
	t.Helper()
	s, err := store.Open("data", store.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(s, engine.Options{Clock: engine.NewClock(time.Now, rand.Reader, s.LastMillis()), Deadline: 10 * time.Minute})
	return c, func() {
		c.Close()
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	}
}

// write puts an integer at the root.
func write(d *engine.Database, n int64) error {
	w := tree.Put(tree.Path{}, tree.LeafNode(tree.IntegerLeaf(n)))
	_, err := d.Write(context.Background(), engine.Request{Write: w, Who: auth.Identity{Admin: true}})
	return err
}

// read returns the tree as text.
func read(t testing.TB, d *engine.Database) string {
	t.Helper()
	s := d.Snapshot()
	defer s.Close()
	printer, err := s.Printer(tree.Path{}, tree.Plain)
	if err != nil {
		t.Fatal(err)
	}
	defer printer.Close()
	var text strings.Builder
	if err := printer.PrintTo(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "0", "default", "my-app-2", strings.Repeat("x", 63)} {
		if err := catalog.CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil", name, err)
		}
	}
	for _, name := range []string{"", "-a", "A", "a.b", "a_b", "a b", "é", "a\n", "a\x00", "../a", strings.Repeat("x", 64)} {
		if err := catalog.CheckName(name); fault.KindOf(err) != fault.Invalid {
			t.Errorf("CheckName(%q) = %v, want invalid", name, err)
		}
	}
}

func TestCatalog(t *testing.T) {
	fs := vfs.NewMem()
	c, closeAll := open(t, fs)
	if _, err := c.Database("one"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a database that is not there: %v, want not found", err)
	}
	if _, err := c.Database("No Name"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a database that cannot be there: %v, want invalid", err)
	}
	one, err := c.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create("one"); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second database of one name: %v, want a conflict", err)
	}
	if _, err := c.Create("No Name"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("Create of an invalid name: %v, want invalid", err)
	}
	for _, name := range []string{"two", "10", "0"} {
		if _, err := c.Create(name); err != nil {
			t.Error(err)
		}
	}
	if err := write(one, 1); err != nil {
		t.Error(err)
	}
	if again, err := c.Database("one"); again != one || err != nil {
		t.Errorf("Database gives %p, %v, want the one that Create gave, %p", again, err, one)
	}
	closeAll()
	if err := write(one, 2); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a write after Close: %v, want unavailable", err)
	}
	if _, err := c.Database("two"); err != nil && fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Database after Close: %v, want unavailable", err)
	}
	if _, err := c.Create("three"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Create after Close: %v, want unavailable", err)
	}

	c, closeAll = open(t, fs)
	defer closeAll()
	names, err := c.Names()
	if want := []string{"0", "10", "one", "two"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("Names() = %q, %v; want %q", names, err, want)
	}
	if one, err = c.Database("one"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, one); got != "1" {
		t.Errorf("after a restart the tree is %s, want 1", got)
	}
}

func TestDrop(t *testing.T) {
	fs := vfs.NewMem()
	c, closeAll := open(t, fs)
	if err := c.Drop("one"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("Drop of nothing: %v, want not found", err)
	}
	for i, name := range []string{"one", "two"} {
		d, err := c.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(d, int64(i+1)); err != nil {
			t.Error(err)
		}
	}
	old, err := c.Database("one")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Drop("one"); err != nil {
		t.Error(err)
	}
	if _, err := c.Database("one"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a dropped database: %v, want not found", err)
	}
	if err := write(old, 3); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a write into a dropped database: %v, want unavailable", err)
	}
	if names, err := c.Names(); err != nil || !slices.Equal(names, []string{"two"}) {
		t.Errorf("Names() = %q, %v; want two", names, err)
	}
	again, err := c.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, again); got != "null" {
		t.Errorf("a new database of an old name holds %s, want null", got)
	}
	s := again.Snapshot()
	if got := s.Position(); got != 0 {
		t.Errorf("a new database of an old name is at position %d, want 0", got)
	}
	s.Close()
	closeAll()

	c, closeAll = open(t, fs)
	defer closeAll()
	for name, want := range map[string]string{"one": "null", "two": "2"} {
		d, err := c.Database(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, d); got != want {
			t.Errorf("after a restart %s holds %s, want %s", name, got, want)
		}
	}
}

// TestOneDatabaseForAll: two of one name would each have an order of their own.
func TestOneDatabaseForAll(t *testing.T) {
	fs := vfs.NewMem()
	c, closeAll := open(t, fs)
	if _, err := c.Create("one"); err != nil {
		t.Fatal(err)
	}
	closeAll()
	c, closeAll = open(t, fs)
	defer closeAll()
	var wg sync.WaitGroup
	got := make([]*engine.Database, 32)
	for i := range got {
		wg.Go(func() {
			d, err := c.Database("one")
			if err != nil {
				t.Error(err)
			}
			got[i] = d
		})
	}
	wg.Wait()
	if len(slices.Compact(got)) != 1 {
		t.Error("different databases were opened for one name")
	}
}

// TestIdleDatabasesCostLittle opens ten thousand: each takes some memory and no
// goroutine, also after it was written to.
func TestIdleDatabasesCostLittle(t *testing.T) {
	const maxBytes = 2304
	count := 10_000
	if testing.Short() {
		count = 2000
	}
	fs := vfs.NewMem()
	c, closeAll := open(t, fs)
	for i := range count {
		if _, err := c.Create(fmt.Sprintf("db-%05d", i)); err != nil {
			t.Fatal(err)
		}
	}
	closeAll()

	c, closeAll = open(t, fs)
	defer closeAll()
	use := func(what string, count int, f func(d *engine.Database) error) {
		bytes, goroutines := heapBytes(), runtime.NumGoroutine()
		for i := range count {
			d, err := c.Database(fmt.Sprintf("db-%05d", i))
			if err == nil {
				err = f(d)
			}
			if err != nil {
				t.Fatal(err)
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
			t.Errorf("%d goroutines more after %d databases were %s", more, count, what)
		}
		each := (heapBytes() - bytes) / int64(count)
		for tries := 0; each > maxBytes && tries < 100; tries++ {
			<-time.After(100 * time.Millisecond) // a compaction takes memory while it runs
			each = (heapBytes() - bytes) / int64(count)
		}
		if each > maxBytes {
			t.Errorf("each database that was %s takes %d bytes, want at most %d", what, each, maxBytes)
		} else {
			t.Logf("each database that was %s takes %d bytes", what, each)
		}
	}
	use("opened", count, func(*engine.Database) error { return nil })
	use("written to", count/5, func(d *engine.Database) error { return write(d, 1) })
}

// heapBytes returns how much memory is in use. What Pebble and MemFS take for
// the rows is part of it.
func heapBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
