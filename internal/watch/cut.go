package watch

import "github.com/livetree/livetree/internal/tree"

// A fragment is an event at a location, before it is encoded.
type fragment struct {
	path    tree.Path // relative to the location
	patch   bool
	node    tree.Node // of a put
	members []member  // of a patch
	brings  bool      // not only deletes
	// priority says that the patch is of nothing but the priority, which is the leaf
	// of the node.
	priority bool
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
// It reports false if that is not known. For the parts in same, that says whether they leave the
// node as it was.
func (e *Effect) cut(p tree.Path, form tree.Form, same map[*part]bool) (fragments []fragment, ok bool) {
	c := cutter{at: p, patch: e.Patch}
	ok = true
	e.around(p, func(part *part) bool {
		if same, compared := same[part]; compared {
			part = part.as(same)
		}
		switch {
		case part.same:
		case part.Path == p && part.alone():
			c.addPriority(part)
		case part.Path.Contains(p):
			var whole []fragment
			whole, ok = part.cutAbove(p)
			if !ok || len(whole) > 0 {
				c.fragments, c.priorities = whole, nil // that is all that the change does here
				return false
			}
		case !part.enough(form):
			ok = false
			return false
		default:
			c.add(part)
		}
		return true
	})
	return c.ordered(), ok
}

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
	parents   map[tree.Path]int      // the fragments that are patches, by path
	merged    map[tree.Path]struct{} // where those are that several parts came to
	// priorities are the fragments of priorities alone.
	priorities []fragment
}

// add adds an assignment below the location.
func (c *cutter) add(part *part) {
	switch {
	case part.alone():
		c.addPriority(part)
		return
	case part.merged && c.at.Contains(part.at):
		c.addMerged(part)
		return
	}
	after := part.now()
	if part.merged && part.known && tree.Equal(part.before, after) {
		return // what it shows together with did change, above the location
	}
	if !c.patch {
		c.addPut(part.Path, after)
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
	f := &c.fragments[i]
	f.members = append(f.members, member{part.Path.Last(), after})
	f.brings = f.brings || !after.IsNull()
}

func (c *cutter) addPut(p tree.Path, n tree.Node) {
	c.fragments = append(c.fragments, fragment{path: c.at.Below(p), node: n, brings: !n.IsNull()})
}

// addMerged adds what several parts came to, once.
func (c *cutter) addMerged(part *part) {
	if _, told := c.merged[part.at]; told {
		return
	}
	if c.merged == nil {
		c.merged = make(map[tree.Path]struct{})
	}
	c.merged[part.at] = struct{}{}
	c.addPut(part.at, part.after)
}

// addPriority adds the priority of an object, and nothing else of it.
func (c *cutter) addPriority(part *part) {
	c.priorities = append(c.priorities, fragment{path: c.at.Below(part.Path), patch: true, priority: true, node: part.Node})
}

// ordered returns the fragments as the store applies the assignments: what comes is
// there before anything goes, and priorities are last. A client that drops what is
// empty would drop priorities otherwise.
func (c *cutter) ordered() []fragment {
	if len(c.fragments) < 2 {
		return append(c.fragments, c.priorities...)
	}
	ordered := c.fragments[:0]
	var deletes []fragment
	for _, f := range c.fragments {
		if f.brings {
			ordered = append(ordered, f)
		} else {
			deletes = append(deletes, f)
		}
	}
	return append(append(ordered, deletes...), c.priorities...)
}

// encode returns the value of the event; false if it is longer than limit.
func (f *fragment) encode(form tree.Form, limit int) (text []byte, ok bool) {
	switch {
	case f.priority:
		return f.appendPriority(nil, form), true
	case !f.patch:
		return appendWithin(nil, f.node, form, limit)
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
	return append(text, '}'), true
}

// appendPriority appends the data of a patch of a priority. The plain form shows no
// priorities: there, the patch names nothing, and says only where it was.
func (f *fragment) appendPriority(text []byte, form tree.Form) []byte {
	if form != tree.Export {
		return append(text, "{}"...)
	}
	return append(tree.AppendLeaf(append(text, `{".priority":`...), f.node.Leaf()), '}')
}

// appendWithin appends a node unless the whole text would be longer than limit.
func appendWithin(text []byte, n tree.Node, form tree.Form, limit int) ([]byte, bool) {
	if n.IsNull() {
		return append(text, "null"...), true
	}
	text, _, ok := tree.AppendWithin(text, n, form, limit-len(text))
	return text, ok
}
