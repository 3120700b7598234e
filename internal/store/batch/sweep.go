package batch

import (
	"bytes"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// sweepEvery is after how many deletes of nodes the writer looks for gaps.
const sweepEvery = 64

// sweep looks, after some deletes, at both ends of the children of a parent that
// loses one, and at both ends of its indexes. That is where many deletes meet: a
// queue is emptied from one end. The looks pass what was deleted since the last
// sweep and leave gaps, so that a reader who comes after a million deletes
// passes those of one sweep at most.
func (pl *plan) sweep(indexes *layout.Indexes) error {
	if pl.frontier == nil || !pl.emptying {
		return nil
	}
	before := pl.frontier.deletes / sweepEvery
	var emptied *home
	for _, h := range pl.homes.list {
		if h.empty && h.Depth() > 0 {
			pl.frontier.deletes++
			emptied = h
		}
	}
	if emptied == nil || pl.frontier.deletes/sweepEvery == before {
		return nil
	}
	parent := emptied.At(emptied.Depth() - 1)
	end := pl.data.end(parent)
	if _, err := pl.data.seekBelow(parent, end); err != nil {
		return err
	}
	if _, err := pl.data.seekBack(parent, end); err != nil {
		return err
	}
	numbers := []uint32{layout.PriorityIndex}
	for _, index := range indexes.At(emptied.path.Parent()) {
		numbers = append(numbers, index.Number)
	}
	for _, number := range numbers {
		if err := pl.sweepIndex(layout.IndexPrefix(nil, parent, number)); err != nil {
			return err
		}
	}
	return nil
}

// sweepIndex looks at both ends of the rows of an index that begin with a prefix.
func (pl *plan) sweepIndex(prefix []byte) error {
	rows, err := pl.reader.StepperIn(append(bytes.Clone(prefix), 0), append(bytes.Clone(prefix), 0xFF))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for _, look := range []func() bool{rows.First, rows.Last} {
		if !look() && rows.Error() != nil {
			return damage.Mark(rows.Error())
		}
	}
	return nil
}
