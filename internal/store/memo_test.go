package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A reading is one kind of read, and where.
type reading struct {
	at     tree.Path
	form   tree.Form
	query  *query.Query // nil for the node itself
	arrays bool         // if its result is one
	keys   bool         // shallow
	alone  bool         // without the cache of rows
}

// text reads in a view. Whoever counts the cost gets no memo.
func (r reading) text(v *View, id layout.ID, cost *seek.Cost) (text string, recalled bool, err error) {
	t := v.Tree(id)
	t.reader.Cost = cost
	if r.alone {
		t.reader.Rows = nil
	}
	var out bytes.Buffer
	if r.query != nil {
		s, err := t.Select(r.at, *r.query, nil, r.form)
		if err != nil {
			return "", false, err
		}
		if r.arrays {
			s.AllowArray()
		}
		err = errors.Join(s.PrintTo(&out), s.Close())
		return out.String(), s.recalled, err
	}
	p, err := t.printer(r.at, &Printer{form: r.form, shallow: r.keys})
	if err != nil {
		return "", false, err
	}
	err = errors.Join(p.PrintTo(&out), p.Close())
	return out.String(), p.recalled, err
}

// check compares a read with one that knows no memos, and reports whether there
// was one.
func (r reading) check(v *View, id layout.ID) (bool, error) {
	got, recalled, err := r.text(v, id, nil)
	if err != nil {
		return false, err
	}
	want, _, err := r.text(v, id, &seek.Cost{})
	if err == nil && got != want {
		err = fmt.Errorf("%+v in view %d is %s, want %s", r, v.number, got, want)
	}
	return recalled, err
}

func randomReading(t testing.TB, rng *rand.Rand, places []string) reading {
	t.Helper()
	r := reading{at: parsePath(t, places[rng.IntN(len(places))]), form: tree.Form(rng.IntN(2))}
	orders := []query.Order{query.ByKey(), query.ByPriority(), query.ByValue()}
	switch rng.IntN(3) {
	case 0:
		r.keys, r.form = true, tree.Plain
	case 1:
		limit := rng.IntN(3)
		r.arrays = rng.IntN(2) == 0
		r.query = &query.Query{Order: orders[rng.IntN(len(orders))], Limit: limit, Last: limit > 0}
	}
	return r
}

var memoPlaces = []string{"/", "a", "a/b", "a/b/c", "a/x", "d", "d/1", "d/7"}

// TestMemos: a memo shows what the rows show, in every view, whatever is written
// at, above, below and beside it.
func TestMemos(t *testing.T) {
	values := []string{
		`null`, `5`, `{"b":{"c":{"k":1,"l":2},"e":"text"},"x":[1,2,3]}`, `{".value":1,".priority":3}`,
		`{".priority":"p","c":{"m":1},"x":{".value":2,".priority":1}}`, `[{"a":1},{"a":2},{"a":3}]`, `{"k":true,"l":"long enough to be split"}`,
	}
	atEveryLimit(t, func(s *stand) {
		rng := rand.New(rand.NewPCG(3, uint64(s.opts.ChunkBytes)))
		held := []*View{s.View()}
		recalled := 0
		for range 400 {
			s.put(memoPlaces[rng.IntN(len(memoPlaces))], values[rng.IntN(len(values))])
			if held = append(held, s.View()); len(held) > 4 {
				held[0].Release()
				held = held[1:]
			}
			r := randomReading(s, rng, memoPlaces)
			for range 6 { // in old views, too
				r.arrays = r.arrays != (rng.IntN(4) == 0)
				memo, err := r.check(held[rng.IntN(len(held))], s.id)
				if err != nil {
					s.Fatal(err)
				}
				if memo {
					recalled++
				}
			}
		}
		for _, v := range held {
			v.Release()
		}
		if recalled == 0 && s.opts.ChunkBytes < 64 {
			s.Error("there was no memo")
		}
	})
}

// TestMemosOfConcurrentReads: the same while commits are under way that no view
// shows yet.
func TestMemosOfConcurrentReads(t *testing.T) {
	s := newStand(t, Options{ChunkBytes: 8})
	for _, at := range memoPlaces[1:] {
		s.put(at+"/all", `{"k":"text","l":"text"}`)
	}
	var recalled atomic.Int32
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(5, uint64(i)))
			for range 1000 {
				view := s.View()
				memo, err := randomReading(t, rng, memoPlaces).check(view, s.id)
				view.Release()
				if err != nil {
					t.Error(err)
					return
				}
				if memo {
					recalled.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }()
	rng := rand.New(rand.NewPCG(5, 99))
	for i := 0; ; i++ {
		select {
		case <-done:
			if recalled.Load() == 0 {
				t.Error("there was no memo")
			}
			return
		default:
		}
		w := putWrite(t, memoPlaces[1+rng.IntN(len(memoPlaces)-1)]+"/all/k", fmt.Sprint(i))
		if err := s.Commit(s.build(w), forgotten{}); err != nil {
			t.Fatal(err)
		}
		s.position++
	}
}

