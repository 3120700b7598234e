package archiver_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/bases"
	"github.com/livetree/livetree/internal/archive/place"
	"github.com/livetree/livetree/internal/archive/placetest"
	"github.com/livetree/livetree/internal/archive/restore"
	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
)

// pace is one for tests: everything is small and soon, but the end, for which a busy machine has time.
var pace = archiver.Pace{
	Every: 5 * time.Millisecond, Bytes: 2000, BaseBytes: 1 << 20, LeastPause: time.Millisecond, MostPause: 10 * time.Millisecond,
	Patience: 50 * time.Millisecond, Last: time.Minute,
}

// run archives the store of a fixture until the test ends or stop is called.
func run(t *testing.T, f *enginetest.Fixture, p place.Place, change func(*archiver.Options)) (a *archiver.Archiver, stop func()) {
	t.Helper()
	options := archiver.Options{Store: f.Store, Place: p, SecretKey: []byte("a key"), Now: time.Now, Logger: slog.New(slog.DiscardHandler), Pace: pace}
	if change != nil {
		change(&options)
	}
	a, err := archiver.New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return a, stop
}

// await waits until the status is as wanted.
func await(t *testing.T, a *archiver.Archiver, what string, is func(archiver.Status) bool) archiver.Status {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !is(a.Status()) {
		if time.Now().After(deadline) {
			t.Fatalf("it never was %s: %+v", what, a.Status())
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // there is no other way to see it
	}
	return a.Status()
}

// restored returns what an archive holds of the database at a moment, as its hash.
func restored(t *testing.T, p place.Place, at time.Time) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	r := archive.NewReader(p, archive.ReaderOptions{})
	if _, err := restore.Run(t.Context(), r, dir, restore.Options{At: restore.Moment{Time: at}}); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(dir, store.Options{BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	id, found, err := s.Find("db")
	if err != nil || !found {
		t.Fatalf("the database is missing: %v", err)
	}
	view := s.View()
	defer view.Release()
	return hash(t, view.Tree(id))
}

func hash(t *testing.T, tree store.Tree) string {
	t.Helper()
	text, err := bases.TreeHash(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// now returns the hash of the database as it is.
func now(t *testing.T, f *enginetest.Fixture) string {
	t.Helper()
	id, _, err := f.Store.Find("db")
	if err != nil {
		t.Fatal(err)
	}
	view := f.Store.View()
	defer view.Release()
	return hash(t, view.Tree(id))
}

// write makes random writes, of which some are large.
func write(f *enginetest.Fixture, r *rand.Rand, n int) {
	for range n {
		path := fmt.Sprintf("/%c/%d", 'a'+rune(r.IntN(4)), r.IntN(20))
		switch r.IntN(8) {
		case 0:
			f.Put(path, "null")
		case 1:
			f.Put(path, fmt.Sprintf(`{".value":%d,".priority":%d}`, r.IntN(9), r.IntN(3)))
		case 2:
			f.Put(path, `{"large":"`+strings.Repeat("x", 70_000+r.IntN(1000))+`"}`)
		default:
			f.Patch(path, fmt.Sprintf(`{"a":%d,"b/c":"%s"}`, r.IntN(100), strings.Repeat("y", r.IntN(60))))
		}
	}
}

// TestArchive restores what was committed, before the base and after it, also when the
// server starts again and the archive fails now and then.
func TestArchive(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	f := enginetest.Open(t, store.Options{})
	p := placetest.NewMemory()
	write(f, r, 20)
	for round := range 4 {
		a, stop := run(t, f, p, nil)
		write(f, r, 30)
		done := await(t, a, "up to date", func(s archiver.Status) bool { return s.State == archiver.StateOK && s.WaitingBytes == 0 })
		if round == 0 && done.Bases != 1 || round > 0 && done.Bases != 0 {
			t.Errorf("round %d made %d bases", round, done.Bases)
		}
		if got, want := restored(t, p, time.Time{}), now(t, f); got != want {
			t.Fatalf("round %d: %s was restored, want %s", round, got, want)
		}
		write(f, r, 5)
		if err := a.CatchUp(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if got, want := restored(t, p, time.Time{}), now(t, f); got != want {
			t.Fatalf("round %d, caught up: %s was restored, want %s", round, got, want)
		}
		write(f, r, 5) // the last ones are sent when it stops
		stop()
		if got, want := restored(t, p, time.Time{}), now(t, f); got != want {
			t.Fatalf("round %d, stopped: %s was restored, want %s", round, got, want)
		}
	}
}

// TestLoss drops records when too many wait, says so, and begins anew.
func TestLoss(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	p := placetest.NewFaulty(placetest.NewMemory())
	a, stop := run(t, f, p, func(o *archiver.Options) { o.Spool = 100_000 })
	f.Put("/a", "1")
	await(t, a, "up to date", func(s archiver.Status) bool { return s.State == archiver.StateOK && s.WaitingBytes == 0 })
	p.Set(placetest.Faults{Fail: func(string, string) error { return placetest.ErrServer }})
	for i := range 10 {
		f.Put(fmt.Sprintf("/large/%d", i), `"`+strings.Repeat("x", 60_000)+fmt.Sprint(i)+`"`)
	}
	hasty, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if a.CatchUp(hasty, time.Time{}) == nil {
		t.Error("an archive that cannot be reached has caught up")
	}
	await(t, a, "failing", func(s archiver.Status) bool { return s.Failures > 2 })
	p.Set(placetest.Faults{})
	await(t, a, "whole again", func(s archiver.Status) bool { return s.Losses == 1 && s.Bases == 2 && s.State == archiver.StateOK })
	f.Put("/b", "2")
	stop()
	if got, want := restored(t, p, time.Time{}), now(t, f); got != want {
		t.Errorf("%s was restored, want %s", got, want)
	}
}

// TestMoments restores every moment of a history.
func TestMoments(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var millis int64 = 1_800_000_000_000
	var mu sync.Mutex
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.UnixMilli(millis)
	}
	f := enginetest.Open(t, store.Options{Now: clock})
	p := placetest.NewMemory()
	a, stop := run(t, f, p, func(o *archiver.Options) { o.Now = clock })
	await(t, a, "begun", func(s archiver.Status) bool { return s.Bases == 1 })
	states := map[int64]string{}
	for range 12 {
		mu.Lock()
		millis += 1 + r.Int64N(1000)
		mu.Unlock()
		write(f, r, 3)
		states[millis] = now(t, f)
	}
	stop()
	for at, want := range states {
		if got := restored(t, p, time.UnixMilli(at)); got != want {
			t.Errorf("at %d %s was restored, want %s", at, got, want)
		}
	}
}
