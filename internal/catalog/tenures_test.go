package catalog_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
)

// A fakeHome says of which shards a node is the home.
type fakeHome struct {
	mu      sync.Mutex
	tenures map[int]uint64 // 0 if another node is
}

func (h *fakeHome) home(shard int) (uint64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tenures[shard], h.tenures[shard] != 0
}

func (h *fakeHome) set(shard int, tenure uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tenures[shard] = tenure
}

// A tenureTest has a database of shard 0 and the tenures of a node, whose beginnings wait to be let go.
type tenureTest struct {
	*catalog.Tenures
	t      *testing.T
	is     *fakeHome
	db     *engine.Database
	begins chan context.Context
	goOn   chan struct{}
}

func newTenureTest(t *testing.T) *tenureTest {
	c, closeAll := open(t, vfs.NewMem())
	k := &tenureTest{
		t: t, is: &fakeHome{tenures: map[int]uint64{}}, db: create(t, c, "db"),
		begins: make(chan context.Context, 8), goOn: make(chan struct{}),
	}
	k.Tenures = catalog.NewTenures(k.is.home)
	k.Start(1, func(ctx context.Context, _ int) {
		k.begins <- ctx
		select {
		case <-k.goOn:
		case <-ctx.Done():
		}
	})
	t.Cleanup(closeAll)
	t.Cleanup(k.Close)
	return k
}

// become makes the node the home in a tenure, or another one with 0.
func (k *tenureTest) become(tenure uint64) {
	k.is.set(0, tenure)
	k.Changed(0)
}

// begun waits until a tenure begins, and returns its context. Where the home changes just when a tenure is about to begin, that one is over
// at once, and another follows.
func (k *tenureTest) begun() context.Context {
	k.t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case ctx := <-k.begins:
			if ctx.Err() == nil {
				return ctx
			}
		case <-late:
			k.t.Fatal("no tenure begins")
		}
	}
}

func (k *tenureTest) wants(what string, want error) *catalog.Stay {
	k.t.Helper()
	stay, err := k.Enter(k.db)
	if !errors.Is(err, want) || want == nil && err != nil {
		k.t.Fatalf("%s: %v, want %v", what, err, want)
	}
	return stay
}

func TestTenureOpensWhenWhatWasLeftIsWritten(t *testing.T) {
	k := newTenureTest(t)
	k.wants("a node that is not the home", catalog.ErrAway)
	k.become(5)
	k.begun()
	k.wants("a home that has just begun", catalog.ErrNotOpen)
	waited := make(chan error, 1)
	go func() {
		stay, err := k.Await(context.Background(), k.db)
		stay.Leave()
		waited <- err
	}()
	k.goOn <- struct{}{}
	if err := <-waited; err != nil {
		t.Errorf("a session that waits for a tenure: %v", err)
	}
	stay := k.wants("an open tenure", nil)
	k.Changed(0) // it is still the same
	if stay.IsOver() {
		t.Error("a stay ends though nothing has changed")
	}
	stay.Leave()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	k.become(6)
	k.begun()
	if _, err := k.Await(gone, k.db); !errors.Is(err, catalog.ErrNotOpen) {
		t.Errorf("a session that does not wait: %v", err)
	}
}

// TestTenureWaitsForTheOneBefore: a home that comes back begins when all that stayed before has gone.
func TestTenureWaitsForTheOneBefore(t *testing.T) {
	k := newTenureTest(t)
	k.become(1)
	k.begun()
	k.goOn <- struct{}{}
	stay, err := k.Await(t.Context(), k.db)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	stop := stay.Then(func() { close(ended) })
	defer stop()
	k.become(0)
	<-ended
	k.wants("a home that has lost its shard", catalog.ErrAway)
	k.become(3)
	k.wants("a home that has come back", catalog.ErrNotOpen)
	select {
	case begun := <-k.begins:
		// One that was over at once was the first, if that came just when the tenures were started.
		if begun.Err() == nil {
			t.Fatal("a tenure begins while something stays in the one before")
		}
	default:
	}
	stay.Leave()
	stay.Leave() // does nothing
	begun := <-k.begins
	if begun.Err() != nil {
		t.Error("a tenure has ended when it begins")
	}
	k.become(0)
	<-begun.Done() // what it writes is written by the next home
	k.become(4)
	k.begun()
	k.goOn <- struct{}{}
	stay, err = k.Await(t.Context(), k.db)
	if err != nil || stay.IsOver() {
		t.Errorf("the next tenure: %v", err)
	}
	stay.Leave()
}

func TestCloseOfTenures(t *testing.T) {
	k := newTenureTest(t)
	k.become(1)
	k.begun()
	k.goOn <- struct{}{}
	stay, err := k.Await(t.Context(), k.db)
	if err != nil {
		t.Fatal(err)
	}
	k.Close() // while something stays
	if !stay.IsOver() {
		t.Error("a stay goes on after the end")
	}
	k.become(2)
	k.wants("after the end", catalog.ErrNotOpen)
	var none *catalog.Tenures
	if stay, err := none.Await(t.Context(), k.db); err != nil || stay.IsOver() {
		t.Errorf("a single server: %v", err)
	} else {
		ctx, cancel := stay.Within(t.Context())
		stay.Leave()
		if ctx.Err() != nil {
			t.Error("a stay at a single server has ended")
		}
		cancel()
	}
}

// TestPostponedOfAnotherHome: what waits to be written is forgotten by a node that is not the home any more, and not tried for ever.
func TestPostponedOfAnotherHome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, closeAll := open(t, vfs.NewCrashableMem())
		defer closeAll()
		d := create(t, c, "db")
		left := leaveNumber(t, d, 1)
		synctest.Wait() // its name is there a moment after the answer
		is := &fakeHome{tenures: map[int]uint64{0: 1}}
		tenures := catalog.NewTenures(is.home)
		defer tenures.Close()
		var waiting atomic.Int64
		p := catalog.NewPostponed(slog.New(slog.DiscardHandler), &waiting, tenures)
		defer p.Close()
		p.Add(d, left.Connection())
		time.Sleep(10 * time.Second) //nolint:forbidigo // fake time
		if waiting.Load() != 1 || read(t, d) != "null" {
			t.Errorf("%d wait before the tenure opens, and the data is %s", waiting.Load(), read(t, d))
		}
		if err := p.RunNow(t.Context(), d, left.Connection()); !engine.IsPostponed(err) {
			t.Errorf("RunNow before the tenure opens = %v, want one that can be postponed", err)
		}
		is.set(0, 0)
		time.Sleep(10 * time.Second) //nolint:forbidigo // fake time
		if waiting.Load() != 0 || read(t, d) != "null" {
			t.Errorf("%d wait at a node that is not the home, and the data is %s", waiting.Load(), read(t, d))
		}
		is.set(0, 2)
		tenures.Start(1, func(ctx context.Context, shard int) { c.RunLeftOf(ctx, shard, slog.New(slog.DiscardHandler), p) })
		stay, err := tenures.Await(t.Context(), d)
		if err != nil || read(t, d) != "1" {
			t.Errorf("when the tenure is open the data is %s, %v, want what was left", read(t, d), err)
		}
		stay.Leave()
	})
}
