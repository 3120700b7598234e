package tree

import "slices"

// A Looker reads the leaf and the priority that are at a path before a write.
type Looker interface {
	Look(Path) (leaf, priority Leaf, err error)
}

// Resolve returns w with its server values replaced: every timestamp by
// nowMillis, every increment by the sum with what old has in its place. Without
// server values it is w itself. Resolve changes nothing in w.
func Resolve(w Write, nowMillis int64, old Looker) (Write, error) {
	if !w.hasPlaceholders() {
		return w, nil
	}
	resolved := w
	resolved.Assignments = slices.Clone(w.Assignments)
	copies := make(map[*slab]*slab) // assignments of one PATCH share a slab
	for i := range resolved.Assignments {
		a := &resolved.Assignments[i]
		if !a.Node.HasPlaceholders() {
			continue
		}
		if copies[a.Node.slab] == nil {
			copies[a.Node.slab] = a.Node.slab.resolveTimes(nowMillis)
		}
		a.Node.slab = copies[a.Node.slab]
		if !a.Node.slab.increments {
			continue
		}
		r := resolver{a.Node.slab, old}
		if err := r.increments(a.Node.index, a.Path, a.Priority); err != nil {
			return Write{}, err
		}
	}
	for _, s := range copies {
		s.increments = false
	}
	return resolved, nil
}

// resolveTimes returns s with its timestamps resolved. Its increments are not yet,
// and it has cells of its own for them.
func (s *slab) resolveTimes(nowMillis int64) *slab {
	c := s.at(nowMillis)
	if c.increments = s.increments; c.increments {
		c.cells = slices.Clone(c.cells)
	}
	return c
}

// Redate returns w, which is resolved, with nowMillis in the place of every
// timestamp. Without timestamps it is w itself. It changes nothing in w and takes
// time for each assignment, however large their nodes are.
func (w Write) Redate(nowMillis int64) Write {
	if !slices.ContainsFunc(w.Assignments, func(a Assignment) bool { return a.Node.HasTimes() }) {
		return w
	}
	w.Assignments = slices.Clone(w.Assignments)
	var last, redated *slab // the assignments of a PATCH share one
	for i := range w.Assignments {
		n := &w.Assignments[i].Node
		if !n.HasTimes() {
			continue
		}
		if n.slab != last {
			last, redated = n.slab, n.slab.at(nowMillis)
		}
		n.slab = redated
	}
	return w
}

// HasTimes reports whether timestamps, resolved or not, are in n or in a node that was
// decoded together with it.
func (n Node) HasTimes() bool { return n.slab != nil && n.slab.time != nil }

// IsTime reports whether n is a timestamp, whatever its priority.
func (n Node) IsTime() bool { return n.cell().kind == serverTime }

// IsPriorityTime reports whether the priority of n is a timestamp.
func (n Node) IsPriorityTime() bool {
	c := n.cell()
	return c.priority && n.slab.cells[c.first()].kind == serverTime
}

type resolver struct {
	*slab
	old Looker
}

// increments resolves what is left in the node at index, which is to be written
// at p.
func (r resolver) increments(index uint32, p Path, isPriority bool) error {
	c := &r.cells[index]
	var first uint32
	if c.priority {
		first = c.first() + 1
		if err := r.increment(&r.cells[c.first()], p, true); err != nil {
			return err
		}
	}
	switch {
	case c.kind == Object:
		if !c.priority {
			first = c.first()
		}
		for i := first; i < first+c.count(); i++ {
			if r.cells[i].isResolvedLeaf() {
				continue // without spelling out its path
			}
			if err := r.increments(i, p.Child(r.key(r.cells[i])), false); err != nil {
				return err
			}
		}
	case c.priority:
		if err := r.increment(&r.cells[first], p, false); err != nil {
			return err
		}
		c.kind = r.cells[first].kind
	default:
		return r.increment(c, p, isPriority)
	}
	return nil
}

// increment resolves one leaf.
func (r resolver) increment(c *cell, p Path, isPriority bool) error {
	by := Leaf{bits: c.bits}
	switch c.kind {
	case serverIncrementInteger:
		by.kind = Integer
	case serverIncrementDouble:
		by.kind = Double
	default:
		return nil
	}
	leaf, priority, err := r.old.Look(p)
	if err != nil {
		return err
	}
	if isPriority {
		leaf = priority
	}
	sum := increment(leaf, by)
	c.kind, c.bits = sum.kind, sum.bits
	return nil
}

// Increments returns the paths below which Resolve will look for old values.
func (w Write) Increments() []Path {
	var paths []Path
	for _, a := range w.Assignments {
		if a.Node.slab != nil && a.Node.slab.increments {
			paths = append(paths, a.Path)
		}
	}
	return paths
}

// isResolvedLeaf reports whether c is a leaf without increments in it.
func (c cell) isResolvedLeaf() bool { return (c.kind < Object || c.kind == serverTime) && !c.priority }
