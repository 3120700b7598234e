package rules

import (
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// An overlay is the state after a write, without making it: it answers from the
// assignments where they decide, and from the state before elsewhere. So judging
// a write costs what its rules look at, not what the tree holds.
//
// The assignments of a write do not overlap. In the order of their paths, in
// which everything below a path follows it at once, the one that covers a path
// is its predecessor, and those below it are its successors.
type overlay struct {
	before Data
	nodes  []tree.Assignment // of nodes, by path
	// added[i] counts the assignments before nodes[i] that bring data.
	added      []int
	priorities []tree.Assignment // of priorities, by path
	// survivors remembers the results of survives.
	survivors map[tree.Path]bool
}

// set makes the overlay that of a write. It uses the memory that it has.
func (o *overlay) set(before Data, w tree.Write) {
	o.before = before
	for _, a := range w.Assignments {
		if a.Priority {
			o.priorities = append(o.priorities, a)
		} else {
			o.nodes = append(o.nodes, a)
		}
	}
	byPath := func(a, b tree.Assignment) int { return a.Path.Compare(b.Path) }
	slices.SortFunc(o.nodes, byPath)
	slices.SortFunc(o.priorities, byPath)
	adding := 0
	o.added = append(o.added, 0)
	for _, a := range o.nodes {
		if !a.Node.IsNull() {
			adding++
		}
		o.added = append(o.added, adding)
	}
}

// clear forgets the write.
func (o *overlay) clear() {
	if max(cap(o.nodes), cap(o.priorities)) > maxKept {
		*o = overlay{}
		return
	}
	clear(o.nodes)
	clear(o.priorities)
	*o = overlay{nodes: o.nodes[:0], added: o.added[:0], priorities: o.priorities[:0]}
}

// covering returns the node that the write puts at a path, alone or as a part
// of something larger. It reports false where the state before shows through.
func (o *overlay) covering(p tree.Path) (tree.Node, bool) {
	i := 0
	if len(o.nodes) != 1 { // a search among one would compare more than it needs to
		var found bool
		if i, found = o.search(p); !found {
			i--
		}
	}
	if i < 0 || !o.nodes[i].Path.Contains(p) {
		return tree.Node{}, false
	}
	return o.nodes[i].Node.At(o.nodes[i].Path.Below(p)), true
}

// search returns where an assignment to p is, or belongs.
func (o *overlay) search(p tree.Path) (int, bool) {
	return slices.BinarySearchFunc(o.nodes, p, func(a tree.Assignment, p tree.Path) int {
		return a.Path.Compare(p)
	})
}

// below counts the assignments below a path that is not covered, and those of
// them that bring data.
func (o *overlay) below(p tree.Path) (all, adding int) {
	first, _ := o.search(p)
	n, _ := slices.BinarySearchFunc(o.nodes[first:], p, func(a tree.Assignment, p tree.Path) int {
		if p.Contains(a.Path) {
			return -1
		}
		return 1
	})
	return n, o.added[first+n] - o.added[first]
}

// priority returns the priority that the write gives to a node.
func (o *overlay) priority(p tree.Path) (tree.Leaf, bool) {
	i, found := slices.BinarySearchFunc(o.priorities, p, func(a tree.Assignment, p tree.Path) int {
		return a.Path.Compare(p)
	})
	if !found {
		return tree.Leaf{}, false
	}
	return o.priorities[i].Node.Leaf(), true
}

// Look implements expr.Data.
func (o *overlay) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	if n, ok := o.covering(p); ok {
		return n.Leaf(), n.Priority(), nil
	}
	leaf, priority, err = o.before.Look(p)
	if err != nil {
		return leaf, priority, err
	}
	all, adding := o.below(p)
	if adding > 0 {
		leaf = tree.Leaf{} // a leaf with something below it becomes an object
	}
	given, isGiven := o.priority(p)
	if isGiven {
		priority = given
	}
	if priority.IsNull() || !leaf.IsNull() || adding > 0 || all == 0 && !isGiven {
		return leaf, priority, nil
	}
	// Only what is there has a priority.
	exists, err := o.Exists(p)
	if !exists {
		priority = tree.Leaf{}
	}
	return leaf, priority, err
}

// Kind implements expr.Data.
func (o *overlay) Kind(p tree.Path) (tree.Kind, error) {
	if n, ok := o.covering(p); ok {
		return n.Leaf().Kind(), nil
	}
	if _, adding := o.below(p); adding > 0 {
		return tree.Null, nil // a leaf with something below it becomes an object
	}
	return o.before.Kind(p)
}

// Priority implements expr.Data.
func (o *overlay) Priority(p tree.Path) (tree.Leaf, error) {
	if n, ok := o.covering(p); ok {
		return n.Priority(), nil
	}
	priority, isGiven := o.priority(p)
	if !isGiven {
		var err error
		if priority, err = o.before.Priority(p); err != nil {
			return priority, err
		}
	}
	all, adding := o.below(p)
	if priority.IsNull() || adding > 0 || all == 0 && !isGiven {
		return priority, nil
	}
	// Only what is there has a priority.
	kind, err := o.before.Kind(p)
	if err != nil || kind != tree.Null {
		return priority, err
	}
	exists, err := o.Exists(p)
	if !exists {
		priority = tree.Leaf{}
	}
	return priority, err
}

// Exists implements expr.Data.
func (o *overlay) Exists(p tree.Path) (bool, error) {
	if n, ok := o.covering(p); ok {
		return !n.IsNull(), nil
	}
	all, adding := o.below(p)
	switch {
	case adding > 0:
		return true, nil
	case all == 0:
		return o.before.Exists(p)
	}
	return o.survives(p)
}

// survives reports whether something is left at a path below which the write
// only deletes. It passes by the children that are gone, of which there are no
// more than deletions.
func (o *overlay) survives(p tree.Path) (bool, error) {
	if left, known := o.survivors[p]; known {
		return left, nil
	}
	left, err := o.anyLeft(p)
	if err == nil {
		if o.survivors == nil {
			o.survivors = make(map[tree.Path]bool)
		}
		o.survivors[p] = left
	}
	return left, err
}

func (o *overlay) anyLeft(p tree.Path) (bool, error) {
	if kind, err := o.before.Kind(p); err != nil || kind != tree.Null {
		return true, err // there was nothing below it to delete
	}
	for key := ""; ; {
		var err error
		if key, err = o.before.NextChild(p, key); err != nil || key == "" {
			return false, err
		}
		if exists, err := o.Exists(p.Child(key)); err != nil || exists {
			return exists, err
		}
	}
}
