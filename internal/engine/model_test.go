package engine_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

var (
	modelTime = flag.Duration("model.time", 3*time.Second, "how long the model test runs")
	modelSeed = flag.Uint64("model.seed", 0, "the seed of the model test, 0 for a new one")
)

// TestModel runs random histories of every operation against the obvious tree
// of package model, and compares every way to read, reopening the store with
// another chunk limit in between.
func TestModel(t *testing.T) {
	t.Parallel()
	total := *modelTime
	if testing.Short() {
		total = 2 * time.Second
	}
	// With the limits of every database, with tiny ones, and in groups of which some are refused.
	t.Run("default", func(t *testing.T) { runHistories(t, enginetest.OpenDatabase, total*2/5) })
	t.Run("tiny", func(t *testing.T) { runHistories(t, enginetest.OpenTiny, total*2/5) })
	t.Run("groups", func(t *testing.T) { runHistories(t, enginetest.OpenGroups, total/5) })
}

// runHistories runs random histories for a while, on every core.
func runHistories(t *testing.T, open enginetest.OpenFunc, total time.Duration) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	deadline := time.Now().Add(total)
	var steps, queries, histories atomic.Int64
	t.Run("workers", func(t *testing.T) { // ends when they all have
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for first := true; first || *modelSeed == 0 && time.Now().Before(deadline); first = false {
					n := uint64(histories.Add(1))
					h := newHistory(t, seed+n-1, open)
					h.run(historySteps(h.seed))
					steps.Add(int64(h.steps))
					queries.Add(int64(h.queries))
				}
			})
		}
	})
	figures.Report(t, "model", proof.Count("histories", int(histories.Load())), proof.Count("steps", int(steps.Load())), proof.Count("queries", int(queries.Load())))
}

// historySteps returns how many steps a history has. The race detector makes each take many times as long,
// and one goroutine makes them all.
func historySteps(seed uint64) int {
	if enginetest.Race {
		return 40 + int(seed%100)
	}
	return 200 + int(seed%800)
}

// maxModel is the size from which a tree is replaced now and then: the obvious
// way to compare is slow for large ones.
const maxModel = 20_000

// A history is one random run.
type history struct {
	t     *testing.T
	seed  uint64
	with  enginetest.OpenFunc
	rng   *rand.Rand
	fs    vfs.FS
	store *store.Store
	clock *state.Clock
	time  ticker // so that no two commits have one time
	steps int
	// queries counts those that were answered.
	queries int
	// before is the model before the write that is being checked.
	before *model.Tree
	// dbs are the same databases in both worlds.
	dbs []twin
	log []string
}

type twin struct {
	id   store.ID
	db   *engine.Database
	tree *model.Tree
	// past is what the tree was at its commits, nil if nobody asks.
	past *past
}

func newHistory(t *testing.T, seed uint64, open enginetest.OpenFunc) *history {
	h := &history{t: t, seed: seed, with: open, rng: rand.New(rand.NewPCG(seed, 1)), fs: vfs.NewMem()}
	h.open()
	for _, name := range []string{"one", "two"} {
		id, err := h.store.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		h.dbs = append(h.dbs, twin{id: id, tree: model.New()})
	}
	h.openDatabases()
	return h
}

func (h *history) open() {
	limits := []int{-1, 1, 8, 16, 40, 64, 100, 300, 1000, 2048, 4096}
	limit := limits[h.rng.IntN(len(limits))]
	opts := store.Options{FS: h.fs, ChunkBytes: limit, CacheBytes: 1 << 20, MemTableBytes: 256 << 10, GapSteps: 1}
	opts.RowBytes = []int64{-1, 5 << 10, 8 << 10, 0}[h.rng.IntN(4)] // none, a few, and as many as usual
	if h.rng.IntN(2) == 0 {                                         // always ahead, by few
		opts.Ahead = store.AheadBounds{Probe: 1, Each: 1 + h.rng.IntN(3), Total: 1 + h.rng.IntN(4)}
	}
	tiny := h.rng.IntN(2) == 0
	if tiny {
		opts.PriorityRows, opts.StepChildren = 2, 1
	}
	s, err := store.Open("data", opts)
	if err != nil {
		h.t.Fatalf("seed %d: %v", h.seed, err)
	}
	h.store = s
	h.clock = state.NewClock(h.time.now, rand.NewChaCha8([32]byte{byte(h.seed)}), s.LastMillis())
	h.log = append(h.log, fmt.Sprintf("open with a chunk limit of %d, rows in %d bytes, tiny steps: %t", limit, opts.RowBytes, tiny))
}

func (h *history) openDatabases() {
	for i := range h.dbs {
		db, err := h.with(h.store, h.dbs[i].id, engine.Options{Clock: h.clock, Deadline: enginetest.Unhurried})
		if err != nil {
			h.t.Fatalf("seed %d: %v", h.seed, err)
		}
		h.dbs[i].db = db
	}
}

