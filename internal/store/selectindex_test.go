package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// valueIndexed is an index by value at /l.
var valueIndexed = layout.Index{Number: 1, Order: query.ByValue()}

// newAlikeStand returns a store where /l is indexed by value, results of up to 20
// children are sorted, and up to 4 strings that begin alike.
func newAlikeStand(t *testing.T) *stand {
	s := newStand(t, Options{})
	s.bounds = selectBounds{sorted: 20, alike: 4}
	s.memos.Init(0)
	s.indexes = &layout.Indexes{Children: map[string]*layout.Indexes{"l": {Here: []layout.Index{valueIndexed}}}}
	return s
}

// longText returns a string that is longer than an index row holds. Those of a group
// begin alike.
func longText(group, within int) string {
	return fmt.Sprintf("%06d%s%06d", group, strings.Repeat("x", query.MaxIndexedText), within)
}

// putAlike puts groups of long strings of the given sizes into /l. Their order is
// not that of their keys. It returns the node.
func (s *stand) putAlike(sizes ...int) tree.Node {
	s.Helper()
	var body strings.Builder
	for left, i := slices.Max(sizes), 0; left > 0; left-- {
		for group, size := range sizes {
			if left <= size {
				fmt.Fprintf(&body, `,"k%06d":%q`, i, longText(group, left))
				i++
			}
		}
	}
	text := "{" + body.String()[1:] + "}"
	s.put("/l", text)
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// selected returns the keys that a query by value selects from /l, sorted.
func (s *stand) selected(q query.Query) ([]string, error) {
	s.Helper()
	view := s.View()
	defer view.Release()
	selection, err := view.Tree(s.id).Select(parsePath(s, "/l"), q, &valueIndexed, tree.Plain)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := errors.Join(selection.PrintTo(&text), selection.Close()); err != nil {
		if text.Len() > 0 {
			s.Errorf("%d bytes of %+v are written before %v", text.Len(), shortQuery(q), err)
		}
		return nil, err
	}
	n, err := tree.DecodeBytes(text.Bytes(), tree.DecodeOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var keys []string
	for key := range n.Children() {
		keys = append(keys, key)
	}
	return keys, nil
}

// shortQuery returns a query without the middle of its long bounds, to be printed.
func shortQuery(q query.Query) string {
	return strings.ReplaceAll(fmt.Sprintf("%+v", q), strings.Repeat("x", 64), "")
}

func (s *stand) expectSelected(n tree.Node, q query.Query) {
	s.Helper()
	want := query.Select(n, q)
	slices.SortFunc(want, tree.CompareKeys)
	got, err := s.selected(q)
	if err != nil || !slices.Equal(got, want) {
		s.Errorf("%s selects %d children, %v; want %d", shortQuery(q), len(got), err, len(want))
	}
}

// TestLongStringsInGroups: more strings than are sorted at a time, but few that
// begin alike, are selected as any others, from both ends and with bounds among
// those that begin alike.
func TestLongStringsInGroups(t *testing.T) {
	s := newAlikeStand(t)
	const groups = 12
	n := s.putAlike(slices.Repeat([]int{3}, groups)...)
	inside := func(q query.Query) query.Query {
		q.Lower = query.Bound{Set: true, Value: tree.StringLeaf(longText(1, 1)), Exclusive: true}
		q.Upper = query.Bound{Set: true, Value: tree.StringLeaf(longText(groups-2, 2))}
		return q
	}
	for limit := range 3*groups + 2 {
		for _, last := range []bool{false, limit > 0} {
			q := query.Query{Order: query.ByValue(), Limit: limit, Last: last}
			s.expectSelected(n, q)
			s.expectSelected(n, inside(q))
		}
	}
}

// TestTooManyLongStringsAlike: where the limit ends among too many strings that
// begin alike, the query fails before anything is written. Otherwise their order
// does not matter.
func TestTooManyLongStringsAlike(t *testing.T) {
	s := newAlikeStand(t)
	const few, many = 12 * 4, 50 // together they are more than is gathered before it is written
	n := s.putAlike(append(slices.Repeat([]int{4}, few/4), many)...)
	for limit := range few + many + 5 {
		for _, last := range []bool{false, limit > 0} {
			q := query.Query{Order: query.ByValue(), Limit: limit, Last: last}
			if limit == 0 || limit > few+many || !last && limit <= few || last && limit > many {
				s.expectSelected(n, q)
			} else if got, err := s.selected(q); !errors.Is(err, ErrAlike) {
				t.Errorf("%s selects %d children, %v; want %v", shortQuery(q), len(got), err, ErrAlike)
			}
		}
	}
}

// TestLongStringsAlike compares random queries over few strings with Select, where
// fewer than those that begin alike are sorted.
func TestLongStringsAlike(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	s := newAlikeStand(t)
	answered, refused := 0, 0
	for range 20 {
		sizes := make([]int, 1+rng.IntN(6))
		for i := range sizes {
			sizes[i] = 1 + rng.IntN(2*s.bounds.alike)
		}
		n := s.putAlike(sizes...)
		for range 60 {
			q := query.Query{Order: query.ByValue(), Limit: rng.IntN(40)}
			q.Last = q.Limit > 0 && rng.IntN(2) == 0
			for _, bound := range []*query.Bound{&q.Lower, &q.Upper} {
				if group := rng.IntN(2 * len(sizes)); group < len(sizes) {
					*bound = query.Bound{Set: true, Value: tree.StringLeaf(longText(group, rng.IntN(10))), Exclusive: rng.IntN(2) == 0}
				}
			}
			if _, err := s.selected(q); errors.Is(err, ErrAlike) && q.Limit > 0 && slices.Max(sizes) > s.bounds.alike {
				refused++
				continue
			}
			s.expectSelected(n, q)
			answered++
		}
	}
	if answered < refused || refused == 0 {
		t.Errorf("%d queries were answered and %d refused", answered, refused)
	}
}
