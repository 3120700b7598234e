package store

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// DropIndex works out a step of removing the rows of an index that is no longer
// kept. Nobody writes such rows any more, so what any view shows that has the commit
// that dropped the index is still so at the step's turn.
func (t Tree) DropIndex(number uint32, cursor []byte) (*IndexRows, error) {
	out := &IndexRows{rows: t.store.db.NewBatch()}
	if err := t.dropStep(number, cursor, out); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

func (t Tree) dropStep(number uint32, cursor []byte, out *IndexRows) error {
	from, to := appendSpace(nil, spaceIndex, t.id), appendSpace(nil, spaceIndex, t.id+1)
	it, err := t.reader.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	if cursor == nil {
		cursor = from
	}
	for range stepSeeks {
		if !it.SeekGE(cursor) {
			out.Cursor = nil
			return damaged(it.Error())
		}
		// The rows of one parent are together: those of the index are a range.
		parent := parentOf(it.Key(), len(from))
		first := indexPrefix(nil, parent, number)
		if it.SeekGE(first) && bytes.HasPrefix(it.Key(), first) {
			if err := out.rows.DeleteRange(first, append(bytes.Clone(first), 0xFF), nil); err != nil {
				return err
			}
		}
		cursor = append(bytes.Clone(parent), priorityMark+1)
	}
	out.Cursor = cursor
	return nil
}

// parentOf returns the part of an index row's key that names the parent.
func parentOf(key []byte, end int) []byte {
	for {
		n := componentLen(key[end:])
		if n < 0 {
			return bytes.Clone(key[:end])
		}
		end += n
	}
}
