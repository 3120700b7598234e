package rules

import (
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// Data is the state of the tree that a request is judged on. It must not change
// meanwhile. An error of its ends the judgement.
type Data interface {
	// Look returns the leaf and the priority at a path, null where there is none.
	Look(tree.Path) (leaf, priority tree.Leaf, err error)
	// Kind returns the kind of the leaf at a path, Null where there is none. It does
	// not read the leaf.
	Kind(tree.Path) (tree.Kind, error)
	// Priority returns the priority at a path, null where there is none. It does not
	// read the leaf.
	Priority(tree.Path) (tree.Leaf, error)
	// Exists reports whether there is data at or below a path.
	Exists(tree.Path) (bool, error)
	// NextChild returns the first key behind after, in key order, that the node
	// at a path has a child under; "" if there is none. After "" begins with the
	// first child. It is asked only when a write deletes: whether what is left
	// above is something.
	NextChild(p tree.Path, after string) (key string, err error)
}

// A Meter is data that is read from somewhere else. A judgement is charged for what
// that takes.
type Meter interface {
	Data
	// BytesRead returns how many bytes were read so far.
	BytesRead() int
	// LookWithin is Look, but reports false for what is stored in more than most
	// bytes, without decoding it.
	LookWithin(p tree.Path, most int) (leaf, priority tree.Leaf, within bool, err error)
}

// A Query is what the variable query shows of a read.
type Query = expr.Query

// QueryOf returns what rules see of a query.
func QueryOf(q query.Query) Query {
	var r Query
	child, byChild := q.Order.Child()
	switch {
	case byChild:
		r.OrderBy, r.Child = expr.OrderByChild, child
	case q.Order == query.ByKey():
		r.OrderBy = expr.OrderByKey
	case q.Order == query.ByValue():
		r.OrderBy = expr.OrderByValue
	default:
		r.OrderBy = expr.OrderByPriority
	}
	if q.Lower == q.Upper {
		r.EqualTo = q.Lower.Value
	} else {
		r.StartAt, r.EndAt = q.Lower.Value, q.Upper.Value
	}
	if q.Last {
		r.LimitToLast = q.Limit
	} else {
		r.LimitToFirst = q.Limit
	}
	return r
}

// InNode returns data that is in memory: n is the root.
func InNode(n tree.Node) Data { return nodeData{n} }

type nodeData struct{ root tree.Node }

func (d nodeData) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	n := d.root.At(p)
	return n.Leaf(), n.Priority(), nil
}

func (d nodeData) Kind(p tree.Path) (tree.Kind, error) { return d.root.At(p).Leaf().Kind(), nil }

func (d nodeData) Priority(p tree.Path) (tree.Leaf, error) { return d.root.At(p).Priority(), nil }

func (d nodeData) Exists(p tree.Path) (bool, error) { return !d.root.At(p).IsNull(), nil }

func (d nodeData) NextChild(p tree.Path, after string) (string, error) {
	for key := range d.root.At(p).Children() {
		if after == "" || tree.CompareKeys(key, after) > 0 {
			return key, nil
		}
	}
	return "", nil
}
