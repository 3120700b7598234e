package store

import (
	"bytes"
	"slices"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// This file keeps index rows in step with the data, in the same batch.
//
// A parent has rows exactly while it is split. Where a write replaces a split
// node as a whole, its rows go as a range, and emit writes those of the new one.
// What is left are the parents above the homes of the write: they are split
// before and after it, and of each one child changes.

// An indexed child is one whose rows may change: what it was, and what it is
// after the write.
type indexedChild struct {
	parent        []byte // its data key
	component     []byte
	indexes       []Index
	path          tree.Path
	home          *home // that it is in, if any
	before, after glimpse
}

// index brings the rows of the parents above the homes up to date.
func (b *builder) index() error {
	if err := b.listChildren(); err != nil {
		return err
	}
	children := b.children.list
	for i := range children {
		if err := b.activatePriorities(&children[i]); err != nil {
			return err
		}
	}
	for i := range children {
		if err := b.indexChild(&children[i]); err != nil {
			return err
		}
	}
	return nil
}

// listChildren lists the children whose rows may change, each once.
func (b *builder) listChildren() error {
	for _, h := range b.homes.list {
		b.emptying = b.emptying || h.empty
	}
	for _, h := range b.homes.list {
		if err := b.listAbove(h.location, h.path); err != nil {
			return err
		}
	}
	for p := range b.priorities {
		if err := b.listAbove(b.locate(p), p); err != nil {
			return err
		}
	}
	return nil
}

// A childList holds the children whose rows may change.
type childList struct {
	list []indexedChild
	seen map[string]bool // their keys, unless they are those above one home
}

func (c *childList) reset() {
	if cap(c.list) > fewHomes*tree.MaxDepth {
		c.list = nil
	}
	clear(c.list)
	*c = childList{list: c.list[:0]}
}

// listAbove adds what a location is a child of, and so are the places above it. A
// place above it is split and stays so, unless the write empties it: without
// indexes it is of no interest.
func (b *builder) listAbove(l location, p tree.Path) error {
	x := b.indexes
	for d := range l.depth() {
		concerned := d == l.depth()-1 || len(x.here()) > 0 || b.emptying
		if concerned && b.firstSeen(l.at(d+1)) {
			child, err := b.indexedChild(l, d, ancestor(p, l.depth()-d-1), x.here())
			if err != nil {
				return err
			}
			b.children.list = append(b.children.list, child)
		}
		if x != nil {
			key, _ := below(p, d).Cut()
			x = x.Child(key)
		}
	}
	return nil
}

// firstSeen reports whether a key is new to the list of children, as are all that
// are above a single home.
func (b *builder) firstSeen(key []byte) bool {
	c := &b.children
	if len(b.homes.list)+len(b.priorities) == 1 {
		return true
	}
	if c.seen == nil {
		c.seen = make(map[string]bool)
	}
	if c.seen[string(key)] {
		return false
	}
	c.seen[string(key)] = true
	return true
}

// isAbove reports whether a home is below the split node with a key.
func (b *builder) isAbove(key []byte) bool {
	if b.above == nil && len(b.homes.list) <= fewHomes {
		return slices.ContainsFunc(b.homes.list, func(h *home) bool {
			return len(h.key) > len(key) && belongs(h.key, key)
		})
	}
	if b.above == nil {
		b.above = make(map[string]bool)
		for _, h := range b.homes.list {
			for d := range h.depth() {
				b.above[string(h.at(d))] = true
			}
		}
	}
	return b.above[string(key)]
}

// indexedChild looks at the child at depth d+1 of l before and after the write.
func (b *builder) indexedChild(l location, d int, p tree.Path, indexes []Index) (indexedChild, error) {
	c := indexedChild{parent: l.at(d), component: l.at(d + 1)[l.ends[d]:], indexes: indexes, path: p}
	at := location{l.at(d + 1), l.ends[:d+2]}
	c.home = b.homes.above(at)
	var err error
	c.before, c.after, err = b.glimpses(c.home, at, p)
	return c, err
}

// glimpses looks at a node, in a home if that is not nil, as it is without the
// write and as the write leaves it.
func (b *builder) glimpses(h *home, l location, p tree.Path) (before, after glimpse, err error) {
	if h != nil {
		if after, err = b.after(h, below(p, h.depth())); err != nil {
			return before, after, err
		}
	}
	if h != nil && !h.split {
		before, err = h.before(below(p, h.depth()))
		return before, after, err
	}
	if before, err = b.glimpseAt(l, p); h != nil || err != nil {
		return before, after, err
	}
	if b.isAbove(l.key) { // it is split, and loses or gets something below
		survives, err := b.survives(l.key)
		if err != nil || !survives {
			return before, glimpse{}, err
		}
	}
	after = before
	if priority, ok := b.priorities[p]; ok {
		after.priority = priority
	}
	return before, after, nil
}

// after looks at what the write leaves at rel below a home.
func (b *builder) after(h *home, rel tree.Path) (glimpse, error) {
	if h.spliced != nil {
		return glimpseRow(h.spliced, rel)
	}
	return glimpseOf(b.nodeAt(h.key, h.node, rel)), nil
}

// nodeAt returns what is at rel below the node with a key, where prepared nodes
// stand in the place of the leaves that represent them.
func (b *builder) nodeAt(key []byte, n tree.Node, rel tree.Path) tree.Node {
	for {
		for _, p := range b.prepared {
			if bytes.Equal(p.key, key) {
				return p.node.At(rel)
			}
		}
		if rel.IsRoot() || n.IsNull() {
			return n
		}
		var name string
		name, rel = rel.Cut()
		n = n.Child(name)
		if len(b.prepared) > 0 {
			key = appendComponent(key[:len(key):len(key)], name)
		}
	}
}

// indexChild replaces the rows of a child.
func (b *builder) indexChild(c *indexedChild) error {
	for _, index := range c.indexes {
		before, after := c.before, c.after
		if path, ok := index.Order.Child(); ok {
			var err error
			if before, after, err = b.changed(c, path); err != nil {
				return err
			}
		}
		if err := b.replaceRow(c, index.Number, before.value, after.value); err != nil {
			return err
		}
	}
	if c.before.exists == c.after.exists && tree.CompareLeaves(c.before.priority, c.after.priority) == 0 {
		return nil
	}
	if active, err := b.prioritised(c.parent); err != nil || !active {
		return err
	}
	return b.replaceRow(c, priorityIndex, query.LeafValue(c.before.priority), query.LeafValue(c.after.priority))
}

// changed looks at what is below a child, before and after the write.
func (b *builder) changed(c *indexedChild, rel tree.Path) (before, after glimpse, err error) {
	if h := c.home; h != nil && !h.split {
		rel = below(c.path, h.depth()).Join(rel)
		if before, err = h.before(rel); err == nil {
			after, err = b.after(h, rel)
		}
		return before, after, err
	}
	p := c.path.Join(rel)
	b.place.move(b.id, p)
	return b.glimpses(b.homes.above(b.place), b.place, p)
}

// replaceRow moves the row of a child in one index.
func (b *builder) replaceRow(c *indexedChild, number uint32, before, after query.Value) error {
	if c.before.exists == c.after.exists && (!c.after.exists || query.CompareValues(before, after) == 0) {
		return nil
	}
	if c.before.exists {
		b.scratch = indexKey(b.scratch[:0], c.parent, number, before, c.component)
		if err := b.rows.Delete(b.scratch, nil); err != nil {
			return err
		}
	}
	if !c.after.exists {
		return nil
	}
	b.scratch = indexKey(b.scratch[:0], c.parent, number, after, c.component)
	return b.rows.Set(b.scratch, nil, nil)
}

// prioritised reports whether a parent keeps the index by priority, also if this
// write made it so.
func (b *builder) prioritised(parent []byte) (bool, error) {
	if active, known := b.withPriorities[string(parent)]; known {
		return active, nil
	}
	e := b.frontier.find(parent)
	if e != nil && e.plain {
		return false, nil
	}
	active, err := b.hasPriorityIndex(parent)
	if err != nil {
		return false, err
	}
	if e != nil && !active {
		e.plain = true
		return false, nil
	}
	b.notePriorities(parent, active)
	return active, nil
}

// notePriorities remembers whether a parent keeps the index by priority.
func (b *builder) notePriorities(parent []byte, active bool) {
	if b.withPriorities == nil {
		b.withPriorities = make(map[string]bool)
	}
	b.withPriorities[string(parent)] = active
	if e := b.frontier.find(parent); e != nil && active {
		e.plain = false
	}
}

// activatePriorities starts the index by priority of a parent with the first
// child that has one. Until then no child had: the rows of the others follow
// from their keys. This reads the keys of a collection once in its life.
func (b *builder) activatePriorities(c *indexedChild) error {
	if c.after.priority.IsNull() || !c.after.exists {
		return nil
	}
	active, err := b.prioritised(c.parent)
	if active || err != nil {
		return err
	}
	b.notePriorities(c.parent, true)
	if err := b.rows.Set(indexPrefix(nil, c.parent, priorityIndex), nil, nil); err != nil {
		return err
	}
	return b.eachChild(c.parent, nil, func(end int, key []byte) (bool, error) {
		b.scratch = indexKey(b.scratch[:0], c.parent, priorityIndex, query.Value{}, key[len(c.parent):end])
		return true, b.rows.Set(b.scratch, nil, nil)
	})
}

// eachChild calls yield with each child of a split node from a data key on: with
// a row of the child, and the length of the child's own key in it.
func (t Tree) eachChild(parent, from []byte, yield func(end int, key []byte) (bool, error)) error {
	it, err := t.iterator(parent)
	if err != nil {
		return damaged(err)
	}
	rows := &stepper{Iterator: it, store: t.store, cost: t.cost}
	defer func() { _ = rows.Close() }()
	if from == nil {
		from = append(bytes.Clone(parent), priorityMark, 0) // behind the priority
	}
	for ok := rows.SeekGE(from); ok; {
		end, err := childEnd(rows.Key(), len(parent))
		if err != nil {
			return damaged(err)
		}
		more, err := yield(end, rows.Key())
		if err != nil || !more {
			return err
		}
		ok = rows.skip(end)
	}
	return damaged(rows.Error())
}

// clearIndexes deletes the rows of all parents at and below a data key.
func (b *builder) clearIndexes(key []byte) error {
	from, to := indexRegion(key)
	return b.clearRange(from, to)
}

// emitIndexes adds the rows of the children of a node that is split.
func (b *builder) emitIndexes(key []byte, n tree.Node, indexes []Index) error {
	prioritised := false
	for _, child := range n.Children() {
		if prioritised = !child.Priority().IsNull(); prioritised {
			break
		}
	}
	prioritised = prioritised || b.preparedPriority(key)
	if prioritised {
		if err := b.rows.Set(indexPrefix(nil, key, priorityIndex), nil, nil); err != nil {
			return err
		}
		indexes = append([]Index{{priorityIndex, query.ByPriority()}}, indexes...)
	}
	if len(indexes) == 0 {
		return nil
	}
	for name, child := range n.Children() {
		component := appendComponent(nil, name)
		childKey := append(key[:len(key):len(key)], component...)
		child = b.nodeAt(childKey, child, tree.Path{})
		for _, index := range indexes {
			value := index.Order.Value(child)
			if path, ok := index.Order.Child(); ok {
				value = query.ByValue().Value(b.nodeAt(childKey, child, path))
			}
			b.scratch = indexKey(b.scratch[:0], key, index.Number, value, component)
			if err := b.rows.Set(b.scratch, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// preparedPriority reports whether a prepared child of the node with a key has a
// priority.
func (b *builder) preparedPriority(key []byte) bool {
	for _, p := range b.prepared {
		if !p.node.Priority().IsNull() && bytes.Equal(dataKey(nil, b.id, p.path.Parent()), key) {
			return true
		}
	}
	return false
}
