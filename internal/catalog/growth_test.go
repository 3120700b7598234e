package catalog_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// growthSize is n of the growth suite, which runs everything at n, 4n and 16n.
var growthSize = flag.Int("growth.n", 100, "the smallest size of the growth suite")

var root = auth.Identity{Admin: true}

// A growing is a cost that could grow with something. It prepares so much of that and
// returns what is then measured, which is done so many times.
type growing struct {
	name string
	with string // what there is n of
	once bool   // it can be done only once
	run  func(t *testing.T, n int) (measured func())
}

// TestGrowth holds what an operation allocates, at n, 4n and 16n of what could make it
// cost more, to at most double. It prints what it takes of the processor, as a ratio
// to n: that is not held to anything, as other programs run beside.
func TestGrowth(t *testing.T) {
	for _, g := range []growing{
		{"push and take a job", "jobs done before", false, growQueue},
		{"drop a database", "children in it", true, growDrop},
		{"open a database", "databases", false, growDatabases},
		{"write", "databases written to", false, growWriters},
		{"write beside watches", "watches elsewhere", false, growWatches},
		{"resume a stream", "commits behind", false, growResume},
		{"open a window", "children in it", false, growWindow},
	} {
		t.Run(strings.ReplaceAll(g.name, " ", "_"), func(t *testing.T) {
			var base cost
			for i, factor := range []int{1, 4, 16} {
				c := measure(t, g, factor**growthSize)
				if i == 0 {
					base = c
				}
				t.Logf("%-20s %8d %-22s %6.0f allocations (%.2f) %9.0f bytes (%.2f) processor (%.2f)", g.name, factor**growthSize, g.with,
					c.allocations, c.allocations/base.allocations, c.bytes, c.bytes/base.bytes, c.nanos/base.nanos)
				// Under the race detector pools forget at random.
				if c.allocations > 2*base.allocations+20 && !raceEnabled {
					t.Errorf("%s allocates %.0f times with %d %s, and %.0f times with %d", g.name, c.allocations, factor**growthSize, g.with, base.allocations, *growthSize)
				}
			}
		})
	}
}

// A cost is that of one operation.
type cost struct{ allocations, bytes, nanos float64 }

// measure returns the cost of what is measured, the least of several rounds: other
// goroutines of the process allocate, too.
func measure(t *testing.T, g growing, n int) cost {
	t.Helper()
	measured := g.run(t, n)
	times, rounds := 20, 5
	if g.once {
		times, rounds = 1, 1
	}
	var least cost
	for round := range rounds {
		var before, after runtime.MemStats
		runtime.GC()
		began := processorTime()
		runtime.ReadMemStats(&before)
		for range times {
			measured()
		}
		runtime.ReadMemStats(&after)
		c := cost{float64(after.Mallocs-before.Mallocs) / float64(times), float64(after.TotalAlloc-before.TotalAlloc) / float64(times),
			float64(processorTime()-began) / float64(times)}
		if round == 0 || c.allocations < least.allocations {
			least = c
		}
	}
	return least
}

func newDatabase(t *testing.T) (*catalog.Catalog, *engine.Database) {
	t.Helper()
	c, closeAll := open(t, vfs.NewMem())
	t.Cleanup(closeAll)
	d, err := c.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	return c, d
}

func mustWrite(t *testing.T, d *engine.Database, w tree.Write, push bool) engine.Commit {
	t.Helper()
	commit, err := d.Write(context.Background(), engine.Request{Write: w, Push: push, Who: root})
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

func number(n int) tree.Node { return tree.LeafNode(tree.IntegerLeaf(int64(n))) }

func at(t *testing.T, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fill writes n children in one write.
func fill(t *testing.T, d *engine.Database, p tree.Path, n int) {
	t.Helper()
	w := tree.Write{At: p, Patch: true}
	for i := range n {
		w.Assignments = append(w.Assignments, tree.Assignment{Path: p.Child(fmt.Sprintf("k%07d", i)), Node: number(i)})
	}
	mustWrite(t, d, w, false)
}

// growQueue has a queue with 40 jobs: one is added, the oldest is looked at and
// deleted.
func growQueue(t *testing.T, n int) func() {
	_, d := newDatabase(t)
	jobs := at(t, "jobs")
	var keys []string
	turn := func() {
		keys = append(keys, mustWrite(t, d, tree.Put(jobs, number(1)), true).Key)
		if len(keys) <= 40 {
			return
		}
		s := d.View()
		defer s.Close()
		oldest, err := s.Select(jobs, query.Query{Order: query.ByKey(), Limit: 1}, tree.Plain)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = oldest.Close() }()
		var text strings.Builder
		if err := oldest.PrintTo(&text); err != nil || !strings.Contains(text.String(), keys[0]) {
			t.Fatalf("the oldest job is %s, %v, want %s", text.String(), err, keys[0])
		}
		mustWrite(t, d, tree.Put(jobs.Child(keys[0]), tree.Node{}), false)
		keys = keys[1:]
	}
	for range n + 40 {
		turn()
	}
	return turn
}

func growDrop(t *testing.T, n int) func() {
	c, d := newDatabase(t)
	fill(t, d, at(t, "a"), n)
	return func() {
		if err := c.Drop("one"); err != nil {
			t.Fatal(err)
		}
	}
}

func growDatabases(t *testing.T, n int) func() {
	fs := vfs.NewMem()
	c, closeAll := open(t, fs)
	for i := range n + 200 {
		if _, err := c.Create(fmt.Sprintf("db-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	closeAll()
	c, closeAll = open(t, fs)
	t.Cleanup(closeAll)
	next := 0
	turn := func() {
		if _, err := c.Database(fmt.Sprintf("db-%d", next)); err != nil {
			t.Fatal(err)
		}
		next++
	}
	for range n {
		turn()
	}
	return turn
}

func growWriters(t *testing.T, n int) func() {
	c, d := newDatabase(t)
	for i := range n {
		other, err := c.Create(fmt.Sprintf("db-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, other, tree.Put(tree.Path{}, number(i)), false)
	}
	return func() { mustWrite(t, d, tree.Put(at(t, "a/b"), number(1)), false) }
}

func growWatches(t *testing.T, n int) func() {
	_, d := newDatabase(t)
	for i := range n {
		w, _, err := d.Watches().Open(watch.Request{Path: at(t, fmt.Sprintf("elsewhere/%d", i)), Who: root, Wake: func() {}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
	}
	value := 0
	return func() {
		value++
		mustWrite(t, d, tree.Put(at(t, "a/b"), number(value)), false)
	}
}

func growResume(t *testing.T, n int) func() {
	_, d := newDatabase(t)
	for i := range n {
		mustWrite(t, d, tree.Put(at(t, "elsewhere"), number(i)), false)
	}
	return func() {
		w, _, err := d.Watches().Open(watch.Request{Path: at(t, "here"), Who: root, Wake: func() {}, Resume: true, Behind: 1})
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, ok := w.Next()
			if !ok {
				break
			}
			if e.Content != nil {
				_ = e.Content.PrintTo(io.Discard)
				_ = e.Content.Close()
			}
		}
		w.Close()
	}
}

func growWindow(t *testing.T, n int) func() {
	_, d := newDatabase(t)
	list := at(t, "list")
	fill(t, d, list, n)
	q := &query.Query{Order: query.ByKey(), Limit: 2_000_000_000, Last: true}
	first, _, err := d.Watches().Open(watch.Request{Path: list, Query: q, Who: root, Wake: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Close)
	return func() {
		w, _, err := d.Watches().Open(watch.Request{Path: list, Query: q, Who: root, Wake: func() {}})
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
}
