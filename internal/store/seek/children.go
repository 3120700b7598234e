package seek

import (
	"bytes"
	"errors"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// EachChild calls yield with each child of a split node from a data key on: with
// a row of the child, and the length of the child's own key in it.
func (r Reader) EachChild(parent, from []byte, yield func(end int, key []byte) (bool, error)) error {
	return r.EachChildRow(parent, from, func(end int, rows *Stepper) (bool, error) { return yield(end, rows.Key()) })
}

// EachChildRow is EachChild for those who also want what is in the row: a child whose
// key is the row's is one chunk, which needs not be looked for then.
func (r Reader) EachChildRow(parent, from []byte, yield func(end int, rows *Stepper) (bool, error)) error {
	rows, err := r.Stepper(parent)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	if from == nil {
		from = append(bytes.Clone(parent), layout.PriorityMark, 0) // behind the priority
	}
	for ok := rows.SeekGE(from); ok; {
		end, err := layout.ChildEnd(rows.Key(), len(parent))
		if err != nil {
			return damage.Mark(err)
		}
		more, err := yield(end, rows)
		if err != nil || !more {
			return err
		}
		ok = rows.SkipChild(end)
	}
	return damage.Mark(rows.Error())
}

// HasRows reports whether there are rows in the subtree of a key.
func (r Reader) HasRows(key []byte) (bool, error) {
	rows, err := r.Stepper(key)
	if err != nil {
		return false, err
	}
	found := rows.First()
	return found, damage.Mark(errors.Join(rows.Error(), rows.Close()))
}

// HasMoreRows reports whether more than some rows are in the subtree of a key.
func (r Reader) HasMoreRows(key []byte, some int) (bool, error) {
	rows, err := r.Stepper(key)
	if err != nil {
		return false, err
	}
	n := 0
	for ok := rows.First(); ok && n <= some; ok = rows.Step() {
		n++
	}
	return n > some, damage.Mark(errors.Join(rows.Error(), rows.Close()))
}
