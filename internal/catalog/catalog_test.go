package catalog_test

import (
	"context"
	"crypto/rand"
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
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// open returns the catalog of a store in memory, and what closes both.
func open(t testing.TB, fs vfs.FS) (*catalog.Catalog, func()) {
	t.Helper()
	return openWith(t, store.Options{FS: fs})
}

func openWith(t testing.TB, opts store.Options) (*catalog.Catalog, func()) {
	t.Helper()
	s, err := store.Open("data", opts)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := auth.New(auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(s, engine.Options{ // what a server gives all its databases
		Clock:    state.NewClock(time.Now, rand.Reader, s.LastMillis()),
		Verifier: verifier,
		Metrics:  &state.Metrics{},
		Streams:  watch.NewBudget(1 << 20),
		Deadline: 10 * time.Minute,
	})
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
	text, err := tryRead(d)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func tryRead(d *engine.Database) (string, error) {
	s := d.View()
	defer s.Close()
	printer, err := s.Printer(tree.Path{}, tree.Plain)
	if err != nil {
		return "", err
	}
	defer printer.Close()
	var text strings.Builder
	err = printer.PrintTo(&text)
	return text.String(), err
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
	two, err := c.Database("two")
	if err != nil {
		t.Fatal(err)
	}
	if err := write(two, 2); err != nil { // from here on views lack what was dropped
		t.Error(err)
	}
	if err := write(old, 3); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a write into a dropped database: %v, want not found", err)
	}
	if text, err := tryRead(old); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a read of a dropped database: %s, %v, want not found", text, err)
	}
	if _, _, err := old.Watches().Open(watch.Request{Who: auth.Identity{Admin: true}, Wake: func() {}}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a watch of a dropped database: %v, want not found", err)
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
	s := again.View()
	if got := s.Position; got != 0 {
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
