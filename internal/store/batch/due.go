package batch

import (
	"encoding/binary"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// This file keeps the rows of what expires, which are in the order of time.
//
// An assignment at or below the time of a child moves one row. One above such children
// takes back the rows of those that were there and adds those of the new ones. If very many
// were there, their rows are left: they are hints, and do no harm. The store notes that
// they are to be swept.

// dueRemoved is how many data rows are read at a write's turn to find the rows that it
// takes back.
const dueRemoved = 256

// due says what a batch does to the rows of what expires.
type due struct {
	added    bool
	earliest int64 // the time of the first row that was added
	sweeps   bool  // rows were left that have no data
}

// add notes that a row was added.
func (d *due) add(key []byte) {
	row, err := layout.CutDueKey(key)
	if err != nil {
		panic("the key of a row that was just made: " + err.Error())
	}
	if !d.added || row.Millis < d.earliest {
		d.earliest = row.Millis
	}
	d.added = true
}

// Due returns when the first of the children comes due that the change gave a time.
func (b *Batch) Due() (millis int64, ok bool) { return b.due.earliest, b.due.added }

// LeavesDue reports whether the change left rows of what expires that have no data.
func (b *Batch) LeavesDue() bool { return b.due.sweeps }

// writeDue adds the rows that a write changes.
func (b *builder) writeDue(w tree.Write) error {
	for _, a := range w.Assignments {
		if a.Priority || b.plan.marks[a.Path].void {
			continue
		}
		if err := b.assignDue(a); err != nil {
			return err
		}
	}
	if !b.due.sweeps {
		return nil
	}
	mark := binary.BigEndian.AppendUint64(nil, b.indexer.position)
	return b.writer.rows.Set(layout.SweepKey(b.plan.reader.ID), mark, nil)
}

// assignDue adds the rows that an assignment changes.
func (b *builder) assignDue(a tree.Assignment) error {
	x, rest := b.writer.indexes, a.Path
	for depth := 1; x.Expires() && !rest.IsRoot(); depth++ {
		var key string
		key, rest = rest.Cut()
		for _, index := range x.DueHere() {
			on, _ := index.Order.Child()
			if !on.Overlaps(rest) {
				continue
			}
			if err := b.moveDue(index, layout.FirstKeys(a.Path, depth), on); err != nil {
				return err
			}
		}
		x = x.Child(key)
	}
	if !x.Expires() {
		return nil
	}
	if err := b.removeDue(a.Path, x); err != nil {
		return err
	}
	return seek.EachDue(a.Node, a.Path, x, b.addDue)
}

// moveDue moves the row of one child.
func (b *builder) moveDue(index layout.Index, child, on tree.Path) error {
	target := child.Join(on)
	l := b.plan.reader.Locate(target)
	before, after, err := b.indexer.summaries(b.plan.homes.above(l), l, target, true)
	if err != nil {
		return err
	}
	if before.Value.IsNumber() && after.Value.IsNumber() && query.CompareValues(before.Value, after.Value) == 0 {
		return nil
	}
	if err := b.deleteDue(index, child, before.Value); err != nil {
		return err
	}
	return b.addDue(index, child, after.Value)
}

// removeDue takes back the rows of the children that are at a path, or below it, without
// the write.
func (b *builder) removeDue(p tree.Path, x *layout.Indexes) error {
	l := b.plan.reader.Locate(p)
	h := b.plan.homes.above(l)
	switch {
	case h == nil: // nothing was there
		return nil
	case !h.split:
		old, err := h.old()
		if err != nil {
			return err
		}
		return seek.EachDue(old.At(h.path.Below(p)), p, x, b.deleteDue)
	}
	walk := seek.DueWalk{Reader: b.plan.reader, Indexes: b.writer.indexes, Yield: b.deleteDue, Below: l.Key}
	cursor, err := walk.Run(l.Key, l.End(), b.dueRemoved)
	if cursor != nil {
		b.due.sweeps = true
	}
	return err
}

func (b *builder) addDue(index layout.Index, child tree.Path, time query.Value) error {
	if !time.IsNumber() {
		return nil
	}
	b.dueKey = layout.DueKey(b.dueKey[:0], b.plan.reader.ID, index.Number, time, child)
	b.due.add(b.dueKey)
	return b.writer.set(b.dueKey, nil)
}

// deleteDue takes back the row of a child. Where the rows of the write would take too much it is left to a sweep.
func (b *builder) deleteDue(index layout.Index, child tree.Path, time query.Value) error {
	if !time.IsNumber() {
		return nil
	}
	if b.writer.bound() != nil {
		b.due.sweeps = true
		return nil
	}
	b.dueKey = layout.DueKey(b.dueKey[:0], b.plan.reader.ID, index.Number, time, child)
	return b.writer.rows.Delete(b.dueKey, nil)
}

// DropDue deletes rows of what expires, together with all else that the batch does.
func (b *Batch) DropDue(keys [][]byte) error {
	for _, key := range keys {
		if err := b.Rows.Delete(key, nil); err != nil {
			return err
		}
	}
	return nil
}

// BuildDue works out a step of building the rows of an index by which children expire. From
// its first step on, every write must keep the index. The reader may be that of a view that
// shows the commit which the index began with: what was written since has its rows, and
// what a step adds too much is a hint that does no harm.
func (m Maker) BuildDue(r seek.Reader, x *layout.Indexes, number uint32, cursor []byte) (*IndexRows, error) {
	if cursor == nil {
		cursor = layout.DataPrefix(r.ID)
	}
	out := &IndexRows{rows: m.DB.NewBatch()}
	var key []byte
	walk := seek.DueWalk{Reader: r, Indexes: x, Yield: func(index layout.Index, child tree.Path, time query.Value) error {
		if index.Number != number || !time.IsNumber() {
			return nil
		}
		key = layout.DueKey(key[:0], r.ID, number, time, child)
		out.due.add(key)
		return out.rows.Set(key, nil, nil)
	}}
	var err error
	out.Cursor, err = walk.Run(cursor, layout.AppendSpace(nil, layout.SpaceData, r.ID+1), m.stepChildren(r))
	if err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}
