package tree

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"unsafe"
)

// A Node is what is at a location: no data, a leaf, or an object of children in
// key order; with data it may carry a priority. The zero Node is no data.
//
// A Node is a small handle to a slab that all nodes decoded together share, so
// that a body of a million leaves is a handful of allocations. Holding one
// child keeps its whole slab alive.
type Node struct {
	slab  *slab
	index uint32
}

// A slab holds nodes as fixed-size cells and the text of their keys and
// strings. The children of one object are neighbours, in key order.
type slab struct {
	cells []cell
	text  []byte // referred to by keys and strings; never changed below its length
	// unresolved says that server values wait to be resolved, increments that some
	// of them are increments.
	unresolved, increments bool
	// literal says that nothing in the text has to be escaped in JSON, so that it is
	// printed without being looked at.
	literal bool
	// time is what the cells that are timestamps hold, nil if there are none. They
	// stay what they are when they are resolved: another time is another slab with the
	// same cells.
	time *Leaf
}

// noTime is the time of timestamps that are not resolved.
var noTime = Leaf{kind: serverTime}

// at returns s at a time, with all its timestamps resolved.
func (s *slab) at(nowMillis int64) *slab {
	dated := &struct { // one allocation
		slab
		now Leaf
	}{slab{cells: slices.Clip(s.cells), text: slices.Clip(s.text), literal: s.literal, time: s.time}, IntegerLeaf(nowMillis)}
	if s.time != nil {
		dated.time = &dated.now
	}
	return &dated.slab
}

// A cell is one node, in 16 bytes.
//
// For a leaf, bits is its value: a boolean, an integer, the bits of a double,
// or offset<<32|length of a string in the text. For an object it is
// first<<32|count of its children's cells. A node with a priority has its
// priority in the cell at first; the children of such an object, or the cell of
// such a leaf, follow behind it.
type cell struct {
	key      uint32 // offset in the text, or the index itself
	keyLen   uint16 // indexKey when the key is the decimal spelling of an index
	kind     Kind
	priority bool
	bits     uint64
}

// indexKey marks keys such as 0 and 12, which need no text: MaxKeyBytes is far
// below it.
const indexKey = 0xFFFF

func pair(first, count int) uint64 { return uint64(first)<<32 | uint64(count) }

func (c cell) first() uint32 { return uint32(c.bits >> 32) }
func (c cell) count() uint32 { return uint32(c.bits) }

// children returns the cells of an object's children.
func (s *slab) children(c cell) []cell {
	if c.kind != Object {
		return nil
	}
	first := c.first()
	if c.priority {
		first++
	}
	return s.cells[first : first+c.count()]
}

// leaf returns the value of a cell; that of an object is null.
func (s *slab) leaf(c cell) Leaf {
	if c.priority && c.kind != Object {
		c = s.cells[c.first()+1]
	}
	switch c.kind {
	case Null, Object:
		return Leaf{}
	case String:
		return Leaf{kind: String, text: s.slice(uint32(c.bits>>32), int(uint32(c.bits)))}
	case serverTime:
		return *s.time
	}
	return Leaf{kind: c.kind, bits: c.bits}
}

func (s *slab) priority(c cell) Leaf {
	if !c.priority {
		return Leaf{}
	}
	return s.leaf(s.cells[c.first()])
}

// slice returns a part of the text without copying it; the text only grows.
func (s *slab) slice(offset uint32, n int) string {
	if n == 0 {
		return ""
	}
	return unsafe.String(&s.text[offset], n)
}

func (s *slab) key(c cell) string {
	if c.keyLen == indexKey {
		return strconv.Itoa(int(c.key))
	}
	return s.slice(c.key, int(c.keyLen))
}

// compareCells orders siblings by key.
func (s *slab) compareCells(a, b cell) int {
	switch {
	case a.keyLen == indexKey && b.keyLen == indexKey:
		return cmp.Compare(a.key, b.key)
	case b.keyLen == indexKey:
		return -s.compareKey(b, s.key(a))
	default:
		return s.compareKey(a, s.key(b))
	}
}

