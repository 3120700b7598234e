package watch_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

var (
	watchRuns = flag.Int("watch.runs", 4, "how many random histories the watch checker runs")
	watchSeed = flag.Uint64("watch.seed", 0, "the first seed of the watch checker, 0 for a new one")
)

// TestWatchChecker runs random writers of every kind beside watches of every
// kind, each of which keeps a cache by its events alone. Whenever an event was
// applied the cache must be one that the order of commits allows, and at rest it
// must be what a read gives. A watch must be cancelled if, and only if, it was denied
// at some commit since it began. One that the dispatcher left unjudged may go on if it
// was told nothing of what it was denied.
func TestWatchChecker(t *testing.T) {
	seed := *watchSeed
	if seed == 0 {
		seed = mathrand.Uint64()
	}
	runs := *watchRuns
	if enginetest.Race {
		runs = max(1, runs/2)
	}
	check := func(open enginetest.OpenFunc) func(t *testing.T) {
		return func(t *testing.T) {
			for i := range uint64(runs) {
				c := newChecker(t, seed+i, noBug, open)
				c.run()
				c.report()
				if err := c.first(); err != nil {
					t.Fatalf("-watch.seed=%d -watch.runs=1: %v", seed+i, err)
				}
			}
		}
	}
	t.Run("default", check(engine.Open))
	t.Run("tiny", check(enginetest.OpenTiny))
}

