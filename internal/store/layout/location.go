package layout

import (
	"bytes"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// A Location is a path as a key, with the places where its ancestors' keys end.
type Location struct {
	Key  []byte
	Ends []int // Ends[d] is the length of the key of the first d keys of the path
}

// Locate returns the location of a path of a database.
func Locate(id ID, p tree.Path) Location {
	memory := new(struct { // one object for both
		key  [80]byte
		ends [6]int
	})
	l := Location{Key: memory.key[:0], Ends: memory.ends[:0]}
	l.Move(id, p)
	return l
}

// Move makes l that of a path of a database, in the memory that it has.
func (l *Location) Move(id ID, p tree.Path) {
	l.Key = AppendSpace(l.Key[:0], SpaceData, id)
	l.Ends = append(l.Ends[:0], len(l.Key))
	for key := range p.Keys() {
		l.Key = AppendComponent(l.Key, key)
		l.Ends = append(l.Ends, len(l.Key))
	}
}

// Depth returns the number of keys of the path.
func (l Location) Depth() int { return len(l.Ends) - 1 }

// At returns the key of the first d keys of the path.
func (l Location) At(d int) []byte { return l.Key[:l.Ends[d]:l.Ends[d]] }

// Above returns the location of the first d keys of the path. It shares its memory
// with l.
func (l Location) Above(d int) Location { return Location{l.At(d), l.Ends[: d+1 : d+1]} }

// End returns the end of the subtree.
func (l Location) End() []byte { return SubtreeEnd(nil, l.Key) }

// Below returns the path without its first d keys.
func Below(p tree.Path, d int) tree.Path {
	for range d {
		_, p = p.Cut()
	}
	return p
}

// Ancestor returns the path that is some levels above p.
func Ancestor(p tree.Path, levels int) tree.Path {
	for range levels {
		p = p.Parent()
	}
	return p
}

// FirstKeys returns the path of the first n keys of p, or p if it has fewer.
func FirstKeys(p tree.Path, n int) tree.Path {
	for p.Depth() > n {
		p = p.Parent()
	}
	return p
}

// ChildBounds returns the data keys between which the rows of those children of a node
// are whose keys are in a range: from the first, and before the second. The priority of
// the node itself is never among them.
func ChildBounds(parent []byte, r query.KeyRange) (from, to []byte) {
	from = append(bytes.Clone(parent), PriorityMark, 0)
	to = SubtreeEnd(nil, parent)
	if r.Lower.Key != "" {
		from = edgeKey(parent, r.Lower)
	}
	if r.Upper.Key != "" {
		to = edgeKey(parent, r.Upper)
	}
	return from, to
}

// edgeKey returns the data key of an edge among the children of a parent.
func edgeKey(parent []byte, edge query.KeyEdge) []byte {
	key := AppendComponent(bytes.Clone(parent), edge.Key)
	if edge.After {
		return append(key, SubtreeMark)
	}
	return key
}