// TestMemoAllocations: a text is recalled without a copy.
func TestMemoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := newStand(t, Options{})
	s.put("a", children(1000))
	view := s.View()
	defer view.Release()
	at := parsePath(t, "a")
	allocations := testing.AllocsPerRun(50, func() {
		printer, err := view.Tree(s.id).Shallow(at)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(printer.PrintTo(io.Discard), printer.Close()); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 1 {
		t.Errorf("a shallow read that is remembered allocates %v times, want the printer alone", allocations)
	}
}

// TestMemosAreCounted: a read of a split node is a hit or a miss, once. A read of a chunk,
// an explained read and a digest are neither.
func TestMemosAreCounted(t *testing.T) {
	s := newStand(t, Options{ChunkBytes: 40})
	s.put("split", children(20))
	s.put("small", `{"a":1}`)
	split, small := parsePath(t, "split"), parsePath(t, "small")
	byKey := &query.Query{Order: query.ByKey(), Limit: 3}
	digest := func(view *View) error {
		_, err := view.Tree(s.id).Digest(ETag, split, func() (string, error) { return "digest", nil })
		return err
	}
	read := func(r reading) func(*View) error {
		return func(v *View) error { _, _, err := r.text(v, s.id, nil); return err }
	}
	for _, c := range []struct {
		name         string
		read         func(*View) error
		hits, misses uint64
	}{
		{"first read", read(reading{at: split}), 0, 1},
		{"second read, which is remembered", read(reading{at: split}), 0, 1},
		{"third read", read(reading{at: split}), 1, 0},
		{"read in another form", read(reading{at: split, keys: true}), 0, 1},
		{"first query", read(reading{at: split, query: byKey}), 0, 1},
		{"second query", read(reading{at: split, query: byKey}), 0, 1},
		{"third query", read(reading{at: split, query: byKey}), 1, 0},
		{"chunk", read(reading{at: small}), 0, 0},
		{"query in a chunk", read(reading{at: small, query: byKey}), 0, 0},
		{"no data", read(reading{at: parsePath(t, "none")}), 0, 0},
		{"explained read", func(v *View) error { _, err := v.Tree(s.id).Explain(split, nil, nil); return err }, 0, 0},
		{"digest", digest, 0, 0},
		{"digest that is remembered", digest, 0, 0},
		{"read after a write", func(v *View) error {
			s.put("split/new", "1")
			newest := s.View()
			defer newest.Release()
			return read(reading{at: split})(newest)
		}, 0, 1},
	} {
		before := s.Stats()
		view := s.View()
		err := c.read(view)
		view.Release()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		after := s.Stats()
		if hits, misses := after.MemoHits-before.MemoHits, after.MemoMisses-before.MemoMisses; hits != c.hits || misses != c.misses {
			t.Errorf("%s: %d hits and %d misses, want %d and %d", c.name, hits, misses, c.hits, c.misses)
		}
	}
}

// TestMemosAreBounded: many texts take no more than their part of the cache, and
// none is left of a database that was dropped.
func TestMemosAreBounded(t *testing.T) {
	s := newStand(t, Options{ChunkBytes: -1, CacheBytes: 64 << 10})
	s.put("a", children(200))
	view := s.View()
	defer view.Release()
	for limit := range 100 {
		r := reading{at: parsePath(t, "a"), query: &query.Query{Order: query.ByKey(), Limit: limit + 1}}
		for range 2 {
			if _, err := r.check(view, s.id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, bytes, most := s.memos.Size(); bytes > most || n == 0 {
		t.Errorf("%d memos take %d bytes, want some, and at most %d bytes", n, bytes, most)
	}
	if err := s.Drop("db"); err != nil {
		t.Fatal(err)
	}
	if n, bytes, _ := s.memos.Size(); bytes != 0 || n != 0 {
		t.Errorf("%d memos of a dropped database are left, with %d bytes", n, bytes)
	}
}
