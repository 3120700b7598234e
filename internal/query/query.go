package query

import (
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// A Query says which children of a node are selected, and in which order. It
// is comparable: equal queries select the same. Of a node without children it
// selects nothing.
type Query struct {
	Order Order
	// Lower and Upper enclose the children that match.
	Lower, Upper Bound
	// Limit is how many matching children are selected at most; 0 is no limit.
	Limit int
	// Last takes those within the limit from the end of the order. It does not
	// turn the order around.
	Last bool
}

// A Bound is one end of the children that match. The zero Bound is open.
type Bound struct {
	Set bool
	// Value is compared with the ordering values. With the order by key it is a
	// string, not necessarily a valid key, and compared as a key.
	Value tree.Leaf
	// Object says that the bound is the value of all objects, and not Value.
	// Parameters cannot say this; a window of results can end there.
	Object bool
	// Key, if not empty, is compared with the keys of the children whose ordering
	// value equals Value. Without it they are on one side of the bound together.
	Key string
	// Exclusive says that what equals the bound does not match.
	Exclusive bool
}

// Clone returns a copy of q that keeps nothing alive that q was read from, and the
// length of the text in it.
func (q Query) Clone() (clone Query, textBytes int) {
	q.Order.path = q.Order.path.Clone()
	textBytes = len(q.Order.String())
	for _, b := range []*Bound{&q.Lower, &q.Upper} {
		if b.Value.Kind() == tree.String {
			b.Value = tree.StringLeaf(strings.Clone(b.Value.Text()))
		}
		b.Key = strings.Clone(b.Key)
		textBytes += len(b.Value.Text()) + len(b.Key)
	}
	return q, textBytes
}

// Position returns where the child called key, with the data n, stands in the
// order of q.
func (q Query) Position(key string, n tree.Node) Position {
	return Position{Value: q.Order.Value(n), Key: key}
}

// Contains reports whether a child at p, a position in the order of q, is
// within the bounds. Whether the limit leaves it depends on the others.
func (q Query) Contains(p Position) bool {
	return (!q.Lower.Set || q.Lower.holds(q.compareToBound(p, q.Lower))) &&
		(!q.Upper.Set || q.Upper.holds(-q.compareToBound(p, q.Upper)))
}

// holds reports whether a position is on the inner side of b, given how far
// inside it is: positive beyond the bound, 0 at it.
func (b Bound) holds(inside int) bool {
	return inside > 0 || inside == 0 && !b.Exclusive
}

func (b Bound) value() Value {
	if b.Object {
		return ObjectValue()
	}
	return LeafValue(b.Value)
}

// compareToBound returns whether p is before (-1), at (0) or behind (1) b.
func (q Query) compareToBound(p Position, b Bound) int {
	if q.Order == ByKey() {
		return tree.CompareKeys(p.Key, b.Value.Text())
	}
	if c := CompareValues(p.Value, b.value()); c != 0 || b.Key == "" {
		return c
	}
	return tree.CompareKeys(p.Key, b.Key)
}

// Edge returns the bound at a position in the order of q.
func (q Query) Edge(p Position, exclusive bool) Bound {
	if q.Order == ByKey() {
		return Bound{Set: true, Value: tree.StringLeaf(p.Key), Exclusive: exclusive}
	}
	return Bound{Set: true, Value: p.Value.leaf, Object: p.Value.object, Key: p.Key, Exclusive: exclusive}
}
