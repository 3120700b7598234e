package store

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/tree"
)

// A glance is what somebody who is charged for it sees at a path.
type glance struct {
	exists         bool
	leaf, priority tree.Leaf
}

// checkSight compares what is seen at a path in a view with what its rows say, and with what reading these costs. It
// returns how much of it was remembered. What else is in the chunk may have changed the costs since.
func checkSight(v *View, id layout.ID, p tree.Path, most int) (known int, err error) {
	var got, want glance
	var gotCost, wantCost Cost
	sighted, read := v.Tree(id).Counting(&gotCost), v.Tree(id).Counting(&wantCost)
	for _, a := range []memo.Aspect{memo.Existence, memo.LeafThere} {
		if v.store.memos.Sight(&memo.Lookup{ID: id, Path: p, Aspect: a, View: v.number}) != nil {
			known++
		}
	}
	if got.exists, err = sighted.Exists(p); err != nil {
		return known, err
	}
	gotWithin, wantWithin := false, false
	gotBefore := gotCost
	if got.leaf, got.priority, gotWithin, err = sighted.LookWithin(p, most); err != nil {
		return known, err
	}
	if want.exists, err = exists(read, p); err != nil {
		return known, err
	}
	wantBefore := wantCost
	if want.leaf, want.priority, wantWithin, err = lookWithin(read, p, most); err != nil {
		return known, err
	}
	if gotWithin != wantWithin && gotCost.Bytes-gotBefore.Bytes != wantCost.Bytes-wantBefore.Bytes {
		got.leaf, got.priority, want.leaf, want.priority = tree.Leaf{}, tree.Leaf{}, tree.Leaf{}, tree.Leaf{}
		gotWithin = wantWithin
	}
	if known == 0 && gotCost != wantCost || max(gotCost.Bytes, wantCost.Bytes) > min(gotCost.Bytes, wantCost.Bytes)+2*v.store.opts.ChunkBytes+200 {
		err = fmt.Errorf("%s in view %d costs %+v, want %+v", p, v.number, gotCost, wantCost)
	}
	if got != want || gotWithin != wantWithin {
		err = fmt.Errorf("%s in view %d is seen as %+v, want %+v", p, v.number, got, want)
	}
	return known, err
}

// TestSights: what rules look up is what the rows say, and costs them the same but for what a chunk may grow by, in every view and whatever is written at, above,
// below and beside it.
func TestSights(t *testing.T) {
	t.Parallel()
	values := []string{
		`null`, `5`, `{"b":{"c":{"k":1,"l":2},"e":"text"},"x":[1,2,3]}`, `{".value":1,".priority":3}`,
		`{".priority":"p","c":{"m":1},"x":{".value":"text",".priority":1}}`, `{"k":true,"l":"long enough to be split"}`,
	}
	seed := rand.Uint64()
	atEveryLimit(t, func(s *stand) {
		rng := rand.New(rand.NewPCG(seed, uint64(s.opts.ChunkBytes)))
		held := []*View{s.View()}
		known := 0
		for range 400 {
			s.put(memoPlaces[rng.IntN(len(memoPlaces))], values[rng.IntN(len(values))])
			if held = append(held, s.View()); len(held) > 4 {
				held[0].Release()
				held = held[1:]
			}
			p := parsePath(s, memoPlaces[rng.IntN(len(memoPlaces))])
			for range 6 { // in old views, too
				found, err := checkSight(held[rng.IntN(len(held))], s.id, p, rng.IntN(60))
				if err != nil {
					s.Fatalf("seed %d: %v", seed, err)
				}
				known += found
			}
		}
		for _, v := range held {
			v.Release()
		}
		if known < 400 {
			s.Errorf("seed %d: only %d sights were remembered: the test tests little", seed, known)
		}
	})
}