// TestWatchCheckerFindsBugs: a checker that finds nothing shows nothing, so here
// are bugs, in how a client takes its events and in the engine.
func TestWatchCheckerFindsBugs(t *testing.T) {
	for p := noBug + 1; p < bugs; p++ {
		t.Run(p.String(), func(t *testing.T) {
			for n := range 200 { // most are found by the first
				c := newChecker(t, mathrand.Uint64(), p, engine.Open)
				c.run()
				if err := c.first(); err != nil {
					t.Logf("history %d: %v", n+1, err)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

// A bug is one on purpose.
type bug int

const (
	noBug       bug = iota
	dropOne         // an event is not applied
	doubleOne       // an event is told twice
	swapTwo         // two events change places
	lateFirst       // the events right behind the first are not applied
	keepLeft        // children that leave a window stay
	patchAsPut      // a patch replaces what it does not name
	loseChanges     // the engine does not hand changes on
	judgeOlder      // the engine judges watches on states older than their beginning
	keepByData      // the engine does not cancel what data has shut
	neverJudge      // the engine cancels nothing
	bugs
)

func (p bug) String() string {
	return [...]string{"none", "drop an event", "double an event", "swap two events", "miss what follows the first",
		"keep what left", "patch as put", "lose changes in the engine", "judge on an older state", "go on after data changed",
		"go on whatever changed"}[p]
}

// A checker is one random history.
type checker struct {
	*fixture
	seed uint64
	bug  bug
	// calm says that nobody is far behind, simple that the change log has all that
	// is written.
	calm, simple bool
	writes       atomic.Int64 // how many were answered
	writing      atomic.Bool
	viewers      []*viewer
	ledger       ledger
	revision     atomic.Int64 // of the rules

	mu       sync.Mutex
	progress *sync.Cond // there is a write more, or there will be none
	failures []error
}

const (
	checkerWriters = 3
	checkerRounds  = 8
	checkerWrites  = 15 // of each writer in each round
)

func newChecker(t *testing.T, seed uint64, p bug, open enginetest.OpenFunc) *checker {
	rng := mathrand.New(mathrand.NewPCG(seed, 1))
	limits := []int{-1, 64, 300, 2048}
	s, err := store.Open("data", store.Options{
		FS: vfs.NewMem(), ChunkBytes: limits[rng.IntN(len(limits))], CacheBytes: 1 << 20,
		PriorityRows: []int{2, 0}[rng.IntN(2)], StepChildren: []int{1, 0}[rng.IntN(2)],
	})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Create("db")
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{seed: seed, bug: p, calm: seed%4 < 2, simple: seed%4 == 2}
	c.progress = sync.NewCond(&c.mu)
	// Time runs fast, so that being slow is forgiven now and then.
	start := time.Now()
	clock := state.NewClock(func() time.Time { return start.Add(time.Duration(c.writes.Load()) * time.Second) }, rand.Reader, 0)
	c.fixture = &fixture{&enginetest.Fixture{T: t, Store: s, Clock: clock}}
	budget := hub.NewBudget(64<<20, 8<<20)
	if !c.calm {
		budget = hub.NewBudget(400<<10, 16<<10)
	}
	scans := scan.DefaultBounds()
	if rng.IntN(2) == 0 {
		scans = scan.Bounds{Kept: 7 + rng.IntN(10), Reserve: rng.IntN(3), Bytes: 8 << 20}
	}
	opts := engine.Options{Clock: clock, Streams: budget, Deadline: enginetest.Unhurried, Scans: scan.NewPool(scans)}
	if c.Database, err = open(s, id, opts); err != nil {
		t.Fatal(err)
	}
	c.shrink(rng)
	if _, err := c.SetRules(context.Background(), checkerRules(0, false)); err != nil {
		t.Fatal(err)
	}
	if err := enginetest.WaitForIndexes(context.Background(), c.Database); err != nil {
		t.Fatal(err)
	}
	return c
}

// shrink makes some bounds so small that they are met, in some histories.
func (c *checker) shrink(rng *mathrand.Rand) {
	small := []int{0, 1, 3, 10}
	pick := func() int { return small[rng.IntN(len(small))] }
	c.Watches().BoundResume(uint64(10*pick()), int64(200*pick()), pick(), 200*pick())
	if rng.IntN(3) == 0 {
		c.Watches().BeginBetween()
	}
	if rng.IntN(3) > 0 {
		c.Watches().BoundWindows(1+rng.IntN(4), 1+rng.IntN(3))
	}
	if rng.IntN(3) == 0 {
		c.Watches().BoundRejudging(1+100*pick(), 1, 1, 1000*pick())
	}
}

// checkerRules returns rules that allow the same for every n, but for the location
// that is guarded if they are to shut it. Two of the indexes come and go.
func checkerRules(n int, shut bool) string {
	indexes := `"a", "b/c", ".value"`
	if n%2 == 1 {
		indexes = `"a"`
	}
	return fmt.Sprintf(`{"rules": { // %d
		"data": {".read": true, "list": {".indexOn": [%s]}},
		"count": {".read": true}, "pair": {".read": true},
		"guarded": {".read": "%v && root.child('gate').val() !== 'shut'"}
	}}`, n, indexes, !shut)
}

// wrote counts a write.
func (c *checker) wrote() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes.Add(1)
	c.progress.Broadcast()
}

// rest says that the writers are done.
func (c *checker) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing.Store(false)
	c.progress.Broadcast()
}

func (c *checker) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, err)
}

func (c *checker) first() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failures) == 0 {
		return nil
	}
	return fmt.Errorf("%d failures, first: %w", len(c.failures), c.failures[0])
}

// report tells what happened.
func (c *checker) report() {
	var events, opened, resumed, ended int
	for _, v := range c.viewers {
		events += v.events
		opened += v.opened
		resumed += v.resumed
		ended += v.ended
	}
	missed, renewed := c.Watches().WatchTroubles()
	c.T.Logf("seed %d", c.seed)
	figures.Report(c.T, "watches", proof.Count("runs", 1), proof.Count("writes", int(c.writes.Load())), proof.Count("watches", len(c.viewers)),
		proof.Count("events", events), proof.Count("opened", opened), proof.Count("resumed", resumed), proof.Count("ended", ended),
		proof.Count("missed", int(missed)), proof.Count("renewed", int(renewed)))
}

