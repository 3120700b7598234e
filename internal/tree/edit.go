package tree

import (
	"maps"
	"slices"
)

// An Editor applies assignments to a node that is small enough to copy. It
// leaves the node itself as it was.
//
// What is edited is put together when Node is called: however many assignments
// there are, an object is copied once.
type Editor struct {
	slab *slab
	root *draft
	leaf int // see Leaf
}

// Leaf returns by how many keys the last path that was set is below a leaf that
// became an object for it; 0 if there was none.
func (e *Editor) Leaf() int { return e.leaf }

// A draft is a node that was edited, or that is above one.
type draft struct {
	own      cell // the leaf, or the children before they were edited
	priority cell // Null for none
	edited   map[string]*draft
	live     int // number of children, edited or not, that there are
}

// NewEditor returns an editor that starts with n.
func NewEditor(n Node) *Editor {
	e := &Editor{slab: &slab{}}
	if n.slab != nil {
		// Cells and text are only added to, and that makes a copy.
		e.slab.cells, e.slab.text = slices.Clip(n.slab.cells), slices.Clip(n.slab.text)
	}
	e.root = e.draft(n.cell())
	return e
}

// Node returns the node as edited so far. Later edits do not change it.
func (e *Editor) Node() Node {
	root := e.finish(e.root)
	if root.kind == Null {
		return Node{}
	}
	e.slab.cells = append(e.slab.cells, root)
	return Node{e.slab, uint32(len(e.slab.cells) - 1)}
}

// Set replaces the node at p. A leaf above p becomes an object and keeps its
// priority, unless n is no data: then nothing changes. Objects that become
// empty vanish with their priorities.
func (e *Editor) Set(p Path, n Node) {
	e.leaf = 0
	e.edit(e.root, p, func(d *draft) { *d = *e.draft(e.adopt(n)) })
}

// SetPriority replaces the priority of the node at p, if there is one.
func (e *Editor) SetPriority(p Path, priority Leaf) {
	e.edit(e.root, p, func(d *draft) {
		if d.own.kind != Null {
			d.priority = e.slab.leafCell(priority)
		}
	})
}

// draft returns c as a draft.
func (e *Editor) draft(c cell) *draft {
	d := &draft{own: c}
	if c.priority {
		first := c.first()
		d.priority = e.slab.cells[first]
		if c.kind == Object {
			d.own = cell{kind: Object, bits: pair(int(first+1), int(c.count()))}
		} else {
			d.own = e.slab.cells[first+1]
		}
	}
	if c.kind == Object {
		d.live = int(c.count())
	}
	return d
}

// edit applies a change to what is at p below d.
func (e *Editor) edit(d *draft, p Path, change func(*draft)) {
	if p.IsRoot() {
		change(d)
		return
	}
	key, rest := p.Cut()
	child, known := d.edited[key]
	if !known {
		child = &draft{}
		siblings := e.slab.children(d.own)
		if i, found := e.slab.search(siblings, key); found {
			child = e.draft(siblings[i])
		}
	}
	was := child.own.kind != Null
	e.edit(child, rest, change)
	is := child.own.kind != Null
	if !was && !is {
		return
	}
	if d.own.kind != Object {
		if d.own.kind != Null {
			e.leaf = p.Depth()
		}
		d.own = cell{kind: Object}
	}
	if d.edited == nil {
		d.edited = make(map[string]*draft)
	}
	d.edited[key] = child
	switch {
	case is && !was:
		d.live++
	case was && !is:
		d.live--
	}
	if d.live == 0 {
		*d = draft{}
	}
}

// finish returns the cell of a draft, without a key.
func (e *Editor) finish(d *draft) cell {
	hasPriority := d.priority.kind != Null
	if d.own.kind == Null || !hasPriority && d.edited == nil {
		return d.own
	}
	own := []cell{d.own} // what follows the priority: the leaf, or the children
	if d.own.kind == Object {
		own = e.children(d)
	}
	first := len(e.slab.cells)
	if hasPriority {
		e.slab.cells = append(e.slab.cells, d.priority)
	}
	e.slab.cells = append(e.slab.cells, own...)
	return cell{kind: d.own.kind, priority: hasPriority, bits: pair(first, len(own))}
}

// children returns the cells of a draft's children, edited or not, in order.
func (e *Editor) children(d *draft) []cell {
	siblings := e.slab.children(d.own)
	if d.edited == nil {
		return siblings
	}
	cells := make([]cell, 0, d.live)
	for _, key := range slices.SortedFunc(maps.Keys(d.edited), CompareKeys) {
		i, found := e.slab.search(siblings, key)
		cells = append(cells, siblings[:i]...)
		siblings = siblings[i:]
		var name cell
		if found {
			name, siblings = siblings[0], siblings[1:]
		}
		child := e.finish(d.edited[key])
		if child.kind == Null {
			continue
		}
		if !found {
			name = e.keyCell(key)
		}
		child.key, child.keyLen = name.key, name.keyLen
		cells = append(cells, child)
	}
	return append(cells, siblings...)
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

// keyCell returns a cell of no data that is called key.
func (e *Editor) keyCell(key string) cell {
	if index, ok := ArrayIndex(key); ok {
		return cell{key: uint32(index), keyLen: indexKey}
	}
	c := cell{key: uint32(len(e.slab.text)), keyLen: uint16(len(key))}
	e.slab.text = append(e.slab.text, key...)
	return c
}
