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
	for looks := 0; looks < stepSeeks; {
		if !it.SeekGE(cursor) {
			out.Cursor = nil
			return damage.Mark(it.Error())
		}
		if layout.IsDueKey(it.Key()) {
			cursor = layout.DueEnd(r.ID)
			continue
		}
		// The rows of one parent are together, and so are those of the index among them.
		parent := bytes.Clone(layout.IndexParent(it.Key()))
		rows, err := dropRows(it, layout.IndexPrefix(nil, parent, number), out.rows)
		if err != nil {
			return err
		}
		looks += 1 + rows
		cursor = append(bytes.Clone(parent), layout.PriorityMark+1)
	}
	out.Cursor = cursor
	return nil
}

// dropRows removes the rows that begin with a prefix: one by one if they are few, as a range if they are many. Very many parents may have
// a few rows each. It returns how many rows it looked at.
func dropRows(it *pebble.Iterator, first []byte, rows *pebble.Batch) (looked int, err error) {
	var keys [][]byte
	for ok := it.SeekGE(first); ok && bytes.HasPrefix(it.Key(), first); ok = it.Next() {
		if len(keys) == pointDeletes {
			return len(keys), rows.DeleteRange(first, append(bytes.Clone(first), 0xFF), nil)
		}
		keys = append(keys, bytes.Clone(it.Key()))
	}
	if err := it.Error(); err != nil {
		return 0, damage.Mark(err)
	}
	for _, key := range keys {
		if err := rows.Delete(key, nil); err != nil {
			return 0, err
		}
	}
	return len(keys), nil
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
