package watch

import (
	"cmp"
	"slices"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// An Effect is a change with what watches need to know of the tree before it.
type Effect struct {
	tree.Change
	counted int    // bytes of what waits to be handed on
	parts   []part // one for each assignment

	// The rest is for the dispatcher. When several places have asked for the parts that
	// concern them, there is the number of the part at each path, and when one of them
	// is above some, there are the numbers in the order of the paths.
	asked  int
	at     map[tree.Path]int32
	byPath []int32
}

// A part is what one assignment of a change came to.
type part struct {
	tree.Assignment
	// observed says that the rest was found out when the change was made. It is
	// not if nobody watched the path then.
	observed bool
	// same says that nothing changed.
	same bool
	// before is what was at the path, if it was small enough to be known.
	before tree.Node
	known  bool
	// at is the path, and after what is there now. A part that is merged shows at
	// a path above, together with others: that of a leaf that became an object, or
	// that of a node whose priority changed along with something below it.
	at     tree.Path
	after  tree.Node
	merged bool
}

// observe works out the effect of a change on the tree, as it is before. It reads
// only for paths that are watched, and at most heavyBytes; and leafBytes of leaves
// whose priorities change.
func (w *Set) observe(t store.Tree, c tree.Change) *Effect {
	e := unobserved(c)
	l := w.limits
	left, leaves := l.HeavyBytes, l.LeafBytes
	for i := range min(len(e.parts), l.MaxObserved) {
		p := &e.parts[i]
		if p.Void || !w.concerns(p.Path) {
			continue
		}
		budget := &left
		if p.Priority && !p.Object {
			budget = &leaves // the leaf itself must be told, whatever its size
		}
		*budget -= p.observe(t, *budget)
	}
	e.merge(t, w)
	return e
}

// observe compares an assignment with the tree, of which it reads at most limit
// bytes, and returns how much that was.
func (p *part) observe(t store.Tree, limit int) int {
	before, err := t.Node(p.Path, limit)
	if err != nil { // too large, or damaged, which others will tell
		p.observed = !p.Priority
		return 0
	}
	p.observed, p.known, p.before = true, true, before
	if p.Priority {
		editor := tree.NewEditor(before)
		editor.SetPriority(tree.Path{}, p.Node.Leaf())
		p.after = editor.Node()
		p.same = tree.Equal(before, p.after)
	} else {
		p.same = tree.Equal(before, p.Node)
	}
	return before.Bytes()
}

// merge gathers the parts that show together, and sets what they come to. Where that
// is too large, those further below may still show together.
func (e *Effect) merge(t store.Tree, w *Set) {
	l := w.limits
	tops := e.tops(l.MaxObserved)
	if len(tops) == 0 {
		return
	}
	below := e.partsBelow(tops)
	var merged []tree.Path // at most as many as there are tops, which are few
	for _, top := range tops {
		if !w.concerns(top) || slices.ContainsFunc(merged, func(above tree.Path) bool { return above.Contains(top) }) {
			continue
		}
		parts := below[top]
		before, ok := base(t, top, parts, l.HeavyBytes)
		if !ok { // every part shows for itself
			for _, part := range parts {
				part.observed, part.known = part.observed && part.at != top, part.known && part.at != top
			}
			continue
		}
		merged = append(merged, top)
		after := edited(top, before, parts)
		same := tree.Equal(before, after)
		for _, part := range parts {
			part.observed, part.merged, part.at, part.after = true, true, top, after
			part.same = same || part.Void
		}
	}
}

// tops returns the paths at which parts show together, each once, and those above
// others first. It looks at the first parts only.
func (e *Effect) tops(limit int) []tree.Path {
	var tops, priorities []tree.Path
	for i := range min(len(e.parts), limit) {
		switch part := &e.parts[i]; {
		case part.Void:
		case part.Priority:
			priorities = append(priorities, part.Path)
		case part.at != part.Path:
			tops = append(tops, part.at)
		}
	}
	if len(priorities) > 0 {
		tops = append(tops, e.above(priorities)...)
	}
	slices.SortFunc(tops, func(a, b tree.Path) int { return cmp.Or(a.Depth()-b.Depth(), a.Compare(b)) })
	return slices.Compact(tops)
}

// above returns those of some paths below which something is assigned.
func (e *Effect) above(paths []tree.Path) []tree.Path {
	has := make(map[tree.Path]bool, len(paths))
	for _, p := range paths {
		has[p] = false
	}
	for i := range e.parts {
		if part := &e.parts[i]; !part.Void {
			for p := range part.Path.Ancestors() {
				if _, ok := has[p]; ok {
					has[p] = true
				}
			}
		}
	}
	return slices.DeleteFunc(paths, func(p tree.Path) bool { return !has[p] })
}

// partsBelow returns the parts at and below each of some paths, in order.
func (e *Effect) partsBelow(tops []tree.Path) map[tree.Path][]*part {
	below := make(map[tree.Path][]*part, len(tops))
	for _, top := range tops {
		below[top] = nil
	}
	for i := range e.parts {
		part := &e.parts[i]
		add := func(p tree.Path) {
			if list, ok := below[p]; ok {
				below[p] = append(list, part)
			}
		}
		add(part.Path)
		for p := range part.Path.Ancestors() {
			add(p)
		}
	}
	return below
}

// base returns what was at a path where parts show together; false if it is too
// large to be read. For a leaf that is too large, and that becomes an object, another
// leaf stands: what is told does not show it. Where the leaf stays, as it does if
// only its priority changes, nothing may stand for it.
func base(t store.Tree, top tree.Path, parts []*part, limit int) (tree.Node, bool) {
	before, err := t.Node(top, limit)
	if err == nil {
		return before, true
	}
	if !slices.ContainsFunc(parts, func(p *part) bool { return p.Leaf > 0 && p.at == top }) {
		return tree.Node{}, false
	}
	_, priority, err := t.Look(top)
	editor := tree.NewEditor(tree.LeafNode(tree.BooleanLeaf(true)))
	editor.SetPriority(tree.Path{}, priority)
	return editor.Node(), err == nil
}

// edited returns what is at a path after all assignments at and below it, which are
// the parts.
func edited(top tree.Path, before tree.Node, parts []*part) tree.Node {
	editor := tree.NewEditor(before)
	editor.Apply(top, func(yield func(tree.Assignment) bool) {
		for _, part := range parts {
			if !yield(part.Assignment) {
				return
			}
		}
	})
	return editor.Node()
}

// unobserved returns the effect of a change that was made when nobody watched, or
// that comes from the log. Everything in it counts as changed.
func unobserved(c tree.Change) *Effect {
	e := &Effect{Change: c, parts: make([]part, len(c.Assignments))}
	for i, a := range c.Assignments {
		e.parts[i] = newPart(a)
	}
	return e
}

// newPart returns the part of an assignment as far as the change tells it: a leaf
// above became an object with nothing else in it.
func newPart(a tree.Assignment) part {
	p := part{Assignment: a, at: a.Path, after: a.Node, same: a.Void}
	if a.Leaf > 0 {
		p.at = p.at.Ancestor(a.Leaf)
		editor := tree.NewEditor(tree.Node{})
		editor.Set(p.at.Below(a.Path), a.Node)
		p.after, p.merged = editor.Node(), true
	}
	return p
}

// now returns what is at the path of the assignment now.
func (part *part) now() tree.Node { return part.after.At(part.at.Below(part.Path)) }

// alone reports whether only the priority of the node is to be told: what the node
// is was too much to be read. Of a leaf that does not tell enough.
func (part *part) alone() bool { return part.Priority && !part.observed && part.Object }

// enough reports whether what is known of the part can be told below its location:
// not if the leaf whose priority changed is missing, or, in the export form, the
// priority of a leaf that became an object.
func (part *part) enough(form tree.Form) bool {
	switch {
	case part.observed, part.alone():
		return true
	case part.Priority:
		return false
	}
	return part.Leaf == 0 || form != tree.Export
}

// bytes returns about how much memory the effect takes, with all that its nodes were
// made with.
func (e *Effect) bytes() int {
	const effectBytes, partBytes = 200, 200
	bytes := effectBytes + len(e.parts)*partBytes
	var nodes tree.Tally
	for i := range e.parts {
		part := &e.parts[i]
		bytes += part.Path.Bytes()
		nodes.Add(part.before)
		nodes.Add(part.after)
		nodes.Add(part.Node)
	}
	return bytes + nodes.Bytes()
}

// detach lets go of the request that the change came with: its path may be a part
// of the request's head, and names are a part of its body.
func (e *Effect) detach() {
	at := e.At.Clone()
	for i := range e.parts {
		part := &e.parts[i]
		if part.Path == e.At {
			part.Path = at
		}
		if part.at.Contains(e.At) { // it is the same text up to there
			part.at = at.Ancestor(e.At.Depth() - part.at.Depth())
		}
		part.Name = ""
	}
	e.At, e.Assignments = at, nil
}

// touches reports whether the change may concern what is at one of the paths: touchesAny of a change whose
// assignments are in parts.
func (e *Effect) touches(paths []tree.Path) bool {
	return e.Truncated || slices.ContainsFunc(e.parts, func(p part) bool { return slices.ContainsFunc(paths, p.Path.Overlaps) })
}

// fewParts is how many parts are looked at one by one, whoever asks.
const fewParts = 8

// around calls yield with the parts that concern p, in order, until it returns false:
// those at, above and below it. For each path of a PATCH it would go through all parts,
// if it did not find them by their paths from the third time on.
func (e *Effect) around(p tree.Path, yield func(*part) bool) {
	e.asked++
	if len(e.parts) > fewParts && e.asked > 2 && !p.IsRoot() {
		for _, i := range e.find(p) {
			if !yield(&e.parts[i]) {
				return
			}
		}
		return
	}
	for i := range e.parts {
		part := &e.parts[i]
		if p.Overlaps(part.Path) && !yield(part) {
			return
		}
	}
}

// find returns the number of the part that assigns a node at p or above it: no other
// part changes what is there. If there is none it returns those of the priority of p
// and of all parts below, in order.
func (e *Effect) find(p tree.Path) []int32 {
	if e.at == nil {
		e.at = make(map[tree.Path]int32, len(e.parts))
		for i := range e.parts {
			e.at[e.parts[i].Path] = int32(i)
		}
	}
	for q := p; ; q = q.Parent() {
		if i, ok := e.at[q]; ok && !e.parts[i].Priority {
			return []int32{i}
		}
		if q.IsRoot() {
			return e.below(p)
		}
	}
}

// below returns the numbers of the parts at and below p, in order.
func (e *Effect) below(p tree.Path) []int32 {
	if e.byPath == nil {
		e.byPath = make([]int32, len(e.parts))
		for i := range e.byPath {
			e.byPath[i] = int32(i)
		}
		slices.SortFunc(e.byPath, func(i, j int32) int { return e.parts[i].Path.Compare(e.parts[j].Path) })
	}
	from, _ := slices.BinarySearchFunc(e.byPath, p, func(i int32, p tree.Path) int { return e.parts[i].Path.Compare(p) })
	length, _ := slices.BinarySearchFunc(e.byPath[from:], p, func(i int32, p tree.Path) int {
		if p.Contains(e.parts[i].Path) {
			return -1
		}
		return 1
	})
	found := slices.Clone(e.byPath[from : from+length])
	slices.Sort(found)
	return found
}