func (h *history) close() {
	for _, d := range h.dbs {
		d.db.Close()
	}
	if err := h.store.Close(); err != nil {
		h.t.Fatalf("seed %d: close: %v", h.seed, err)
	}
}

func (h *history) run(steps int) {
	for range steps {
		h.steps++
		d := h.dbs[h.rng.IntN(len(h.dbs))]
		if h.rng.IntN(150) == 0 {
			h.close()
			h.open()
			h.openDatabases()
			h.compare(h.dbs[0], tree.Path{})
			h.compare(h.dbs[1], tree.Path{})
			continue
		}
		if h.rng.IntN(60) == 0 {
			h.reindex(d)
		}
		if h.rng.IntN(100) == 0 { // else with tiny steps they are never done
			h.rest(d)
		}
		if h.rng.IntN(50) == 0 && len(d.tree.Plain(nil)) > maxModel {
			h.write(d, tree.Path{}) // mostly with something small
		}
		p := h.target(d)
		h.write(d, p)
		h.compare(d, p)
		h.query(d, h.target(d))
		h.query(d, p.Parent())
		if h.rng.IntN(4) == 0 {
			h.compare(d, h.target(d))
		}
		if h.rng.IntN(20) == 0 {
			h.compare(d, tree.Path{})
			h.check(d)
		}
		if h.t.Failed() {
			return
		}
	}
	h.close()
}

// rest waits until all indexes are built, and looks at their rows.
func (h *history) rest(d twin) {
	if err := enginetest.WaitForIndexes(context.Background(), d.db); err != nil {
		h.failf("wait for the indexes: %v", err)
	}
	h.check(d)
}

// write does one random request in both worlds.
func (h *history) write(d twin, p tree.Path) {
	var req engine.Request
	var err error
	var apply func(nowMillis int64, key string) error
	keys := pathKeys(p)
	switch n := h.rng.IntN(20); {
	case n < 8:
		body := h.body(3)
		h.log = append(h.log, fmt.Sprintf("put %s %s", p, body))
		req.Write, err = put(p, body)
		apply = func(now int64, _ string) error { return d.tree.Put(keys, []byte(body), now) }
	case n < 11:
		h.log = append(h.log, fmt.Sprintf("delete %s", p))
		req.Write = tree.Put(p, tree.Node{})
		apply = func(int64, string) error { d.tree.Delete(keys); return nil }
	case n < 13:
		body := h.priority()
		h.log = append(h.log, fmt.Sprintf("put %s/.priority %s", p, body))
		var node tree.Node
		node, err = tree.DecodePriority(strings.NewReader(body), tree.DecodeOptions{})
		req.Write = tree.PutPriority(p, node)
		apply = func(now int64, _ string) error { return d.tree.PutPriority(keys, []byte(body), now) }
	case n < 15:
		body := h.body(2)
		h.log = append(h.log, fmt.Sprintf("post %s %s", p, body))
		req.Write, err = put(p, body)
		req.Push = true
		apply = func(now int64, key string) error { return d.tree.Put(append(keys, key), []byte(body), now) }
	default:
		body := h.patch(d, p)
		h.log = append(h.log, fmt.Sprintf("patch %s %s", p, body))
		req.Write, err = tree.DecodePatch(strings.NewReader(body), p, tree.DecodeOptions{})
		apply = func(now int64, _ string) error { return d.tree.Patch(keys, []byte(body), now) }
	}
	commit := engine.Commit{}
	if err == nil {
		defer func() { h.checkMarks(h.before, d.tree, commit) }()
		h.condition(d, &req)
		req.Who = admin
		commit, err = h.send(d, req)
		if fault.KindOf(err) == fault.Precondition && strings.HasPrefix(req.IfMatch, "wrong") {
			return
		}
	}
	now := commit.Millis
	if err != nil {
		now = 1
	}
	// The model refuses as a whole, too.
	if modelErr := apply(now, commit.Key); (modelErr == nil) != (err == nil) {
		h.failf("the engine says %v, the model %v", err, modelErr)
	}
	d.past.note(commit.Position, d.tree)
}

// checkMarks holds what a commit says about its deletes and priorities against the
// tree before and after it.
func (h *history) checkMarks(before, after *model.Tree, c engine.Commit) {
	for _, a := range c.Assignments {
		was, is := before.Export(pathKeys(a.Path)), after.Plain(pathKeys(a.Path))
		switch {
		case c.Position == 0:
		case a.Priority:
			void, object := is == "null", is[0] == '{' || is[0] == '['
			if a.Void != void || a.Object != object {
				h.failf("the priority of %s is void %v, of an object %v; want %v, %v", a.Path, a.Void, a.Object, void, object)
			}
		case a.Node.IsNull() && a.Void != (was == "null"):
			h.failf("the delete of %s is marked as one of nothing: %v, but it was %.100s", a.Path, a.Void, was)
		}
	}
}

