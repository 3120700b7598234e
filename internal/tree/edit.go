package tree

import (
	"iter"
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
	root *editedNode
	leaf int // see Leaf

	void, object bool // see Void and Object
}

// Leaf returns by how many keys the last path that was set is below a leaf that
// became an object for it; 0 if there was none.
func (e *Editor) Leaf() int { return e.leaf }

// Void reports whether there was no data at the last path that was set, and is none
// now; or that there is none to carry the priority that was set last.
func (e *Editor) Void() bool { return e.void }

// Object reports whether the priority that was set last is that of an object.
func (e *Editor) Object() bool { return e.object }

// An editedNode is a node that was edited, or that is above one.
type editedNode struct {
	own      cell // the leaf, or the children before they were edited
	priority cell // Null for none
	edited   map[string]*editedNode
	live     int // number of children, edited or not, that there are
}

// NewEditor returns an editor that starts with n.
func NewEditor(n Node) *Editor {
	e := &Editor{slab: &slab{}}
	if n.slab != nil {
		// Cells and text are only added to, and that makes a copy.
		e.slab.cells, e.slab.text = slices.Clip(n.slab.cells), slices.Clip(n.slab.text)
		e.slab.time = n.slab.time
	}
	e.root = e.editable(n.cell())
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
	e.leaf, e.object = 0, false
	e.edit(e.root, p, func(node *editedNode) {
		e.void = node.own.kind == Null && n.IsNull()
		*node = *e.editable(e.adopt(n))
	})
}

// SetPriority replaces the priority of the node at p, if there is one.
func (e *Editor) SetPriority(p Path, priority Leaf) {
	e.leaf = 0
	e.edit(e.root, p, func(node *editedNode) {
		e.void, e.object = node.own.kind == Null, node.own.kind == Object
		if !e.void {
			node.priority = e.slab.leafCell(priority)
		}
	})
}

// Apply makes the assignments of one write, whose paths are at base, which the editor
// is at, or below it. In whatever order they come: what is set is there before anything
// is deleted, so that a node which loses all its children and gets others keeps its
// priority; and priorities are set last, of what is there then.
func (e *Editor) Apply(base Path, assignments iter.Seq[Assignment]) {
	e.ApplyEach(base, assignments, func(Assignment) {})
}

// ApplyEach is Apply, and calls done after each assignment: Leaf, Void and Object are
// about that then.
func (e *Editor) ApplyEach(base Path, assignments iter.Seq[Assignment], done func(Assignment)) {
	for rank := range 3 {
		for a := range assignments {
			if a.rank() != rank {
				continue
			}
			if a.Priority {
				e.SetPriority(base.Below(a.Path), a.Node.Leaf())
			} else {
				e.Set(base.Below(a.Path), a.Node)
			}
			done(a)
		}
	}
}

// rank is the turn of an assignment within its write.
func (a Assignment) rank() int {
	switch {
	case a.Priority:
		return 2
	case a.Node.IsNull():
		return 1
	}
	return 0
}

// editable returns the node of c, of which nothing is edited yet.
func (e *Editor) editable(c cell) *editedNode {
	node := &editedNode{own: c}
	if c.priority {
		first := c.first()
		node.priority = e.slab.cells[first]
		if c.kind == Object {
			node.own = cell{kind: Object, bits: pair(int(first+1), int(c.count()))}
		} else {
			node.own = e.slab.cells[first+1]
		}
	}
	if c.kind == Object {
		node.live = int(c.count())
	}
	return node
}

// edit applies a change to what is at p below node.
func (e *Editor) edit(node *editedNode, p Path, change func(*editedNode)) {
	if p.IsRoot() {
		change(node)
		return
	}
	key, rest := p.Cut()
	child, known := node.edited[key]
	if !known {
		child = &editedNode{}
		siblings := e.slab.children(node.own)
		if i, found := e.slab.search(siblings, key); found {
			child = e.editable(siblings[i])
		}
	}
	was := child.own.kind != Null
	e.edit(child, rest, change)
	is := child.own.kind != Null
	if !was && !is {
		return
	}
	if node.own.kind != Object {
		if node.own.kind != Null {
			e.leaf = p.Depth()
		}
		node.own = cell{kind: Object}
	}
	if node.edited == nil {
		node.edited = make(map[string]*editedNode)
	}
	node.edited[key] = child
	switch {
	case is && !was:
		node.live++
	case was && !is:
		node.live--
	}
	if node.live == 0 {
		*node = editedNode{}
	}
}

// finish returns the cell of an edited node, without a key.
func (e *Editor) finish(node *editedNode) cell {
	hasPriority := node.priority.kind != Null
	if node.own.kind == Null || !hasPriority && node.edited == nil {
		return node.own
	}
	own := []cell{node.own} // what follows the priority: the leaf, or the children
	if node.own.kind == Object {
		own = e.children(node)
	}
	first := len(e.slab.cells)
	if hasPriority {
		e.slab.cells = append(e.slab.cells, node.priority)
	}
	e.slab.cells = append(e.slab.cells, own...)
	return cell{kind: node.own.kind, priority: hasPriority, bits: pair(first, len(own))}
}

// children returns the cells of the children of an edited node, edited or not, in order.
func (e *Editor) children(node *editedNode) []cell {
	siblings := e.slab.children(node.own)
	if node.edited == nil {
		return siblings
	}
	cells := make([]cell, 0, node.live)
	for _, key := range slices.SortedFunc(maps.Keys(node.edited), CompareKeys) {
		i, found := e.slab.search(siblings, key)
		cells = append(cells, siblings[:i]...)
		siblings = siblings[i:]
		var name cell
		if found {
			name, siblings = siblings[0], siblings[1:]
		}
		child := e.finish(node.edited[key])
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
	isTime := c.kind == serverTime
	if isTime { // the editor's own slab may be of another time
		if c.kind = from.time.kind; c.kind == serverTime && e.slab.time == nil {
			e.slab.time = &noTime
		}
	}
	switch {
	case c.kind == Object || c.priority:
		c.bits = pair(e.copyRange(from, c), int(c.count()))
	case c.kind == String:
		offset, n := uint32(c.bits>>32), uint32(c.bits)
		c.bits = pair(len(e.slab.text), int(n))
		e.slab.text = append(e.slab.text, from.text[offset:offset+n]...)
	case isTime:
		c.bits = from.time.bits
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
