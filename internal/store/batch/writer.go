package batch

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A writer adds the data rows of a plan to a batch, the index rows of nodes that are
// written whole, and the row of the change log.
type writer struct {
	reader     seek.Reader
	rows       *pebble.Batch
	chunkBytes int
	prepared   preparedNodes
	indexes    *layout.Indexes
	times      *times               // of rows that are prepared; nil if they need not be noted
	texts      map[int]*layout.Text // of prepared assignments, for the record
	isHeld     bool                 // somebody needs whole records
	most       int64                // how many bytes the rows may take

	// The rest is memory that is used again: for a row that is being made, and for the
	// key of a log row.
	scratch, key []byte
}

// emptied returns a writer without rows, with the memory of this one.
func (w *writer) emptied() writer { return writer{scratch: kept(w.scratch), key: kept(w.key)} }

// write adds the rows of a plan.
func (w *writer) write(pl *plan) error {
	if err := w.adopt(pl.homes.list); err != nil {
		return err
	}
	for _, h := range pl.homes.list {
		if err := w.rewrite(h); err != nil {
			return err
		}
		if err := w.bound(); err != nil {
			return err
		}
	}
	for p, priority := range pl.priorities {
		key := w.reader.Locate(p).Key
		stays, err := pl.keepsPriority(p, key)
		if stays && err == nil {
			err = w.setPriority(key, priority)
		}
		if err != nil {
			return err
		}
	}
	return pl.eachEmptied(func(key []byte, highest bool) error {
		if err := w.setPriority(key, tree.Leaf{}); err != nil || !highest {
			return err
		}
		return w.clearIndexes(key) // and of all below it
	})
}

// adopt makes the rows of the one prepared node the batch itself, instead of
// copying them into it. Rows that are deleted must come before them; where a
// split node is cleared there are such.
func (w *writer) adopt(homes []*home) error {
	if len(w.prepared) != 1 {
		return nil
	}
	for _, h := range homes {
		if !h.split {
			continue
		}
		rows, indexRows := w.prepared.cleared(h.Key)
		if !rows {
			return nil
		}
		if !indexRows {
			from, _ := layout.IndexRegion(h.Key)
			if came, err := w.reader.HasRows(from); came || err != nil {
				return err
			}
		}
	}
	_ = w.rows.Close() // it is empty
	w.rows, w.prepared[0].rows = w.prepared[0].rows, nil
	return nil
}

// rewrite replaces the rows of a home.
func (w *writer) rewrite(h *home) error {
	if h.spliced != nil {
		return w.rows.Set(h.Key, h.spliced, nil)
	}
	if h.keepsLeaf {
		return w.keepLeaf(h)
	}
	if h.split {
		if err := w.clear(h.Location); err != nil {
			return err
		}
	}
	overwritten := false
	if !h.empty {
		var err error
		if overwritten, err = w.emit(h.Key, h.node, w.indexes.Below(h.path)); err != nil {
			return err
		}
	}
	if h.chunk != nil && !overwritten {
		return w.rows.Delete(h.Key, nil)
	}
	return nil
}

// keepLeaf gives the leaf of a home another priority. Its text, which may be long, goes
// from the old row into the new one.
func (w *writer) keepLeaf(h *home) error {
	row, _ := layout.AppendChunk(w.scratch[:0], h.node, 0, nil)
	w.scratch = row[:0]
	head, _, tail, _ := layout.CutLeaf(row)
	_, text, _, _ := layout.CutLeaf(h.chunk)
	w.most = min(mostRows, w.most+int64(len(text))) // few bytes may do this to many long strings
	set := w.rows.SetDeferred(len(h.Key), len(head)+len(text)+len(tail))
	copy(set.Key, h.Key)
	n := copy(set.Value, head)
	n += copy(set.Value[n:], text)
	copy(set.Value[n:], tail)
	return set.Finish()
}