// send writes a request. Some are prepared, and have their turn only when another
// write was committed.
func (h *history) send(d twin, req engine.Request) (engine.Commit, error) {
	h.before = d.tree.Clone()
	if req.IfMatch != "" || h.rng.IntN(3) > 0 {
		return d.db.Write(context.Background(), req)
	}
	return d.db.WriteLate(context.Background(), req, h.rng.IntN(200), func() {
		body, at := h.body(1), tree.Path{}.Child("meanwhile")
		if h.rng.IntN(2) == 0 {
			at = req.At.Child(h.key())
		}
		h.log = append(h.log, fmt.Sprintf("but before that put %s %s", at, body))
		w, err := put(at, body)
		if err != nil {
			return
		}
		commit, err := d.db.Write(context.Background(), engine.Request{Write: w, Who: admin})
		if err != nil {
			h.failf("the write between: %v", err)
		}
		if err := d.tree.Put(pathKeys(at), []byte(body), commit.Millis); err != nil {
			h.failf("the model of the write between: %v", err)
		}
		d.past.note(commit.Position, d.tree)
		h.before = d.tree.Clone()
	})
}

// condition makes some writes conditional.
func (h *history) condition(d twin, req *engine.Request) {
	if req.Push || req.Patch || h.rng.IntN(5) > 0 {
		return
	}
	if h.rng.IntN(3) == 0 {
		req.IfMatch = "wrong"
		return
	}
	s := d.db.View()
	defer s.Close()
	of := s.ETag
	if len(req.Assignments) == 1 && req.Assignments[0].Priority {
		of = s.PriorityETag // it replaces no more than that
	}
	tag, err := of(req.At)
	if err != nil {
		h.failf("etag of %s: %v", req.At, err)
	}
	req.IfMatch = tag
}

// compare holds every way to read a location against the model.
func (h *history) compare(d twin, p tree.Path) {
	s := d.db.View()
	defer s.Close()
	keys := pathKeys(p)
	h.equal(p, "plain", d.tree.Plain(keys), func() (*store.Printer, error) { return s.Printer(p, tree.Plain) })
	h.equal(p, "export", d.tree.Export(keys), func() (*store.Printer, error) { return s.Printer(p, tree.Export) })
	h.equal(p, "shallow", d.tree.Shallow(keys), func() (*store.Printer, error) { return s.Shallow(p) })
	priority, err := s.Priority(p)
	if got := string(tree.AppendLeaf(nil, priority)); err != nil || got != d.tree.Priority(keys) {
		h.failf("priority of %s = %s, %v, want %s", p, got, err, d.tree.Priority(keys))
	}
	tag, err := s.ETag(p)
	if isNull := d.tree.Plain(keys) == "null"; err != nil || (tag == state.NullETag) != isNull {
		h.failf("etag of %s = %s, %v", p, tag, err)
	}
	if tag, err = s.PriorityETag(p); err != nil || (tag == state.NullETag) != priority.IsNull() {
		h.failf("etag of the priority of %s = %s, %v", p, tag, err)
	}
}

func (h *history) equal(p tree.Path, form, want string, printer func() (*store.Printer, error)) {
	pr, err := printer()
	if err != nil {
		h.failf("%s of %s: %v", form, p, err)
		return
	}
	var got bytes.Buffer
	if err := pr.PrintTo(&got); err != nil {
		h.failf("%s of %s: %v", form, p, err)
	}
	if err := pr.Close(); err != nil {
		h.failf("close: %v", err)
	}
	if got.String() != want {
		h.failf("%s of %s\n got %s\nwant %s", form, p, got.String(), want)
	}
}

// check looks at the rows themselves.
func (h *history) check(d twin) {
	view := h.store.View()
	defer view.Release()
	if err := checkData(view.Tree(d.id)); err != nil {
		h.failf("check: %v", err)
	}
	s := d.db.View()
	defer s.Close()
	if err := checkIndexes(s); err != nil {
		h.failf("check the indexes: %v", err)
	}
}

func (h *history) failf(format string, args ...any) {
	h.t.Helper()
	last := h.log[max(0, len(h.log)-20):]
	h.t.Errorf("-model.seed=%d, step %d: %s\nlast operations:\n%s", h.seed, h.steps, fmt.Sprintf(format, args...), strings.Join(last, "\n"))
	h.t.FailNow()
}

func pathKeys(p tree.Path) []string {
	keys := []string{}
	for key := range p.Keys() {
		keys = append(keys, key)
	}
	return keys
}
