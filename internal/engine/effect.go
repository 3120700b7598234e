package engine

import (
	"slices"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// An effect is a change with what watches need to know of the tree before it.
type effect struct {
	tree.Change
	parts []part // one for each assignment
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

// maxObserved is how many assignments of a change are compared with the tree at
// the change's turn. More count as changes.
const maxObserved = 64

// observe works out the effect of a change on the tree, as it is before. It reads
// only for paths that are watched, and at most heavyBytes.
func (w *watches) observe(t store.Tree, c tree.Change) *effect {
	e := &effect{Change: c, parts: make([]part, len(c.Assignments))}
	left := heavyBytes
	for i, a := range c.Assignments {
		e.parts[i] = newPart(a)
		if i < maxObserved && !a.Void && w.concerns(a.Path) {
			left -= e.parts[i].observe(t, left)
		}
	}
	e.merge(t)
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
func (e *effect) merge(t store.Tree) {
	var merged []tree.Path
	for _, top := range e.tops() {
		if slices.ContainsFunc(merged, func(above tree.Path) bool { return above.Contains(top) }) {
			continue
		}
		before, ok := e.base(t, top)
		if !ok {
			continue
		}
		merged = append(merged, top)
		after := e.edited(top, before)
		for i := range e.parts {
			if part := &e.parts[i]; top.Contains(part.Path) {
				part.observed, part.merged, part.at, part.after = true, true, top, after
				part.same = tree.Equal(before, after)
			}
		}
	}
}

// edited returns what is at a path after all assignments at and below it. As in
// the store, what comes is there before anything goes, and priorities are last.
func (e *effect) edited(top tree.Path, before tree.Node) tree.Node {
	editor := tree.NewEditor(before)
	set := func(null bool) {
		for _, part := range e.parts {
			if !part.Priority && part.Node.IsNull() == null && top.Contains(part.Path) {
				editor.Set(top.Below(part.Path), part.Node)
			}
		}
	}
	set(false)
	set(true)
	for _, part := range e.parts {
		if part.Priority && top.Contains(part.Path) {
			editor.SetPriority(top.Below(part.Path), part.Node.Leaf())
		}
	}
	return editor.Node()
}

// base returns what was at a path where parts show together. For a leaf that is
// too large to be read another one stands, as it is replaced anyway. For an object
// that is too large it reports false: then every part shows for itself, and a
// priority, which needs what it belongs to, is not observed.
func (e *effect) base(t store.Tree, top tree.Path) (tree.Node, bool) {
	before, err := t.Node(top, heavyBytes)
	if err == nil {
		return before, true
	}
	leaf, priority, err := t.Look(top)
	if err == nil && !leaf.IsNull() {
		editor := tree.NewEditor(tree.LeafNode(tree.BooleanLeaf(true)))
		editor.SetPriority(tree.Path{}, priority)
		return editor.Node(), true
	}
	for i := range e.parts {
		if part := &e.parts[i]; part.at == top && !part.Priority {
			part.at, part.after, part.merged = part.Path, part.Node, false
		}
	}
	return tree.Node{}, false
}

// tops returns the paths at which parts show together, each once, and those above
// others first.
func (e *effect) tops() []tree.Path {
	var tops []tree.Path
	for i := range min(len(e.parts), maxObserved) {
		part := &e.parts[i]
		if (part.at != part.Path || part.Priority && e.hasBelow(part.Path)) && !slices.Contains(tops, part.at) {
			tops = append(tops, part.at)
		}
	}
	slices.SortFunc(tops, func(a, b tree.Path) int { return a.Depth() - b.Depth() })
	return tops
}

// hasBelow reports whether something below a path was assigned.
func (e *effect) hasBelow(p tree.Path) bool {
	return slices.ContainsFunc(e.parts, func(other part) bool { return other.Path != p && p.Contains(other.Path) })
}

// unobserved returns the effect of a change that was made when nobody watched, or
// that comes from the log. Everything in it counts as changed.
func unobserved(c tree.Change) *effect {
	e := &effect{Change: c, parts: make([]part, len(c.Assignments))}
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
		for range a.Leaf {
			p.at = p.at.Parent()
		}
		editor := tree.NewEditor(tree.Node{})
		editor.Set(p.at.Below(a.Path), a.Node)
		p.after, p.merged = editor.Node(), true
	}
	return p
}

// bytes returns about how much memory the effect takes.
func (e *effect) bytes() int {
	const partBytes = 200
	return e.Change.Bytes() + len(e.parts)*partBytes
}

// A fragment is an event at a location, before it is encoded.
type fragment struct {
	path    tree.Path // relative to the location
	patch   bool
	node    tree.Node // of a put
	members []member  // of a patch
}

func (f *fragment) kind() EventKind {
	if f.patch {
		return Patch
	}
	return Put
}

type member struct {
	key  string
	node tree.Node
}

// cut returns what the change is to a watch of the node at p: a put where
// something was replaced, and a patch for each parent that a PATCH gave children.
// It reports false if that is not known.
func (e *effect) cut(p tree.Path, form tree.Form) (fragments []fragment, ok bool) {
	c := cutter{at: p, patch: e.Patch}
	for i := range e.parts {
		part := &e.parts[i]
		switch {
		case part.same:
		case part.Path.Contains(p):
			fragments, ok = part.cutAbove(p)
			if !ok || len(fragments) > 0 {
				return fragments, ok // assignments do not overlap
			}
		case !p.Contains(part.Path):
		case !part.observed && (part.Priority || part.Leaf > 0 && form == tree.Export):
			return nil, false // the data, or the priority of the leaf, would be missing
		default:
			c.add(part)
		}
	}
	return c.fragments, true
}

// now returns what is at the path of the assignment now.
func (part *part) now() tree.Node { return part.after.At(part.at.Below(part.Path)) }

// cutAbove is cut for an assignment at p or above it.
func (part *part) cutAbove(p tree.Path) ([]fragment, bool) {
	if part.Priority && part.Path != p {
		return nil, true
	}
	if part.Priority && !part.observed {
		return nil, false
	}
	below := part.Path.Below(p)
	node := part.now().At(below)
	if part.known && tree.Equal(part.before.At(below), node) {
		return nil, true
	}
	return []fragment{{node: node}}, true
}

// A cutter gathers the fragments of a change below a location.
type cutter struct {
	at        tree.Path
	patch     bool
	fragments []fragment
	parents   map[tree.Path]int // the fragments that are patches, by path
}

// add adds an assignment below the location.
func (c *cutter) add(part *part) {
	if part.merged && c.at.Contains(part.at) {
		c.addMerged(part)
		return
	}
	after := part.now()
	if part.merged && part.known && tree.Equal(part.before, after) {
		return // what it shows together with did change, above the location
	}
	if !c.patch {
		c.fragments = append(c.fragments, fragment{path: c.at.Below(part.Path), node: after})
		return
	}
	parent := c.at.Below(part.Path.Parent())
	i, known := c.parents[parent]
	if !known {
		if c.parents == nil {
			c.parents = make(map[tree.Path]int)
		}
		i = len(c.fragments)
		c.parents[parent] = i
		c.fragments = append(c.fragments, fragment{path: parent, patch: true})
	}
	c.fragments[i].members = append(c.fragments[i].members, member{part.Path.Last(), after})
}

// addMerged adds what several parts came to, once.
func (c *cutter) addMerged(part *part) {
	at := c.at.Below(part.at)
	if !slices.ContainsFunc(c.fragments, func(f fragment) bool { return !f.patch && f.path == at }) {
		c.fragments = append(c.fragments, fragment{path: at, node: part.after})
	}
}

// encode returns the text of the event; false if it is longer than limit.
func (f *fragment) encode(form tree.Form, limit int) (text []byte, ok bool) {
	text = tree.AppendString([]byte(`{"path":`), f.path.String())
	text = append(text, `,"data":`...)
	if !f.patch {
		text, ok = appendWithin(text, f.node, form, limit)
		return append(text, '}'), ok
	}
	text = append(text, '{')
	for i, m := range f.members {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(tree.AppendString(text, m.key), ':')
		if text, ok = appendWithin(text, m.node, form, limit); !ok {
			return nil, false
		}
	}
	return append(text, "}}"...), true
}

// appendWithin appends a node unless the whole text would be longer than limit.
func appendWithin(text []byte, n tree.Node, form tree.Form, limit int) ([]byte, bool) {
	if n.IsNull() {
		return append(text, "null"...), true
	}
	text, _, ok := tree.AppendWithin(text, n, form, limit-len(text))
	return text, ok
}
