package store

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// An Index is an order of children that rows are kept for. Its number is never
// used for another one.
type Index struct {
	Number uint32
	Order  query.Order
}

// priorityIndex is the number of the index by priority, which is in force
// everywhere: a split node has its rows from the first child with a priority on.
const priorityIndex = 0

// Indexes say which indexes are in force where. They are a tree of keys, in
// which a wildcard stands for all keys that have no entry of their own. A nil
// *Indexes has none.
type Indexes struct {
	Here     []Index
	Children map[string]*Indexes
	Wildcard *Indexes
}

// Child returns the indexes below a key.
func (x *Indexes) Child(key string) *Indexes {
	if x == nil {
		return nil
	}
	if child, ok := x.Children[key]; ok {
		return child
	}
	return x.Wildcard
}

// At returns the indexes that are in force at a location.
func (x *Indexes) At(p tree.Path) []Index { return x.below(p).here() }

func (x *Indexes) below(p tree.Path) *Indexes {
	for key := range p.Keys() {
		x = x.Child(key)
	}
	return x
}

func (x *Indexes) here() []Index {
	if x == nil {
		return nil
	}
	return x.Here
}

// indexPrefix appends what the keys of the rows of an index begin with, at the
// parent with a data key.
func indexPrefix(dst, parent []byte, number uint32) []byte {
	dst = append(append(dst, spaceIndex), parent[1:]...)
	return binary.BigEndian.AppendUint32(append(dst, priorityMark), number)
}

// indexKey appends the key of the row of a child, whose component is a part of
// its own data key.
func indexKey(dst, parent []byte, number uint32, value query.Value, component []byte) []byte {
	dst = query.AppendIndexValue(indexPrefix(dst, parent, number), value)
	return append(dst, component...)
}

// indexRegion returns the range of all index rows at and below a data key.
func indexRegion(key []byte) (from, to []byte) {
	from = append([]byte{spaceIndex}, key[1:]...)
	return from, subtreeEnd(nil, from)
}

// hasPriorityIndex reports whether the split node with a key keeps the rows of
// the index by priority. A row of its own says so.
func (t Tree) hasPriorityIndex(parent []byte) (bool, error) {
	var key [64]byte
	_, closer, err := t.reader.Get(indexPrefix(key[:0], parent, priorityIndex))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, damaged(err)
	}
	return true, closer.Close()
}

// A glimpse is what an index needs to know of a node.
type glimpse struct {
	exists   bool
	value    query.Value // its own
	priority tree.Leaf
}

func glimpseOf(n tree.Node) glimpse {
	return glimpse{!n.IsNull(), query.ByValue().Value(n), n.Priority()}
}

// glimpseRow looks at the node at rel in a chunk. It decodes no more than that if
// the chunk has no flags.
func glimpseRow(row []byte, rel tree.Path) (glimpse, error) {
	if len(row) > 1 && row[0] == 0 {
		text, ok := findJSON(row[1:], rel)
		switch {
		case ok && text[0] == '{':
			return glimpse{exists: true, value: query.ObjectValue()}, nil
		case ok:
			n, err := tree.DecodeBytes(text, tree.DecodeOptions{})
			return glimpseOf(n), err
		}
	}
	n, err := decodeRow(row)
	return glimpseOf(n.At(rel)), err
}

// glimpse looks at the node at p.
func (t Tree) glimpse(p tree.Path) (glimpse, error) { return t.glimpseAt(t.locate(p), p) }

func (t Tree) glimpseAt(l location, p tree.Path) (glimpse, error) {
	c, err := t.cover(l)
	if err != nil {
		return glimpse{}, err
	}
	if c != nil {
		defer c.release()
		g, err := glimpseRow(c.row, below(p, c.depth))
		if err != nil {
			return g, rowError(l.at(c.depth), err)
		}
		return g, nil
	}
	it, err := t.iterator(l.key)
	if err != nil {
		return glimpse{}, damaged(err)
	}
	exists := it.SeekGE(l.key)
	if err := errors.Join(it.Error(), it.Close()); err != nil || !exists {
		return glimpse{}, damaged(err)
	}
	priority, err := t.splitPriority(l.key)
	return glimpse{true, query.ObjectValue(), priority}, err
}

// orderValue returns what the child at p is ordered by.
func (t Tree) orderValue(p tree.Path, order query.Order) (query.Value, error) {
	if path, ok := order.Child(); ok {
		p = p.Join(path)
	}
	g, err := t.glimpse(p)
	if order == query.ByPriority() {
		return query.LeafValue(g.priority), err
	}
	return g.value, err
}
