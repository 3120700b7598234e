package archiver_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// positions returns how far the databases have come in an archive at a moment.
func positions(t *testing.T, p place.Place, at time.Time) map[string]uint64 {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := restore.Run(t.Context(), archive.NewReader(p, archive.ReaderOptions{}), dir, restore.Options{At: restore.Moment{Time: at}}); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(dir, store.Options{BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	found := map[string]uint64{}
	err = s.Names(func(name string, id store.ID) bool {
		found[name], err = s.Live(id).Position()
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestRounds restores moments of several databases whose records waited for the archive, and
// so came in many segments: each is there as far as it was.
func TestRounds(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	millis := int64(1_800_000_000_000)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.UnixMilli(millis)
	}
	f := enginetest.Open(t, store.Options{Now: clock})
	p := placetest.NewFaulty(placetest.NewMemory())
	a, stop := run(t, f, p, func(o *archiver.Options) { o.Now, o.MaxSegment = clock, 300 })
	await(t, a, "begun", func(s archiver.Status) bool { return s.Bases == 1 })
	p.Set(placetest.Faults{Fail: func(string, string) error { return placetest.ErrServer }})
	ids := map[string]store.ID{}
	for i := range 4 {
		name := fmt.Sprint("shop-", i)
		id, err := f.Store.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = id
	}
	want, heads := map[int64]map[string]uint64{}, map[string]uint64{"db": 0}
	for range 60 {
		mu.Lock()
		millis += 1 + r.Int64N(20_000)
		mu.Unlock()
		name := fmt.Sprint("shop-", r.IntN(len(ids)))
		heads[name]++
		commit(t, f.Store, ids[name], tree.Change{Position: heads[name], Millis: millis}, strings.Repeat("x", r.IntN(200)))
		want[millis] = maps.Clone(heads)
	}
	p.Set(placetest.Faults{})
	if err := a.CatchUp(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	stop()
	tried := 0
	for at, want := range want { // in any order
		if tried++; tried > 12 {
			break
		}
		got := positions(t, p, time.UnixMilli(at))
		// One that has no commit yet is there if it was sent before its first.
		maps.DeleteFunc(got, func(name string, position uint64) bool { return position == 0 && want[name] == 0 && name != "db" })
		if !maps.Equal(got, want) {
			t.Errorf("at %d the databases are at %v, want %v", at, got, want)
		}
	}
}

// commit writes a leaf of a size, and waits until it is durable.
func commit(t *testing.T, s *store.Store, id store.ID, c tree.Change, text string) {
	t.Helper()
	c.Write = tree.Put(tree.Path{}, tree.LeafNode(tree.StringLeaf(text)))
	b, err := s.Build(s.Live(id), c, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(durable)
	if err := s.Commit(b, done); err != nil {
		t.Fatal(err)
	}
	<-done
}

// A durable is closed when views show a commit.
type durable chan struct{}

func (durable) Durable(uint64) {}
func (d durable) Visible()     { close(d) }

// TestEmptyDatabase archives a database that was made and not written to, without any other
// commit.
func TestEmptyDatabase(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	p := placetest.NewMemory()
	a, stop := run(t, f, p, nil)
	await(t, a, "begun", func(s archiver.Status) bool { return s.Bases == 1 })
	if _, err := f.Store.Create("empty"); err != nil {
		t.Fatal(err)
	}
	await(t, a, "sent", func(s archiver.Status) bool { return s.Segments == 1 })
	stop()
	if _, ok := positions(t, p, time.Time{})["empty"]; !ok {
		t.Error("the database is missing in what was restored")
	}
	a, stop = run(t, f, p, nil) // it is not sent twice
	f.Put("/a", "1")
	if err := a.CatchUp(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	stop()
	got := 0
	r := archive.NewReader(p, archive.ReaderOptions{})
	base, err := r.Find(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Replay(t.Context(), base, time.Time{}, func(archive.Entry) error { got++; return nil })
	if err != nil || got != 2 {
		t.Errorf("%d records are in the archive, want that of the database and that of the write: %v", got, err)
	}
}

// TestDatabaseOfALoss: a database that was made while nothing was kept is in the base that is made then, though nothing was written to it
// or to any other.
func TestDatabaseOfALoss(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	inner := placetest.NewMemory()
	p := placetest.NewFaulty(inner)
	a, stop := run(t, f, p, func(o *archiver.Options) { o.Spool = 10_000 })
	await(t, a, "begun", func(s archiver.Status) bool { return s.Bases == 1 })
	p.Set(placetest.Faults{Fail: func(string, string) error { return placetest.ErrServer }})
	f.Put("/large", `"`+strings.Repeat("x", 60_000)+`"`)
	await(t, a, "lost", func(s archiver.Status) bool { return s.State == archiver.StateLost })
	if _, err := f.Store.Create("empty"); err != nil {
		t.Fatal(err)
	}
	p.Set(placetest.Faults{})
	await(t, a, "whole again", func(s archiver.Status) bool { return s.Bases == 2 && s.State == archiver.StateOK })
	stop()
	if _, ok := positions(t, inner, time.Time{})["empty"]; !ok {
		t.Error("the database is missing in what was restored")
	}
}
