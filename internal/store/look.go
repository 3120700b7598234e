package store

import (
	"math"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// This file looks at one node, as rules do again and again. In a chunk without flags
// only the text of that node is looked at.

// Look returns the leaf and the priority at p, null where there is none. It
// reads one chunk at most. It is how server values see the tree.
func (t Tree) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	leaf, priority, _, err = t.LookWithin(p, math.MaxInt)
	return leaf, priority, err
}

// lookWithin is LookWithin by reading.
func lookWithin(t Tree, p tree.Path, most int) (leaf, priority tree.Leaf, within bool, err error) {
	return t.look(p, most, layout.LookIn)
}

// LookNumber is Look for a caller that does not need strings: those that have a row of
// their own, as all long ones have, count as null. The priority is what it is.
func (t Tree) LookNumber(p tree.Path) (leaf, priority tree.Leaf, err error) {
	leaf, priority, _, err = t.look(p, math.MaxInt, layout.LookNumberIn)
	return leaf, priority, err
}

// Priority returns the priority at p, null where there is none.
func (t Tree) Priority(p tree.Path) (tree.Leaf, error) {
	_, priority, err := t.LookNumber(p)
	return priority, err
}

func (t Tree) look(p tree.Path, most int, in func([]byte, tree.Path) (leaf, priority tree.Leaf, err error)) (leaf, priority tree.Leaf, within bool, err error) {
	l := t.reader.Locate(p)
	c, err := t.reader.Chunk(l)
	if err != nil {
		return leaf, priority, false, err
	}
	if c == nil {
		priority, within, err = t.reader.SplitPriorityWithin(l.Key, most)
		return leaf, priority, within, err
	}
	defer c.Release()
	if len(c.Row) > most {
		return leaf, priority, false, nil
	}
	leaf, priority, err = in(c.Row, layout.Below(p, c.Depth))
	if err != nil {
		return leaf, priority, false, damage.AtRow(l.At(c.Depth), err)
	}
	return leaf, priority, true, nil
}

// Kind returns the kind of the leaf at p, Null where there is none. However long a
// string is, only its first byte is looked at.
func (t Tree) Kind(p tree.Path) (tree.Kind, error) {
	l := t.reader.Locate(p)
	c, err := t.reader.Chunk(l)
	if c == nil || err != nil {
		return tree.Null, err
	}
	defer c.Release()
	kind, err := layout.KindIn(c.Row, layout.Below(p, c.Depth))
	if err != nil {
		return tree.Null, damage.AtRow(l.At(c.Depth), err)
	}
	return kind, nil
}
