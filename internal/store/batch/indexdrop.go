package batch

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// DropIndex works out a step of removing the rows of an index that is no longer
// kept. Nobody writes such rows any more, so what any view shows that has the commit
// that dropped the index is still so at the step's turn.
func (m Maker) DropIndex(r seek.Reader, number uint32, cursor []byte) (*IndexRows, error) {
	out := &IndexRows{rows: m.DB.NewBatch()}
	if err := dropStep(r, number, cursor, out); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

func dropStep(r seek.Reader, number uint32, cursor []byte, out *IndexRows) error {
	from, to := layout.UnbuiltEnd(r.ID), layout.AppendSpace(nil, layout.SpaceIndex, r.ID+1)
	it, err := r.Source.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	if cursor == nil {
		isDue, err := dropDue(it, r.ID, number, out)
		if isDue || err != nil {
			return err
		}
		cursor = from
	}
	for range stepSeeks {
		if !it.SeekGE(cursor) {
			out.Cursor = nil
			return damage.Mark(it.Error())
		}
		if layout.IsDueKey(it.Key()) {
			cursor = layout.DueEnd(r.ID)
			continue
		}
		// The rows of one parent are together: those of the index are a range.
		parent := bytes.Clone(layout.IndexParent(it.Key()))
		first := layout.IndexPrefix(nil, parent, number)
		if it.SeekGE(first) && bytes.HasPrefix(it.Key(), first) {
			if err := out.rows.DeleteRange(first, append(bytes.Clone(first), 0xFF), nil); err != nil {
				return err
			}
		}
		cursor = append(bytes.Clone(parent), layout.PriorityMark+1)
	}
	out.Cursor = cursor
	return nil
}

// dropDue removes the rows of an index by which children expired, which are a range. It
// reports false if there are none.
func dropDue(it *pebble.Iterator, id layout.ID, number uint32, out *IndexRows) (bool, error) {
	first := layout.DuePrefix(id, number)
	if !it.SeekGE(first) || !bytes.HasPrefix(it.Key(), first) {
		return false, damage.Mark(it.Error())
	}
	return true, out.rows.DeleteRange(first, layout.DuePrefix(id, number+1), nil)
}
