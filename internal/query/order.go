package query

import (
	"cmp"

	"github.com/livetree/livetree/internal/tree"
)

// An Order is what the children of a node are ordered by. It is comparable;
// the zero Order is by key.
type Order struct {
	by   criterion
	path tree.Path // of byChild
}

type criterion uint8

const (
	byKey criterion = iota
	byValue
	byPriority
	byChild
)

// ByKey is the order of the children's keys, $key.
func ByKey() Order { return Order{} }

// ByValue is the order of the children's own values, $value.
func ByValue() Order { return Order{by: byValue} }

// ByPriority is the order of the children's priorities, $priority.
func ByPriority() Order { return Order{by: byPriority} }

// ByChild is the order of what is at p below each child. The path must not be
// the root.
func ByChild(p tree.Path) Order { return Order{by: byChild, path: p} }

// Child returns the path of an order by child.
func (o Order) Child() (p tree.Path, ok bool) { return o.path, o.by == byChild }

// Value returns what the child n is ordered by. It is null for all children
// if they are ordered by key.
func (o Order) Value(n tree.Node) Value {
	switch o.by {
	case byValue:
		return valueOf(n)
	case byPriority:
		return LeafValue(n.Priority())
	case byChild:
		return valueOf(n.At(o.path))
	default:
		return Value{}
	}
}

// IsTime reports whether what the child n is ordered by is a timestamp.
func (o Order) IsTime(n tree.Node) bool {
	switch o.by {
	case byValue:
		return n.IsTime()
	case byPriority:
		return n.IsPriorityTime()
	case byChild:
		return n.At(o.path).IsTime()
	default:
		return false
	}
}

// String returns the order as the parameter orderBy spells it, without quotes.
func (o Order) String() string {
	switch o.by {
	case byValue:
		return "$value"
	case byPriority:
		return "$priority"
	case byChild:
		return o.path.String()[1:]
	default:
		return "$key"
	}
}

// A Value is what a child is ordered by: a leaf, null for no data, or an
// object. All objects are one value. The zero Value is null.
type Value struct {
	leaf   tree.Leaf
	object bool
}

// LeafValue returns the value of a leaf.
func LeafValue(l tree.Leaf) Value { return Value{leaf: l} }

// ObjectValue returns the value that all nodes with children have.
func ObjectValue() Value { return Value{object: true} }

// IsNumber reports whether v is the value of a number.
func (v Value) IsNumber() bool {
	return !v.object && (v.leaf.Kind() == tree.Integer || v.leaf.Kind() == tree.Double)
}

// Clone returns a copy of v that does not keep alive what v was read from.
func (v Value) Clone() Value {
	v.leaf = v.leaf.Clone()
	return v
}

// TextBytes returns the length of the text in v.
func (v Value) TextBytes() int { return len(v.leaf.Text()) }

func valueOf(n tree.Node) Value {
	if n.IsObject() {
		return ObjectValue()
	}
	return LeafValue(n.Leaf())
}

// CompareValues orders values: null, false, true, numbers by their exact
// values, strings by tree.CompareStrings, objects.
func CompareValues(a, b Value) int {
	switch {
	case a.object && b.object:
		return 0
	case a.object:
		return 1
	case b.object:
		return -1
	}
	return tree.CompareLeaves(a.leaf, b.leaf)
}

// A Position is where a child stands in an order.
type Position struct {
	Value Value
	Key   string
}

// Compare orders positions by value, and those of equal value by key. It is 0
// only for children of the same key.
func Compare(a, b Position) int {
	return cmp.Or(CompareValues(a.Value, b.Value), tree.CompareKeys(a.Key, b.Key))
}
