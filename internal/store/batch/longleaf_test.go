package batch

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// allocated returns how many bytes of memory f takes, all together.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestWritesAtALongString: what a write at or below a long string takes in memory and in
// the write-ahead log does not grow with the string, unless its row is a new one.
func TestWritesAtALongString(t *testing.T) {
	const long = 8 << 20
	patch := func(body string) tree.Write { return patchWrite(t, "a", body) }
	priority := tree.PutPriority(parsePath(t, "a/big"), tree.LeafNode(tree.IntegerLeaf(5)))
	for _, c := range []struct {
		name     string
		before   string // the priority
		write    tree.Write
		rows     uint32 // with that of the log
		rewrites bool
	}{
		{"a delete below it", "null", putWrite(t, "a/big/x", "null"), 1, false},
		{"a delete below one with a priority", "1", putWrite(t, "a/big/x/y", "null"), 1, false},
		{"a priority below it", "null", tree.PutPriority(parsePath(t, "a/big/x"), tree.LeafNode(tree.IntegerLeaf(5))), 1, false},
		{"deletes and a priority below it", "null", patch(`{"big/x":null,"big/y/z":null,"big/z/.priority":3}`), 1, false},
		{"a delete", "null", putWrite(t, "a/big", "null"), 4, false},
		{"another leaf", "1", putWrite(t, "a/big", "7"), 4, false},
		{"a leaf below it", "1", putWrite(t, "a/big/x", "7"), 3, false},
		{"a leaf and a delete below it", "1", patch(`{"big/y":null,"big/x":7,"big/z":null}`), 3, false},
		{"the first priority", "null", priority, 7, true},
		{"another priority", "1", priority, 4, true},
		{"no priority", "1", tree.PutPriority(parsePath(t, "a/big"), tree.Node{}), 4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, 100)
			s.put("a/big", fmt.Sprintf(`{".value":"%s",".priority":%s}`, strings.Repeat("x", long), c.before))
			s.put("a/other", "1")
			if err := s.DB.LogData(nil, pebble.Sync); err != nil { // nothing is written in the background
				t.Fatal(err)
			}
			var b *Batch
			var err error
			took := allocated(func() {
				b, err = s.Build(s.live(), tree.Change{Write: c.write, Position: 9, Millis: 1}, s.indexes, nil, nil)
			})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if b.Rows.Count() > c.rows {
				t.Errorf("the write has %d rows, want %d", b.Rows.Count(), c.rows)
			}
			most := 0
			if c.rewrites {
				most = long
			}
			if b.Rows.Len() > most+2<<10 {
				t.Errorf("the write has %d bytes", b.Rows.Len())
			}
			if took > 3*most+1<<20 { // Pebble's batches grow by doubling
				t.Errorf("the write takes %d bytes of memory", took)
			}
		})
	}
}

// TestDeletesBelowALongStringReadItOnce: however many there are in a patch.
func TestDeletesBelowALongStringReadItOnce(t *testing.T) {
	const long = 1 << 20
	s := newStand(t, 100)
	s.put("a/big", `"`+strings.Repeat("x", long)+`"`)
	var body strings.Builder
	for i := range 50 {
		fmt.Fprintf(&body, `,"big/k%d":null`, i)
	}
	r := s.live()
	r.Cost = &seek.Cost{}
	b, err := s.Build(r, tree.Change{Write: patchWrite(t, "a", "{"+body.String()[1:]+"}"), Position: 9, Millis: 1}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if r.Cost.Bytes > 2*long {
		t.Errorf("50 deletes below a string of %d bytes read %d", long, r.Cost.Bytes)
	}
}

// TestRowsOfLeaves makes random writes at, above and below leaves, of which some are long.
// Each leaf is a row of its own, so that the rows follow from the tree; what is found
// out about each assignment must be what the editor of the whole tree finds out.
func TestRowsOfLeaves(t *testing.T) {
	const rounds = 400
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	indexes := &layout.Indexes{Here: []layout.Index{{Number: 1, Order: query.ByValue()}, {Number: 2, Order: query.ByChild(parsePath(t, "b"))}}}
	indexes.Wildcard = indexes
	longs := []string{strings.Repeat("x", longRow), strings.Repeat(`\"é\\`, longRow/4), strings.Repeat(`,\".priority\":1}`, longRow/10)}
	leaf := func() string {
		return []string{"1", "-0.5", "true", `"s"`, "null", `"` + longs[rng.IntN(len(longs))] + `"`, `"` + longs[rng.IntN(len(longs))] + `"`}[rng.IntN(7)]
	}
	priority := func() string { return []string{"null", "1", `"p"`, `",\".priority\":2}"`}[rng.IntN(4)] }
	path := func() string {
		return []string{"a", "a/b", "a/b/a", "a/b/b", "a/b/b/a", "b", "b/a", "b/b", "b/a/b"}[rng.IntN(9)]
	}
	body := func() string {
		switch rng.IntN(4) {
		case 0:
			return fmt.Sprintf(`{"a":%s,"b":{"a":%s}}`, leaf(), leaf())
		case 1:
			return fmt.Sprintf(`{".value":%s,".priority":%s}`, leaf(), priority())
		}
		return leaf()
	}
	random := func() tree.Write {
		switch rng.IntN(4) {
		case 0:
			n, err := tree.Decode(strings.NewReader(priority()), tree.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return tree.PutPriority(parsePath(t, path()), n)
		case 1:
			for {
				text := fmt.Sprintf(`{%q:%s,%q:null,%q:%s,%q:%s}`, path(), body(), path(), path()+"/c", leaf(), path()+"/.priority", priority())
				if w, err := tree.DecodePatch(strings.NewReader(text), tree.Path{}, tree.DecodeOptions{}); err == nil {
					return w
				} // the paths overlap
			}
		}
		return putWrite(t, path(), body())
	}
	s := newStand(t, -1)
	s.indexes = indexes
	var model tree.Node
	for range rounds {
		w := random()
		e, marks := tree.NewEditor(model), map[tree.Path]mark{}
		e.ApplyEach(tree.Path{}, slices.Values(w.Assignments), func(a tree.Assignment) { marks[a.Path] = mark{e.Leaf(), e.Void(), e.Object()} })
		model = e.Node()
		s.position++
		b, err := s.Build(s.live(), tree.Change{Write: w, Position: s.position, Millis: 1}, s.indexes, nil, &s.frontier)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, a := range b.Assignments() {
			if got, want := (mark{a.Leaf, a.Void, a.Object}), marks[a.Path]; got != want {
				t.Errorf("seed %d: the assignment to %s is marked %+v, want %+v", seed, a.Path, got, want)
			}
		}
		if err := s.DB.Apply(b.Rows, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		b.Close()
		s.check()
		fresh := newStand(t, -1)
		fresh.apply(tree.Put(tree.Path{}, model), nil)
		if got, want := s.dataRows(), fresh.dataRows(); !slices.Equal(got, want) {
			t.Errorf("seed %d: the rows are not those of the tree: %d, want %d", seed, len(got), len(want))
		}
		if t.Failed() {
			t.Fatalf("seed %d: after %.300v", seed, w)
		}
	}
}