// compareKey is CompareKeys of c's key and key. It does not spell out an index,
// which would be an allocation for every step of a search.
func (s *slab) compareKey(c cell, key string) int {
	if c.keyLen != indexKey {
		return CompareKeys(s.slice(c.key, int(c.keyLen)), key)
	}
	value, ok := IntegerKey(key)
	if !ok {
		return -1
	}
	if order := cmp.Compare(int64(c.key), int64(value)); order != 0 {
		return order
	}
	if _, ok := ArrayIndex(key); ok {
		return 0
	}
	return -1 // 07 or -0: an index is the shortest spelling of its value
}

// search returns where key is, or belongs, among siblings.
func (s *slab) search(siblings []cell, key string) (int, bool) {
	return slices.BinarySearchFunc(siblings, key, s.compareKey)
}

func (n Node) cell() cell {
	if n.slab == nil {
		return cell{}
	}
	return n.slab.cells[n.index]
}

// Kind returns the node's kind, Null for no data.
func (n Node) Kind() Kind {
	kind := n.cell().kind
	if kind == serverTime {
		return n.slab.time.kind
	}
	return kind
}

// IsNull reports whether there is no data.
func (n Node) IsNull() bool { return n.slab == nil || n.slab.cells[n.index].kind == Null }

// IsObject reports whether the node has children.
func (n Node) IsObject() bool { return n.cell().kind == Object }

// Leaf returns the node's value; that of an object, or of no data, is null.
func (n Node) Leaf() Leaf {
	if n.slab == nil {
		return Leaf{}
	}
	return n.slab.leaf(n.cell())
}

// Priority returns the node's priority, null when it has none.
func (n Node) Priority() Leaf {
	if n.slab == nil {
		return Leaf{}
	}
	return n.slab.priority(n.cell())
}

// Len returns the number of children.
func (n Node) Len() int {
	if !n.IsObject() {
		return 0
	}
	return int(n.cell().count())
}

// Children yields the children in key order.
func (n Node) Children() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		if !n.IsObject() {
			return
		}
		first := n.firstChild()
		for i := first; i < first+n.cell().count(); i++ {
			if !yield(n.slab.key(n.slab.cells[i]), Node{n.slab, i}) {
				return
			}
		}
	}
}

// Child returns the child called key, no data when there is none.
func (n Node) Child(key string) Node {
	if !n.IsObject() {
		return Node{}
	}
	c := n.cell()
	i, found := n.slab.search(n.slab.children(c), key)
	if !found {
		return Node{}
	}
	if c.priority {
		i++
	}
	return Node{n.slab, c.first() + uint32(i)}
}

// At returns the node at a path below n.
func (n Node) At(p Path) Node {
	for !p.IsRoot() && !n.IsNull() {
		key, rest := p.Cut()
		n, p = n.Child(key), rest
	}
	return n
}

// isArray reports whether a cell prints as an array in plain text: every key is an
// index, and at least half of the indexes up to the last one are there.
func (s *slab) isArray(c cell) bool {
	children := s.children(c)
	if len(children) == 0 {
		return false
	}
	for _, child := range children {
		if child.keyLen != indexKey {
			return false
		}
	}
	return ArrayRule(int64(children[len(children)-1].key), int64(len(children)))
}

// ArrayRule decides whether an object with only indexes for keys prints as an
// array: the last index must be below twice the number of children.
func ArrayRule(lastIndex, children int64) bool { return lastIndex < 2*children }

// HasPlaceholders reports whether server values wait to be resolved in n or in
// a node that was decoded together with it.
func (n Node) HasPlaceholders() bool { return n.slab != nil && n.slab.unresolved }

// LeafNode returns a node that holds l and no priority.
func LeafNode(l Leaf) Node {
	if l.IsNull() {
		return Node{}
	}
	s := &slab{}
	s.cells = append(s.cells, s.leafCell(l))
	return Node{slab: s}
}

// leafCell stores l's text and returns its cell.
func (s *slab) leafCell(l Leaf) cell {
	if l.kind == serverTime && s.time == nil {
		s.time = &noTime
	}
	if l.kind != String {
		return cell{kind: l.kind, bits: l.bits}
	}
	c := cell{kind: String, bits: pair(len(s.text), len(l.text))}
	s.text = append(s.text, l.text...)
	return c
}
