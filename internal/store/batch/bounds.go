package batch

import (
	"cmp"
	"errors"

	"github.com/livetree/livetree/internal/tree"
)

// ErrTooMuch says that a write has longer rows than fit into one commit: some bytes can change the priorities of many long
// strings, and each row of many small children has the keys of all nodes above them.
var ErrTooMuch = errors.New("the rows of one write take too much")

var (
	// mostRows is how many bytes the rows of one write may take, and a little more. Pebble ends the process at twice as many.
	mostRows int64 = 2 << 30
	// manyRows is what they may take however few bytes the write has: see Maker.Spread.
	manyRows int64 = 64 << 20
	// pointDeletes is PointDeletes, but in tests that want ranges of few rows.
	pointDeletes = PointDeletes
)

// mostRows returns how many bytes the rows of a write may take. A null has no bytes of its own, but its name was sent, too.
func (m Maker) mostRows(w tree.Write) int64 {
	if m.Spread == 0 {
		return mostRows
	}
	const assignmentBytes = 16 // at least, as a leaf takes
	bytes := w.Bytes()
	for _, a := range w.Assignments {
		bytes += assignmentBytes + len(a.Name)
	}
	return min(mostRows, max(cmp.Or(m.ManyRows, manyRows), int64(bytes)*int64(m.Spread)))
}

// bound fails if the rows take too much.
func (w *writer) bound() error {
	if int64(w.rows.Len()) > w.most {
		return ErrTooMuch
	}
	return nil
}

// set adds a row, if the rows do not take too much then.
func (w *writer) set(key, value []byte) error {
	if err := w.rows.Set(key, value, nil); err != nil {
		return err
	}
	return w.bound()
}

// delete adds that a row goes. In a batch that takes room, too.
func (w *writer) delete(key []byte) error {
	if err := w.rows.Delete(key, nil); err != nil {
		return err
	}
	return w.bound()
}
