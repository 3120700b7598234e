package seek

import (
	"bytes"
	"errors"
	"runtime"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A DueYield is called with a child that may expire: the index by which it does, its path,
// and the value at its time, which need not be a number.
type DueYield func(index layout.Index, child tree.Path, time query.Value) error

// EachDue calls yield with the children that may expire in a node at a path, for which x is
// in force.
func EachDue(n tree.Node, at tree.Path, x *layout.Indexes, yield DueYield) error {
	if !x.Expires() || !n.IsObject() {
		return nil
	}
	for key, child := range n.Children() {
		path := at.Child(key)
		for _, index := range x.DueHere() {
			if err := yield(index, path, index.Order.Value(child)); err != nil {
				return err
			}
		}
		if err := EachDue(child, path, x.Child(key), yield); err != nil {
			return err
		}
	}
	return nil
}

// A DueWalk finds the children of a database that may expire, from its data rows. It passes
// all that no such child is in.
type DueWalk struct {
	Reader  Reader
	Indexes *layout.Indexes // of the root
	Yield   DueYield
	// Below is the data key of a node, if only children below it are asked for.
	Below []byte

	rows *Stepper
	last []byte // the key of the row before, nil for the first
}

// yieldEvery is after how many rows others may go first.
const yieldEvery = 32

// Run walks the rows from a data key to another, excluded. After so many rows it stops and
// returns where it is to go on, else nil. It may call Yield again with the child that the
// last run ended in.
func (w *DueWalk) Run(from, to []byte, most int) (cursor []byte, err error) {
	if w.rows, err = w.Reader.StepperIn(bytes.Clone(from), bytes.Clone(to)); err != nil {
		return nil, err
	}
	defer func() { _ = w.rows.Close() }()
	w.last = nil
	for ok := w.rows.First(); ok; {
		if most--; most < 0 {
			return bytes.Clone(w.rows.Key()), nil
		}
		if most%yieldEvery == 0 {
			runtime.Gosched()
		}
		past, err := w.row(w.rows.Key())
		if err != nil {
			return nil, err
		}
		w.last = append(w.last[:0], w.rows.Key()...)
		if past > 0 && past < len(w.last) {
			ok = w.rows.SeekGE(layout.SubtreeEnd(nil, w.last[:past]))
		} else {
			ok = w.rows.Step()
		}
	}
	return nil, damage.Mark(w.rows.Error())
}

// row looks at one row. If no row below the first bytes of its key is of interest any
// more, it returns how many bytes those are.
func (w *DueWalk) row(key []byte) (past int, err error) {
	x, path, end := w.Indexes, tree.Path{}, layout.RootBytes
	for x.Expires() {
		n := layout.ComponentLen(key[end:])
		if n < 0 && end == len(key) {
			return 0, w.chunk(path, x)
		}
		if n < 0 {
			return 0, nil // a priority
		}
		name, _, err := layout.CutComponent(key[end : end+n])
		if err != nil {
			return 0, damage.AtRow(key, err)
		}
		end, path = end+n, path.Child(name)
		if len(x.DueHere()) > 0 && end > len(w.Below) && (w.last == nil || !layout.Belongs(w.last, key[:end])) {
			if err := w.child(path, x.DueHere(), end == len(key)); err != nil {
				return 0, err
			}
		}
		x = x.Child(name)
	}
	return end, nil
}

// chunk looks at what is below a chunk.
func (w *DueWalk) chunk(path tree.Path, x *layout.Indexes) error {
	row, err := w.rows.ValueAndErr()
	if err != nil {
		return damage.Mark(err)
	}
	n, err := layout.DecodeChunk(row)
	if err != nil {
		return damage.AtRow(w.rows.Key(), err)
	}
	return EachDue(n, path, x, w.Yield)
}

// child looks at the times of one child, which is one chunk or split.
func (w *DueWalk) child(path tree.Path, indexes []layout.Index, isChunk bool) error {
	for _, index := range indexes {
		time, err := w.time(path, index, isChunk)
		if err != nil {
			return err
		}
		if err := w.Yield(index, path, time); err != nil {
			return err
		}
	}
	return nil
}

func (w *DueWalk) time(path tree.Path, index layout.Index, isChunk bool) (query.Value, error) {
	if !isChunk {
		return w.Reader.OrderValue(path, index.Order)
	}
	row, err := w.rows.ValueAndErr()
	if err != nil {
		return query.Value{}, damage.Mark(err)
	}
	if err := layout.CheckChunk(row); err != nil {
		return query.Value{}, damage.AtRow(w.rows.Key(), err)
	}
	on, _ := index.Order.Child()
	g, err := layout.SummarizeIn(row, on)
	if err != nil {
		return query.Value{}, damage.AtRow(w.rows.Key(), err)
	}
	return g.Value.Clone(), nil
}

// EachDueRow calls yield with the keys of the rows of what expires, from one key to another,
// excluded, until it returns false. They are good until it returns.
func (r Reader) EachDueRow(from, to []byte, yield func(key []byte) bool) error {
	rows, err := r.StepperIn(from, to)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for ok := rows.First(); ok; ok = rows.Step() {
		if !yield(rows.Key()) {
			return nil
		}
	}
	return damage.Mark(rows.Error())
}

// SweepMark returns what the row says by which rows of what expires are to be swept, nil if
// there is none.
func (r Reader) SweepMark() ([]byte, error) {
	mark, closer, err := r.Source.Get(layout.SweepKey(r.ID))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damage.Mark(err)
	}
	return append([]byte{}, mark...), closer.Close()
}