// clear deletes the rows of a split node, and their index rows, but those that prepared rows delete.
func (w *writer) clear(l layout.Location) error {
	rows, indexRows := w.prepared.cleared(l.Key)
	if !rows {
		if err := w.clearRange(l.Key, l.End()); err != nil {
			return err
		}
	}
	if indexRows {
		return nil
	}
	return w.clearIndexes(l.Key)
}

// clearRange deletes rows: one by one if they are few, else as a range.
func (w *writer) clearRange(from, to []byte) error {
	rows, err := w.reader.StepperIn(from, to)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	keys := make([][]byte, 0, 16)
	for ok := rows.First(); ok; ok = rows.Step() {
		if len(keys) == pointDeletes {
			return w.rows.DeleteRange(from, to, nil)
		}
		keys = append(keys, bytes.Clone(rows.Key()))
	}
	if err := rows.Error(); err != nil {
		return damage.Mark(err)
	}
	for _, key := range keys {
		if err := w.rows.Delete(key, nil); err != nil {
			return err
		}
	}
	return w.bound()
}

// clearIndexes deletes the rows of all parents at and below a data key.
func (w *writer) clearIndexes(key []byte) error {
	from, to := layout.IndexRegion(key)
	return w.clearRange(from, to)
}

// emit adds the rows of a node: one chunk if it fits the limit, which it
// reports, else its priority and its children.
func (w *writer) emit(key []byte, n tree.Node, x *layout.Indexes) (chunked bool, err error) {
	if err := w.bound(); err != nil {
		return false, err
	}
	above := false // a prepared node is below: this one cannot be a chunk
	for _, p := range w.prepared {
		if bytes.Equal(p.key, key) {
			if p.rows == nil { // adopted
				return false, nil
			}
			return false, w.rows.Apply(p.rows, nil)
		}
		above = above || layout.Belongs(p.key, key)
	}
	if !above {
		row, fits := layout.AppendChunk(w.scratch[:0], n, w.chunkBytes, w.times.inRow())
		w.scratch = row[:0]
		if fits {
			err := w.rows.Set(key, row, nil)
			w.times.noteChunk(w.rows, row)
			return true, err
		}
	}
	if priority := n.Priority(); !priority.IsNull() {
		if err := w.setPriority(key, priority); err != nil {
			return false, err
		}
		w.times.notePriority(w.rows, n)
	}
	key = slices.Grow(key[:len(key):len(key)], 32) // where the keys of all children find room
	for name, child := range n.Children() {
		if _, err := w.emit(layout.AppendComponent(key, name), child, x.Child(name)); err != nil {
			return false, err
		}
	}
	return false, w.emitIndexes(key, n, x.List())
}

// setPriority writes or deletes the priority row of the split node with a key.
func (w *writer) setPriority(key []byte, priority tree.Leaf) error {
	key = append(key[:len(key):len(key)], layout.PriorityMark)
	if priority.IsNull() {
		return w.delete(key)
	}
	row, _ := layout.AppendChunk(w.scratch[:0], tree.LeafNode(priority), 0, nil)
	w.scratch = row[:0]
	return w.set(key, row)
}

// log adds the commit to the log, and beside it what the log leaves out, if somebody
// needs that.
func (w *writer) log(r layout.Record) (LogRow, error) {
	c := r.Change
	row, ok := layout.AppendLogRow(w.scratch[:0], r)
	if !ok {
		c.Assignments, c.Truncated = nil, true
		row, _ = layout.AppendLogRow(w.scratch[:0], layout.Record{Change: c})
	}
	w.scratch = row[:0]
	w.key = layout.LogKey(w.key[:0], w.reader.ID, c.Position)
	logged := LogRow{Position: c.Position, Millis: c.Millis, Bytes: int64(len(w.key) + len(row))}
	if err := w.rows.Set(w.key, row, nil); err != nil || !w.isHeld || layout.IsWholeRow(row) {
		return logged, err
	}
	record := layout.AppendWhole(nil, r, w.texts)
	w.key = layout.RecordKey(w.key[:0], w.reader.ID, c.Position)
	logged.Whole = int64(len(w.key) + len(record))
	return logged, w.rows.Set(w.key, record, nil)
}
