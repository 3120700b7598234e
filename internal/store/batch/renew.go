package batch

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// This file gives prepared rows another push key and another time. Both take as many
// bytes as the old ones, so they are overwritten in the batch. A new key costs a visit
// to each row, a new time one to each timestamp, whose places were noted.

// times are the places of a write's timestamps in a batch, from the first byte of its
// representation on. It is nil where they need not be noted.
type times struct {
	text    []uint32 // in decimal digits, in a chunk or as the priority of a split node
	indexed []uint32 // in the key of an index row
	row     []int    // in the row that was made last
}

// inRow returns where the places in the next row are to be put.
func (t *times) inRow() *[]int {
	if t == nil {
		return nil
	}
	return &t.row
}

// noteChunk notes the timestamps of a chunk, the row that was added last.
func (t *times) noteChunk(rows *pebble.Batch, row []byte) {
	if t == nil {
		return
	}
	for _, at := range t.row {
		t.text = append(t.text, uint32(rows.Len()-len(row)+at))
	}
}

// notePriority notes the priority of a split node, the row that was added last, if it
// is a timestamp.
func (t *times) notePriority(rows *pebble.Batch, n tree.Node) {
	if t != nil && n.IsPriorityTime() {
		t.text = append(t.text, uint32(rows.Len()-len(tree.AppendLeaf(nil, n.Priority()))))
	}
}

// indexedBytes is how many bytes a time takes in the key of an index row, before the
// component of the child, which ends the key.
const indexedBytes = 8

// noteIndexed notes the time in the key of an index row, the row that was added last.
// The row has no value, and the length of that is the last byte of the batch.
func (t *times) noteIndexed(rows *pebble.Batch, component []byte) {
	t.indexed = append(t.indexed, uint32(rows.Len()-len("\x00")-len(component)-indexedBytes))
}

// Renew turns the rows into those of w. That must be the write that they were prepared
// for, except that paths may have other keys of the same length, and that timestamps
// have the time now instead of was. Renew reports false, and changes nothing, if a key
// or the time takes another number of bytes. After an error the rows are of no use.
func (p *Prepared) Renew(w tree.Write, was, now int64) (bool, error) {
	dates := redating{
		textWas: strconv.AppendInt(nil, was, 10), text: strconv.AppendInt(nil, now, 10),
		indexedWas: indexedTime(was), indexed: indexedTime(now),
	}
	keys := make([][]byte, len(p.nodes))
	for i, n := range p.nodes {
		keys[i] = layout.DataKey(nil, p.id, w.Assignments[n.assignment].Path)
		if len(keys[i]) != len(n.key) || !n.times.isEmpty() && !dates.fits() {
			return false, nil
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		if err := n.renew(keys[i], dates); err != nil {
			return false, err
		}
		if err := p.texts[n.assignment].Redate(dates.textWas, dates.text); err != nil {
			return false, err
		}
		a := w.Assignments[n.assignment]
		n.key, n.path, n.node = keys[i], a.Path, a.Node
	}
	return true, nil
}

// renew overwrites the rows of a node.
func (n *preparedNode) renew(key []byte, dates redating) error {
	if n.times.isEmpty() && bytes.Equal(n.key, key) {
		return nil
	}
	// SetRepr works out again what the batch knows of its representation.
	rows := n.rows.Repr()
	if err := n.times.overwrite(rows, dates); err != nil {
		return err
	}
	if !bytes.Equal(n.key, key) {
		if err := n.move(key); err != nil {
			return err
		}
	}
	return n.rows.SetRepr(rows)
}

// move overwrites the key of the node. After the first byte, all rows begin with it,
// and so do both ends of a range that is deleted.
func (n *preparedNode) move(key []byte) error {
	overwrite := func(row []byte) error {
		if len(row) < len(key) || !bytes.Equal(row[1:len(key)], n.key[1:]) {
			return fmt.Errorf("a prepared row is not below its node: %.64x", row)
		}
		copy(row[1:], key[1:])
		return nil
	}
	for r := n.rows.Reader(); ; {
		kind, row, end, ok, err := r.Next()
		if !ok || err != nil {
			return err
		}
		err = overwrite(row)
		if err == nil && kind == pebble.InternalKeyKindRangeDelete {
			err = overwrite(end)
		}
		if err != nil {
			return err
		}
	}
}

// A redating is a new time and the old one, in the two ways in which rows hold them.
type redating struct {
	text, textWas       []byte
	indexed, indexedWas []byte
}

// indexedTime returns a time as it is in the key of an index row.
func indexedTime(millis int64) []byte {
	value := query.AppendIndexValue(nil, query.LeafValue(tree.IntegerLeaf(millis)))
	return value[1:] // without the tag of a number
}

// fits reports whether the new time takes as many bytes as the old one.
func (d redating) fits() bool {
	return len(d.text) == len(d.textWas) && len(d.indexed) == indexedBytes && len(d.indexedWas) == indexedBytes
}

func (t *times) isEmpty() bool { return len(t.text) == 0 && len(t.indexed) == 0 }

// overwrite puts a time into its places in a batch.
func (t *times) overwrite(rows []byte, dates redating) error {
	for _, at := range t.text {
		if err := overwrite(rows, at, dates.textWas, dates.text); err != nil {
			return err
		}
	}
	for _, at := range t.indexed {
		if err := overwrite(rows, at, dates.indexedWas, dates.indexed); err != nil {
			return err
		}
	}
	return nil
}

func overwrite(rows []byte, at uint32, was, is []byte) error {
	place := rows[min(int(at), len(rows)):]
	if !bytes.HasPrefix(place, was) {
		return fmt.Errorf("a prepared row does not hold the time %x at %d", was, at)
	}
	copy(place, is)
	return nil
}
