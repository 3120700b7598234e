package tree

import "slices"

// An Editor applies assignments to a node that is small enough to copy. It
// leaves the node itself as it was.
//
// Replaced cells stay in the editor's slab as garbage: the result is meant to be
// printed, not kept.
type Editor struct {
	slab *slab
	root cell
}

// NewEditor returns an editor that starts with n.
func NewEditor(n Node) *Editor {
	e := &Editor{slab: &slab{}}
	e.root = e.adopt(n)
	return e
}

// Node returns the node as edited so far. Later edits do not change it.
func (e *Editor) Node() Node {
	if e.root.kind == Null {
		return Node{}
	}
	e.slab.cells = append(e.slab.cells, e.root)
	return Node{e.slab, uint32(len(e.slab.cells) - 1)}
}

// Set replaces the node at p. A leaf above p becomes an object and keeps its
// priority, unless n is no data: then nothing changes. Objects that become
// empty vanish with their priorities.
func (e *Editor) Set(p Path, n Node) {
	e.root = e.edit(e.root, p, func(cell) cell { return e.adopt(n) })
}

// SetPriority replaces the priority of the node at p, if there is one.
func (e *Editor) SetPriority(p Path, priority Leaf) {
	e.root = e.edit(e.root, p, func(c cell) cell { return e.prioritise(c, priority) })
}

// adopt copies the cells of n, priority included.
func (e *Editor) adopt(n Node) cell {
	if n.IsNull() {
		return cell{}
	}
	if n.slab == e.slab {
		return n.cell()
	}
	return e.copyCell(n.slab, n.cell())
}

// copyCell copies a cell of another slab with all that belongs to it.
func (e *Editor) copyCell(from *slab, c cell) cell {
	if c.keyLen != indexKey && c.keyLen > 0 {
		offset := len(e.slab.text)
		e.slab.text = append(e.slab.text, from.text[c.key:c.key+uint32(c.keyLen)]...)
		c.key = uint32(offset)
	}
	switch {
	case c.kind == Object || c.priority:
		c.bits = pair(e.copyRange(from, c), int(c.count()))
	case c.kind == String:
		offset, n := uint32(c.bits>>32), uint32(c.bits)
		c.bits = pair(len(e.slab.text), int(n))
		e.slab.text = append(e.slab.text, from.text[offset:offset+n]...)
	}
	return c
}

// copyRange copies the cells that c refers to and returns where they begin.
func (e *Editor) copyRange(from *slab, c cell) int {
	n := c.count()
	if c.priority {
		n++
	}
	first := len(e.slab.cells)
	e.slab.cells = slices.Grow(e.slab.cells, int(n))[:first+int(n)]
	for i := range n {
		copied := e.copyCell(from, from.cells[c.first()+i])
		e.slab.cells[first+int(i)] = copied
	}
	return first
}

// edit returns c with change applied to what is at p below it.
func (e *Editor) edit(c cell, p Path, change func(cell) cell) cell {
	if p.IsRoot() {
		edited := change(c)
		edited.key, edited.keyLen = c.key, c.keyLen
		return edited
	}
	key, rest := p.Cut()
	siblings := e.slab.children(c)
	i, found := e.slab.search(siblings, key)
	var child cell
	if found {
		child = siblings[i]
	} else {
		child = e.keyCell(key)
	}
	child = e.edit(child, rest, change)
	if child.kind == Null && !found {
		return c
	}
	return e.splice(c, i, found, child)
}

// keyCell returns a cell of no data that is called key.
func (e *Editor) keyCell(key string) cell {
	if index, ok := ArrayIndex(key); ok {
		return cell{key: uint32(index), keyLen: indexKey}
	}
	c := cell{key: uint32(len(e.slab.text)), keyLen: uint16(len(key))}
	e.slab.text = append(e.slab.text, key...)
	return c
}

// splice returns c with child in place i of its children: instead of the one
// that is there, or before it.
func (e *Editor) splice(c cell, i int, replace bool, child cell) cell {
	siblings := e.slab.children(c)
	first := len(e.slab.cells)
	cells := e.slab.cells
	if c.priority {
		cells = append(cells, e.slab.cells[c.first()])
	}
	start := len(cells)
	cells = append(cells, siblings[:i]...)
	if child.kind != Null {
		cells = append(cells, child)
	}
	if replace {
		i++
	}
	cells = append(cells, siblings[i:]...)
	count := len(cells) - start
	if count == 0 {
		return cell{key: c.key, keyLen: c.keyLen}
	}
	e.slab.cells = cells
	return cell{key: c.key, keyLen: c.keyLen, kind: Object, priority: c.priority, bits: pair(first, count)}
}

// prioritise returns c with another priority.
func (e *Editor) prioritise(c cell, priority Leaf) cell {
	if c.kind == Null {
		return c
	}
	var own []cell // what follows the priority: the children, or the leaf
	switch {
	case c.kind == Object:
		own = e.slab.children(c)
	case c.priority:
		own = e.slab.cells[c.first()+1 : c.first()+2]
	default:
		own = []cell{c}
	}
	if priority.IsNull() && c.kind != Object {
		return own[0]
	}
	p := e.slab.leafCell(priority)
	first := len(e.slab.cells)
	if !priority.IsNull() {
		e.slab.cells = append(e.slab.cells, p)
	}
	e.slab.cells = append(e.slab.cells, own...)
	return cell{kind: c.kind, priority: !priority.IsNull(), bits: pair(first, len(own))}
}
