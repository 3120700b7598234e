package batch

import (
	"bytes"
	"errors"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// This file builds the indexes by priority that writes have begun, in steps like
// those of other indexes, one node after the other.
//
// A node in the list may have been deleted or replaced since, and its index with
// it. Writes leave the list alone: that the node says nothing of this build any
// more is seen when its turn comes.

// unbuiltEntries is how many nodes a step takes off the list that were deleted or
// replaced since.
const unbuiltEntries = 200

// PriorityRows are a step of building the index by priority of a node.
type PriorityRows struct {
	IndexRows
	// Position is that of the commit that put the node into the list, or of the last
	// that was taken off it. Nothing of older commits is left in the list.
	Position uint64

	parent []byte // nil if the step only takes nodes off the list
	path   tree.Path
	state  layout.Keeping // as it was before the step
}

// BuildPriority works out a step of building the first index by priority that a
// commit at a position, or a later one, has begun; nil if there is none. As for
// BuildIndex, the reader may be that of a view: then Amend must say that the step
// still holds.
func (m Maker) BuildPriority(r seek.Reader, from uint64) (*PriorityRows, error) {
	out := &PriorityRows{IndexRows: IndexRows{rows: m.DB.NewBatch()}}
	found, err := out.find(r, from)
	if err == nil && out.parent != nil {
		err = out.build(m, r)
	}
	if err != nil || !found {
		out.Close()
		return nil, err
	}
	return out, nil
}

// find looks for the first node in the list that is still being built, and takes
// those before it off the list. It reports false if there is nothing to do.
func (r *PriorityRows) find(at seek.Reader, from uint64) (found bool, err error) {
	rows, err := unbuilt(at, from)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, damage.Mark(rows.Close())) }()
	entries := 0
	for ok := rows.First(); ok && entries < unbuiltEntries; ok = rows.Step() {
		entries++
		position, p, err := layout.CutUnbuiltKey(at.ID, rows.Key())
		if err != nil {
			return false, damage.AtRow(rows.Key(), err)
		}
		r.Position = position
		parent := layout.DataKey(nil, at.ID, p)
		k, err := at.Keeping(parent)
		if err != nil {
			return false, err
		}
		if k.Begun == position {
			r.parent, r.path, r.state = parent, p, k
			return true, nil
		}
		if err := r.rows.Delete(rows.Key(), nil); err != nil {
			return false, err
		}
	}
	return entries > 0, damage.Mark(rows.Error())
}

// unbuilt returns a stepper over the list, from the entries of a position on.
func unbuilt(r seek.Reader, from uint64) (*seek.Stepper, error) {
	return r.StepperIn(layout.UnbuiltKey(r.ID, from, layout.DataPrefix(r.ID)), layout.UnbuiltEnd(r.ID))
}

// HasUnbuilt reports whether indexes by priority are to be built.
func HasUnbuilt(r seek.Reader) (bool, error) {
	rows, err := unbuilt(r, 0)
	if err != nil {
		return false, err
	}
	found := rows.First()
	return found, damage.Mark(errors.Join(rows.Error(), rows.Close()))
}

// build adds the rows of the next children, and says how far the index is then.
func (r *PriorityRows) build(m Maker, at seek.Reader) error {
	r.from = append(bytes.Clone(r.parent), r.state.Cursor...)
	index := layout.ByPriority()
	r.builder = &indexBuilder{
		reader: at, most: m.stepChildren(at), indexes: layout.IndexesAt(r.path, index), index: index, depth: r.path.Depth(), out: &r.IndexRows,
		within: r.parent, parent: r.parent, path: r.path,
	}
	if err := r.builder.run(r.from); err != nil {
		return err
	}
	next := layout.Keeping{Kept: true}
	if r.Cursor != nil {
		next.Begun, next.Cursor = r.state.Begun, r.Cursor[len(r.parent):]
	} else if err := r.rows.Delete(layout.UnbuiltKey(at.ID, r.Position, r.parent), nil); err != nil {
		return err
	}
	return r.rows.Set(layout.IndexPrefix(nil, r.parent, layout.PriorityIndex), next.AppendTo(nil), nil)
}

// Amend brings a step that was worked out on a view up to what the live tree holds,
// as that of IndexRows does. It also reports false if the node was deleted or
// replaced since.
func (r *PriorityRows) Amend(live seek.Reader, touched []tree.Path) (bool, error) {
	if r.parent == nil {
		return true, nil
	}
	k, err := live.Keeping(r.parent)
	if err != nil || k.Begun != r.state.Begun || !bytes.Equal(k.Cursor, r.state.Cursor) {
		return false, err
	}
	return r.IndexRows.Amend(live, touched)
}
