package batch

import (
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// dataRows finds data rows of a database as they are before a write, by one stepper
// that is opened when it is first needed.
type dataRows struct {
	reader seek.Reader
	it     seek.Stepper

	// The rest is memory that is used again: for the bounds of the stepper, for the
	// end of a seek and for its beginning.
	bounds, limit, from []byte
}

// emptied returns dataRows that are not open, with the memory of these.
func (d *dataRows) emptied() dataRows {
	return dataRows{it: d.it.Emptied(), bounds: d.bounds, limit: d.limit, from: d.from}
}

func (d *dataRows) close() error {
	if d.it.Iterator == nil {
		return nil
	}
	return d.it.Close()
}

// end returns the end of the subtree of a key. It is valid until the next call.
func (d *dataRows) end(key []byte) []byte {
	d.limit = layout.SubtreeEnd(d.limit[:0], key)
	return d.limit
}

// has reports whether there are rows below the node with a key, which has no row of
// its own.
func (d *dataRows) has(key []byte) (bool, error) {
	row, err := d.seekBelow(key, d.end(key))
	return row != nil && layout.Belongs(row, key), err
}

// seekBelow returns the key of the first row after that of a node, and before to;
// nil if there is none. Unlike a seek from the node's own key it does not pass the
// versions of a row that was set and deleted there many times.
func (d *dataRows) seekBelow(key, to []byte) ([]byte, error) {
	d.from = append(append(d.from[:0], key...), 0)
	return d.seek(d.from, to)
}

// seek returns the key of the first row at or after from, and before to; nil if
// there is none. It never steps: a seek past a row that was rewritten often is
// quick. Nor does it look at what was deleted after to.
func (d *dataRows) seek(from, to []byte) ([]byte, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	if !d.it.SeekGEUpTo(from, to) {
		return nil, damage.Mark(d.it.Error())
	}
	return d.it.Key(), nil
}

// seekBack returns the key of the last row before to, and at or after from; nil if
// there is none.
func (d *dataRows) seekBack(from, to []byte) ([]byte, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	if !d.it.SeekLTDownTo(to, from) {
		return nil, damage.Mark(d.it.Error())
	}
	return d.it.Key(), nil
}

// open opens the stepper over all data of the database, once.
func (d *dataRows) open() error {
	if d.it.Iterator != nil {
		return nil
	}
	d.bounds = layout.AppendSpace(d.bounds[:0], layout.SpaceData, d.reader.ID)
	n := len(d.bounds)
	d.bounds = layout.SubtreeEnd(d.bounds, d.bounds)
	return d.it.Open(d.reader, d.bounds[:n:n], d.bounds[n:])
}
