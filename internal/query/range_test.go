package query_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// component encodes a key in an order like that of the store, which this
// package cannot import: an integer in plain spelling is a prefix of the same
// integer in others, which go on with FF.
func component(dst []byte, key string) []byte {
	v, ok := tree.IntegerKey(key)
	if !ok {
		for i := range len(key) {
			dst = append(dst, rank(key[i]))
		}
		return append(dst, 0x00)
	}
	dst = binary.BigEndian.AppendUint32(append(dst, 0x10), uint32(v)^1<<31)
	if plain := strconv.Itoa(int(v)); key != plain {
		dst = binary.BigEndian.AppendUint16(append(dst, 0xFF), uint16(len(key)-len(plain)))
		dst = append(dst, map[bool]byte{true: 0, false: 1}[key[0] == '-'])
	}
	return dst
}

func rank(c byte) byte {
	switch {
	case c >= 0xF0:
		return c - 2
	case c >= 0xEE:
		return c + 5
	}
	return c
}

// A row is the key of an index row, and the child that it is for.
type row struct {
	bytes []byte
	position
}

type position = query.Position

// rows returns the rows of n in an index on disk, in their order.
func rows(n tree.Node, q query.Query, prefix []byte) []row {
	var all []row
	for key, child := range n.Children() {
		p := q.Position(key, child)
		all = append(all, row{component(query.AppendIndexValue(bytes.Clone(prefix), p.Value), key), p})
	}
	slices.SortFunc(all, func(a, b row) int { return bytes.Compare(a.bytes, b.bytes) })
	return all
}

// selectByRows is what the store is to do with the range of a query. It fails
// if a row with a whole value is in the range, but not within the bounds.
func selectByRows(t *testing.T, n tree.Node, q query.Query) []string {
	t.Helper()
	prefix := []byte{3, 1, 4}
	lower, upper := q.AppendLower(bytes.Clone(prefix), component), q.AppendUpper(bytes.Clone(prefix), component)
	var matching []position
	for _, row := range rows(n, q, prefix) {
		if bytes.Compare(row.bytes, lower) < 0 || bytes.Compare(row.bytes, upper) >= 0 {
			continue
		}
		_, cut := query.IndexValueLen(row.bytes[len(prefix):])
		if !cut && !q.Contains(row.position) {
			t.Errorf("%v is in the range of %+v, but not within its bounds", row.position, q)
		}
		if q.Contains(row.position) {
			matching = append(matching, row.position)
		}
	}
	sortRuns(matching)
	var keys []string
	for i, p := range matching {
		if q.Limit == 0 || q.Last && i >= len(matching)-q.Limit || !q.Last && i < q.Limit {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// sortRuns sorts each run of positions whose rows have the same value.
func sortRuns(positions []position) {
	same := func(a, b position) bool {
		return bytes.Equal(query.AppendIndexValue(nil, a.Value), query.AppendIndexValue(nil, b.Value))
	}
	for start := 0; start < len(positions); {
		end := start + 1
		for end < len(positions) && same(positions[start], positions[end]) {
			end++
		}
		slices.SortFunc(positions[start:end], query.Compare)
		start = end
	}
}

func TestRangeOfRowsSelectsTheSame(t *testing.T) {
	t.Parallel()
	g := generator{random(t)}
	for i := range 2_000 {
		leaf := g.leaf
		if i%4 == 0 {
			leaf = g.longText // their rows begin alike
		}
		n := g.children(t, leaf)
		q := query.Query{Order: query.ByValue(), Lower: g.boundIn(n), Upper: g.boundIn(n)}
		if g.IntN(2) == 0 {
			q.Limit, q.Last = 1+g.IntN(5), g.IntN(2) == 0
		}
		if got, want := selectByRows(t, n, q), query.Select(n, q); !slices.Equal(got, want) {
			t.Fatalf("by its rows %+v selects\n%q, want\n%q", q, got, want)
		}
	}
}

// inKeyRange reports whether the row of a child, or what is below it, is in the
// range of data keys that the store makes of a KeyRange.
func inKeyRange(r query.KeyRange, key string) bool {
	at := func(e query.KeyEdge) []byte {
		edge := component(nil, e.Key)
		if e.After {
			edge = append(edge, 0xFF)
		}
		return edge
	}
	below := append(component(nil, key), 0x10, 0x01)
	for _, row := range [][]byte{component(nil, key), below} {
		if r.Lower.Key != "" && bytes.Compare(row, at(r.Lower)) < 0 || r.Upper.Key != "" && bytes.Compare(row, at(r.Upper)) >= 0 {
			return false
		}
	}
	return true
}

func TestKeyRange(t *testing.T) {
	t.Parallel()
	g := generator{random(t)}
	for range 20_000 {
		q := query.Query{Lower: g.keyBound(), Upper: g.keyBound()}
		if g.IntN(3) == 0 {
			q = query.Query{Order: query.ByPriority(), Lower: g.bound(), Upper: g.bound()}
		}
		r, ok := q.KeyRange()
		for _, e := range []query.KeyEdge{r.Lower, r.Upper} {
			if e.After && e.Key == "" || slices.ContainsFunc([]byte(e.Key), func(c byte) bool { return c < ' ' }) {
				t.Fatalf("%+v has the edge %+v", q, e)
			}
		}
		key := g.key()
		if got, want := ok && inKeyRange(r, key), q.Contains(query.Position{Key: key}); got != want {
			t.Fatalf("%q is in the range %+v of %+v: %v, want %v", key, r, q, got, want)
		}
	}
}
