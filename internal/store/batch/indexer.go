package batch

import (
	"slices"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// An indexer keeps index rows in step with the data, in the same batch.
//
// A parent has rows exactly while it is split. Where a write replaces a split
// node as a whole, its rows go as a range, and the writer adds those of the new one.
// What is left are the parents above the homes of the write: they are split
// before and after it, and of each one child changes.
type indexer struct {
	reader       seek.Reader
	plan         *plan
	writer       *writer
	priorityRows int
	position     uint64 // of the change

	children       childList
	above          map[string]bool // the keys of places above many homes
	withPriorities map[string]bool // whether parents keep the index by priority
	activated      int             // rows that were added to begin indexes by priority
	begins         bool            // some of those are not whole

	// The rest is memory that is used again: for a key, and for a location.
	scratch  []byte
	location layout.Location
}

// emptied returns an indexer that knows nothing, with the memory of this one.
func (x *indexer) emptied() indexer {
	x.children.reset()
	return indexer{children: x.children, scratch: kept(x.scratch), location: x.location}
}

// An indexed child is one whose rows may change: what it was, and what it is
// after the write.
type indexedChild struct {
	parent        []byte // its data key
	component     []byte
	indexes       []layout.Index
	path          tree.Path
	home          *home // that it is in, if any
	before, after layout.Summary
}

// index brings the rows of the parents above the homes up to date.
func (x *indexer) index() error {
	if err := x.listChildren(); err != nil {
		return err
	}
	children := x.children.list
	for i := range children {
		if err := x.activatePriorities(&children[i]); err != nil {
			return err
		}
	}
	for i := range children {
		if err := x.indexChild(&children[i]); err != nil {
			return err
		}
	}
	return nil
}

// listChildren lists the children whose rows may change, each once.
func (x *indexer) listChildren() error {
	for _, h := range x.plan.homes.list {
		if err := x.listAbove(h.Location, h.path); err != nil {
			return err
		}
	}
	for p := range x.plan.priorities {
		if err := x.listAbove(x.reader.Locate(p), p); err != nil {
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
// indexes it is of no interest. Of one that is emptied itself all rows go already.
func (x *indexer) listAbove(l layout.Location, p tree.Path) error {
	at := x.writer.indexes
	for d := range l.Depth() {
		concerned := d == l.Depth()-1 || len(at.List()) > 0 || x.plan.emptying
		if concerned && !x.plan.hasEmptied(l.At(d)) && x.firstSeen(l.At(d+1)) {
			child, err := x.indexedChild(l, d, layout.Ancestor(p, l.Depth()-d-1), at.List())
			if err != nil {
				return err
			}
			x.children.list = append(x.children.list, child)
		}
		if at != nil {
			key, _ := layout.Below(p, d).Cut()
			at = at.Child(key)
		}
	}
	return nil
}

// firstSeen reports whether a key is new to the list of children, as are all that
// are above a single home.
func (x *indexer) firstSeen(key []byte) bool {
	c := &x.children
	if len(x.plan.homes.list)+len(x.plan.priorities) == 1 {
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
func (x *indexer) isAbove(key []byte) bool {
	if x.above == nil && len(x.plan.homes.list) <= fewHomes {
		return slices.ContainsFunc(x.plan.homes.list, func(h *home) bool {
			return len(h.Key) > len(key) && layout.Belongs(h.Key, key)
		})
	}
	if x.above == nil {
		x.above = make(map[string]bool)
		for _, h := range x.plan.homes.list {
			for d := range h.Depth() {
				x.above[string(h.At(d))] = true
			}
		}
	}
	return x.above[string(key)]
}

// indexedChild summarizes the child at depth d+1 of l before and after the write.
func (x *indexer) indexedChild(l layout.Location, d int, p tree.Path, indexes []layout.Index) (indexedChild, error) {
	c := indexedChild{parent: l.At(d), component: l.At(d + 1)[l.Ends[d]:], indexes: indexes, path: p}
	at := l.Above(d + 1)
	c.home = x.plan.homes.above(at)
	var err error
	isValued := slices.ContainsFunc(indexes, func(index layout.Index) bool { _, ok := index.Order.Child(); return !ok })
	c.before, c.after, err = x.summaries(c.home, at, p, isValued)
	return c, err
}

// summaries summarizes a node, in a home if that is not nil, as it is without the
// write and as the write leaves it. Without a value only whether the node exists counts,
// and its priority.
func (x *indexer) summaries(h *home, l layout.Location, p tree.Path, valued bool) (before, after layout.Summary, err error) {
	if h != nil {
		if after, err = x.after(h, layout.Below(p, h.Depth())); err != nil {
			return before, after, err
		}
	}
	if h != nil && !h.split {
		before, err = h.before(layout.Below(p, h.Depth()), valued)
		return before, after, err
	}
	isAbove := h == nil && x.isAbove(l.Key) // it is split, and loses or gets something below
	if isAbove {
		before, err = x.reader.SummaryOfSplit(l.Key)
	} else {
		before, err = x.reader.SummaryAt(l, p)
	}
	if h != nil || err != nil {
		return before, after, err
	}
	if isAbove {
		stays, err := x.plan.leavesData(l.Key)
		if err != nil || !stays {
			return before, layout.Summary{}, err
		}
	}
	after = before
	if priority, ok := x.plan.priorities[p]; ok {
		after.Priority = priority
	}
	return before, after, nil
}

// after summarizes what the write leaves at rel below a home.
func (x *indexer) after(h *home, rel tree.Path) (layout.Summary, error) {
	if h.keepsLeaf {
		s, err := h.before(rel, false)
		if rel.IsRoot() {
			s.Priority = h.node.Priority()
		}
		return s, err
	}
	if h.spliced != nil {
		return layout.SummarizeIn(h.spliced, rel)
	}
	return layout.Summarize(x.plan.prepared.nodeAt(h.Key, h.node, rel)), nil
}

// indexChild replaces the rows of a child.
func (x *indexer) indexChild(c *indexedChild) error {
	for _, index := range c.indexes {
		before, after := c.before, c.after
		if path, ok := index.Order.Child(); ok {
			if c.keeps(path) || x.isBeside(c, path) {
				continue
			}
			var err error
			if before, after, err = x.changed(c, path); err != nil {
				return err
			}
		}
		if err := x.replaceRow(c, index.Number, before.Value, after.Value); err != nil {
			return err
		}
	}
	if c.before.Exists == c.after.Exists && tree.CompareLeaves(c.before.Priority, c.after.Priority) == 0 {
		return nil
	}
	if active, err := x.prioritised(c.parent); err != nil || !active {
		return err
	}
	return x.replaceRow(c, layout.PriorityIndex, query.LeafValue(c.before.Priority), query.LeafValue(c.after.Priority))
}

// keeps reports whether the write is known to leave what is at rel below the child as it was: it
// replaces other parts of the child's row. Most writes of a leaf are so, and need not look for what
// is indexed.
func (c *indexedChild) keeps(rel tree.Path) bool {
	h := c.home
	if h == nil || h.spliced == nil || h.path != c.path {
		return false
	}
	for _, a := range h.edits {
		if h.path.Below(a.Path).Overlaps(rel) {
			return false
		}
	}
	return true
}

// isBeside reports whether no home of the write is at, above or below rel in a child
// that is split and stays: then what is indexed there stays too, and is not read. It may
// be a long string.
func (x *indexer) isBeside(c *indexedChild, rel tree.Path) bool {
	if c.home != nil || !c.before.Exists || !c.after.Exists {
		return false
	}
	x.location.Move(x.reader.ID, c.path.Join(rel))
	return x.plan.homes.above(x.location) == nil && !x.isAbove(x.location.Key)
}

// changed summarizes what is below a child, before and after the write.
func (x *indexer) changed(c *indexedChild, rel tree.Path) (before, after layout.Summary, err error) {
	if h := c.home; h != nil && !h.split {
		rel = layout.Below(c.path, h.Depth()).Join(rel)
		if before, err = h.before(rel, true); err == nil {
			after, err = x.after(h, rel)
		}
		return before, after, err
	}
	p := c.path.Join(rel)
	x.location.Move(x.reader.ID, p)
	return x.summaries(x.plan.homes.above(x.location), x.location, p, true)
}

// replaceRow moves the row of a child in one index.
func (x *indexer) replaceRow(c *indexedChild, number uint32, before, after query.Value) error {
	if c.before.Exists == c.after.Exists && (!c.after.Exists || query.CompareValues(before, after) == 0) {
		return nil
	}
	if c.before.Exists {
		x.scratch = layout.IndexKey(x.scratch[:0], c.parent, number, before, c.component)
		if err := x.writer.delete(x.scratch); err != nil {
			return err
		}
	}
	if !c.after.Exists {
		return nil
	}
	x.scratch = layout.IndexKey(x.scratch[:0], c.parent, number, after, c.component)
	return x.writer.set(x.scratch, nil)
}