// run lets writers and viewers go, again and again, and compares in between.
func (c *checker) run() {
	defer c.CloseAll()
	rng := mathrand.New(mathrand.NewPCG(c.seed, 2))
	for i, req := range c.requests(rng) {
		v := &viewer{checker: c, rng: mathrand.New(mathrand.NewPCG(c.seed, uint64(100+i))), req: req, woken: make(chan struct{}, 1)}
		c.viewers = append(c.viewers, v)
	}
	writers := make([]*writer, checkerWriters)
	for i := range writers {
		writers[i] = &writer{checker: c, number: i, rng: mathrand.New(mathrand.NewPCG(c.seed, uint64(10+i)))}
	}
	for round := 0; round < checkerRounds && c.first() == nil; round++ {
		c.round(writers)
		c.slam(round)
	}
	for _, v := range c.viewers {
		v.close()
	}
	if watches, places := c.Watches().WatchCounts(); watches != 0 || places != 0 {
		c.fail(fmt.Errorf("%d watches and %d places are left", watches, places))
	}
	if bytes := c.Watches().PendingBytes(); bytes != 0 {
		c.fail(fmt.Errorf("%d bytes are counted that wait no more", bytes))
	}
}

// round lets writers and viewers go until the writers have done some work.
func (c *checker) round(writers []*writer) {
	var reading, writing sync.WaitGroup
	c.writing.Store(true)
	if c.bug == loseChanges {
		c.Watches().LoseChanges(10)
	}
	for _, v := range c.viewers {
		reading.Go(v.run)
	}
	for _, w := range writers {
		writing.Go(w.run)
	}
	writing.Wait()
	c.rest()
	for _, v := range c.viewers {
		v.wake()
	}
	reading.Wait()
	c.calmDown()
	for _, v := range c.viewers {
		v.settle()
	}
}

// calmDown returns when everything is handed on, and no index is being built.
func (c *checker) calmDown() {
	if err := enginetest.WaitForIndexes(context.Background(), c.Database); err != nil {
		c.fail(err)
	}
	c.WaitForWatches()
}

// requests returns what is watched.
func (c *checker) requests(rng *mathrand.Rand) []watch.Request {
	var list []watch.Request
	nobody := auth.Identity{}
	for _, at := range []string{"/data", "/data/list", "/data/list/k1", "/data/list/k1/a", "/data/tree", "/data/tree/x", "/data/tree/x/y",
		"/count", "/count/w0", "/count/w1/n", "/pair", "/pair/a", "/guarded", "/guarded", "/guarded/secret"} {
		list = append(list, watch.Request{Path: path(c.T, at), Who: nobody})
	}
	for _, at := range []string{"/", "/data/list", "/data/tree", "/data/list/k2"} {
		list = append(list, watch.Request{Path: path(c.T, at), Who: admin, Form: tree.Export})
	}
	window := filtered(c.T, "/guarded", `orderBy="$key"&limitToLast=1`)
	window.Who = nobody
	list = append(list, whole(c.T, "/"), window,
		watch.Request{Path: path(c.T, "/data/list/k1"), Who: nobody, Priority: true},
		watch.Request{Path: path(c.T, "/data/tree/x"), Who: nobody, Priority: true})
	orders := []string{`"$key"`, `"$priority"`, `"$value"`, `"a"`, `"b/c"`, `"b"`, `"pad"`}
	values := []string{`null`, `false`, `true`, `0`, `2`, `5`, `"a"`, `"m"`}
	for i := range 24 {
		order := orders[i%len(orders)]
		q := "orderBy=" + order
		bound := func() string {
			switch order {
			case `"$key"`:
				return []string{`"3"`, `"k1"`, `"k3"`}[rng.IntN(3)]
			case `"$priority"`:
				return []string{`null`, `1`, `3`}[rng.IntN(3)]
			}
			return values[rng.IntN(len(values))]
		}
		if rng.IntN(3) == 0 {
			q += "&startAt=" + bound()
		}
		if rng.IntN(3) == 0 {
			q += "&endAt=" + bound()
		}
		if n := rng.IntN(8); n > 0 {
			q += fmt.Sprintf("&%s=%d", []string{"limitToFirst", "limitToLast"}[rng.IntN(2)], n)
		}
		req := filtered(c.T, "/data/list", q)
		req.Scan = order != `"$key"` && order != `"a"` // of the others the index is missing, at times
		if rng.IntN(2) == 0 {
			req.Who = nobody
		}
		if rng.IntN(3) == 0 {
			req.Form = tree.Export
		}
		list = append(list, req)
		if i < 5 {
			list = append(list, req) // at the same place
		}
	}
	return list
}
