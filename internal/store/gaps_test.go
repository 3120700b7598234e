package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// TestGapIsRemembered: a read that passes many deleted rows makes the next ones
// jump over them, also from above, from between and from the end, but none of a view
// from before the deletes.
func TestGapIsRemembered(t *testing.T) {
	s := newStand(t, Options{ChunkBytes: -1})
	s.put("a", children(1000))
	before := s.View()
	defer before.Release()
	s.patch("a", deletes(100, 900))
	steps := func(view *View, at string, back bool) int {
		p := parsePath(t, at)
		rows, err := view.Tree(s.id).reader.Stepper(layout.DataPrefix(s.id))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		key := layout.DataKey(nil, s.id, p)
		if back {
			rows.SeekLT(key)
		} else {
			rows.SeekGE(key)
		}
		return rows.Moved()
	}
	after := s.View()
	defer after.Release()
	if n := steps(after, "a/k000100", false); n < 800 {
		t.Fatalf("the first look took %d steps: there is no gap", n)
	}
	steps(after, "a/k000100", false) // which confirms it
	for at, back := range map[string]bool{"a/k000100": false, "a/k000500": false, "a/k0000995": false, "a/k000899": true, "a/k0008995": true} {
		if n := steps(after, at, back); n > 10 {
			t.Errorf("a later look from %s took %d steps, want it to jump over the gap", at, n)
		}
	}
	if n := steps(before, "a/k000500", false); n > 10 {
		t.Errorf("a look in the view before the deletes took %d steps", n)
	}
	s.put("a/k000500", `"again"`)
	s.expect("a/k000500", `"again"`)
	view := s.View()
	defer view.Release()
	if n := steps(view, "a/k000100", false); n > 10 {
		t.Errorf("after a write into the gap a look took %d steps, want the part before it to be known", n)
	}
}

// deletes returns the body of a patch that deletes children with some numbers.
func deletes(from, to int) string {
	var text bytes.Buffer
	for i := from; i < to; i++ {
		fmt.Fprintf(&text, `,"k%06d":null`, i)
	}
	return "{" + text.String()[1:] + "}"
}

// TestGapAndAWriteUnderWay: what a reader finds empty in its view may have been
// written to since. A gap never hides such a row, whether its write began before the
// place was watched or after.
func TestGapAndAWriteUnderWay(t *testing.T) {
	for _, watchFirst := range []bool{false, true} {
		var mu sync.Mutex // held while syncs have to wait
		s := newStand(t, Options{ChunkBytes: -1, GapSteps: 1, SlowSync: func() { mu.Lock(); defer mu.Unlock() }})
		s.put("a", children(1000))
		s.patch("a", deletes(100, 900))
		view := s.View()
		look := func() {
			if _, err := view.Tree(s.id).NextChild(parsePath(t, "a"), "k000099"); err != nil {
				t.Fatal(err)
			}
		}
		if watchFirst {
			look()
		}
		mu.Lock()
		shown := make(visible)
		if err := s.Commit(s.build(putWrite(t, "a/k000500", `"new"`)), shown); err != nil { // it is applied, not synced
			t.Fatal(err)
		}
		look()
		look()
		view.Release()
		mu.Unlock()
		<-shown
		view = s.View()
		got, err := view.Tree(s.id).NextChild(parsePath(t, "a"), "k000099")
		if err != nil || got != "k000500" {
			t.Errorf("watched first: %v: the child after where the gap begins is %q, %v, want the one that was written", watchFirst, got, err)
		}
		view.Release()
	}
}

// TestGapsChangeNothing: a stepper is at the same rows as an iterator that knows no
// gaps, in the live tree and in views, while rows come and go.
func TestGapsChangeNothing(t *testing.T) {
	seeds, writes := uint64(4), 500
	if raceEnabled {
		seeds, writes = 1, 100
	}
	for seed := range seeds {
		s := newStand(t, Options{ChunkBytes: -1, GapSteps: 1, MemTableBytes: 64 << 10})
		s.put("z", children(2))
		done := make(chan struct{})
		var readers sync.WaitGroup
		for reader := range uint64(2) {
			readers.Go(func() {
				random := rand.New(rand.NewPCG(seed, reader))
				for {
					select {
					case <-done:
						return
					default:
					}
					view := s.View()
					compareRows(t, view.Tree(s.id), random, 20)
					view.Release()
				}
			})
		}
		random := rand.New(rand.NewPCG(seed, 99))
		for i := range writes {
			q := queue{stand: s}
			q.apply(randomQueueWrite(random, i))
			if i%10 == 0 {
				compareRows(t, s.Live(s.id), random, 5)
			}
			if i%50 == 0 {
				q.wait()
			}
		}
		close(done)
		readers.Wait()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// randomQueueWrite adds a child or some, or deletes a run of neighbours.
func randomQueueWrite(random *rand.Rand, i int) tree.Write {
	const keys = 300
	parent := tree.Path{}.Child(string(rune('a' + random.IntN(2))))
	w := tree.Write{At: parent, Patch: true}
	first := (i + random.IntN(20)) % keys // it wanders, as a queue does
	if random.IntN(4) == 0 {
		first = random.IntN(keys)
	}
	n := 1 + random.IntN(3)
	node := tree.LeafNode(tree.IntegerLeaf(int64(i)))
	if random.IntN(2) == 0 {
		n, node = 1+random.IntN(60), tree.Node{}
	}
	for k := first; k < min(first+n, keys); k++ {
		w.Assignments = append(w.Assignments, tree.Assignment{Path: parent.Child(fmt.Sprintf("k%04d", k)), Node: node})
	}
	return w
}

// compareRows walks both ways from places at random.
func compareRows(t *testing.T, tr Tree, random *rand.Rand, looks int) {
	t.Helper()
	rows, err := tr.reader.Stepper(layout.DataPrefix(tr.reader.ID))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = rows.Close() }()
	plain, err := tr.reader.Iterator(layout.DataPrefix(tr.reader.ID))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = plain.Close() }()
	for range looks {
		key := layout.DataKey(nil, tr.reader.ID, tree.Path{}.Child(string(rune('a'+random.IntN(3)))).Child(fmt.Sprintf("k%04d", random.IntN(300))))
		got, want := rows.SeekGE, plain.SeekGE
		gotStep, wantStep := rows.Step, plain.Next
		if random.IntN(2) == 0 {
			got, want = rows.SeekLT, plain.SeekLT
			gotStep, wantStep = rows.StepBack, plain.Prev
		}
		gotOK, wantOK := got(key), want(key)
		for range 1 + random.IntN(10) {
			if gotOK != wantOK || gotOK && !bytes.Equal(rows.Key(), plain.Key()) {
				t.Errorf("from %q the stepper is at a row: %v, want %v", key, gotOK, wantOK)
				return
			}
			if !gotOK {
				break
			}
			gotOK, wantOK = gotStep(), wantStep()
		}
	}
}