// TestSightsOfConcurrentReads: the same while commits are under way that no view shows yet.
func TestSightsOfConcurrentReads(t *testing.T) {
	t.Parallel()
	s := newStand(t, Options{ChunkBytes: 8})
	for _, at := range memoPlaces[1:] {
		s.put(at+"/all", `{"k":"text","l":"text"}`)
	}
	var known atomic.Int64
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(5, uint64(i)))
			for range 2000 {
				at := memoPlaces[1+rng.IntN(len(memoPlaces)-1)]
				view := s.View()
				found, err := checkSight(view, s.id, parsePath(t, at+"/all/k"), 60)
				view.Release()
				if err != nil {
					t.Error(err)
					return
				}
				known.Add(int64(found))
			}
		})
	}
	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }()
	rng := rand.New(rand.NewPCG(5, 99))
	for i := 0; ; i++ {
		select {
		case <-done:
			if known.Load() == 0 {
				t.Error("nothing was remembered")
			}
			return
		default:
		}
		w := putWrite(t, memoPlaces[1+rng.IntN(len(memoPlaces)-1)]+"/all/k", fmt.Sprint(i))
		if i%3 == 0 {
			w = putWrite(t, w.At.String(), "null")
		}
		if err := s.Commit(s.build(w), forgotten{}); err != nil {
			t.Fatal(err)
		}
		s.position++
	}
}

// TestSightsKeepNoRows: of what a look-up has read nothing is kept but what it has found. The text of a leaf among priorities is a
// part of that of its whole chunk.
func TestSightsKeepNoRows(t *testing.T) {
	t.Parallel()
	s := newStand(t, Options{})
	s.put("a", `{"b":{".value":"leaf",".priority":"priority"},"c":"text"}`)
	view := s.View()
	defer view.Release()
	var cost Cost
	data, p := view.Tree(s.id).Counting(&cost), parsePath(t, "a/b")
	for range 2 { // it is remembered the second time
		leaf, priority, err := data.Look(p)
		if err != nil {
			t.Fatal(err)
		}
		kept := s.memos.Sight(&memo.Lookup{ID: s.id, Path: p, Aspect: memo.LeafThere, View: view.number})
		if kept == nil {
			continue
		}
		if kept.Leaf != leaf || kept.Priority != priority {
			t.Errorf("%+v and %+v are remembered, want %+v and %+v", kept.Leaf, kept.Priority, leaf, priority)
		}
		if unsafe.StringData(kept.Leaf.Text()) == unsafe.StringData(leaf.Text()) || unsafe.StringData(kept.Priority.Text()) == unsafe.StringData(priority.Text()) {
			t.Error("what is remembered keeps the text of the whole chunk")
		}
		return
	}
	t.Error("nothing was remembered")
}

// TestSightsAreBounded: however many paths are looked up, and however long, what is remembered of them stays small, and goes with
// its database.
func TestSightsAreBounded(t *testing.T) {
	t.Parallel()
	var m memo.Memos
	m.Init(16 << 20)
	look := func(id layout.ID, path string, keep bool) bool {
		l := memo.Lookup{ID: id, Path: parsePath(t, path), Aspect: memo.LeafThere, View: 1}
		found := m.Sight(&l) != nil
		if keep && !found {
			m.KeepSight(&l, memo.Sight{Leaf: tree.IntegerLeaf(1)})
		}
		return found
	}
	count := func(id layout.ID, n int) (known int) {
		for i := range n {
			if look(id, fmt.Sprintf("users/%d", i), false) {
				known++
			}
		}
		return known
	}
	const paths = 20_000
	for range 3 {
		for i := range paths {
			look(1, fmt.Sprintf("users/%d", i), true)
			look(1, fmt.Sprintf("%0300d/%d", i, i), true)
		}
	}
	if n := count(1, paths); n > 1024 {
		t.Errorf("%d of %d paths are remembered", n, paths)
	} else if _, bytes, most := m.Size(); bytes < int64(n)*100 || bytes > most/4 {
		t.Errorf("%d paths that are remembered count as %d bytes of %d", n, bytes, most)
	}
	for range 3 {
		for i := range 300 {
			look(2, fmt.Sprintf("users/%d", i), true)
		}
	}
	if n := count(2, 300); n < 285 {
		t.Errorf("of 300 paths that came three times %d are remembered", n)
	}
	if m.Forget(2); count(2, 300) > 0 || m.Sight(&memo.Lookup{ID: 2, Path: parsePath(t, "users/1"), View: 9}) != nil {
		t.Error("sights of a database that was dropped are remembered")
	}
	m.Forget(1)
	if _, bytes, _ := m.Size(); bytes != 0 {
		t.Errorf("%d bytes are counted, and nothing is remembered", bytes)
	}
}
