package tree

// Equal reports whether two nodes are the same: data and priorities.
func Equal(a, b Node) bool {
	if a.Kind() != b.Kind() || a.Priority() != b.Priority() {
		return false
	}
	if !a.IsObject() {
		return a.Leaf() == b.Leaf()
	}
	if a.Len() != b.Len() {
		return false
	}
	i, j := a.firstChild(), b.firstChild()
	for range a.Len() {
		if a.slab.key(a.slab.cells[i]) != b.slab.key(b.slab.cells[j]) || !Equal(Node{a.slab, i}, Node{b.slab, j}) {
			return false
		}
		i, j = i+1, j+1
	}
	return true
}

// firstChild returns the index of the first child's cell.
func (n Node) firstChild() uint32 {
	c := n.cell()
	if c.priority {
		return c.first() + 1
	}
	return c.first()
}
