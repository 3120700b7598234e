package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// maxAlike is how many strings that begin alike, and are longer than an index row
// holds, are sorted at a time, and maxAlikeBytes how long they may be together.
const (
	maxAlike      = 10_000
	maxAlikeBytes = 32 << 20
)

// ErrAlike says that the limit of a query ends among too many long strings that
// begin alike.
var ErrAlike = fmt.Errorf("more than %d strings, or %d MiB of them, are longer than %d bytes and begin alike",
	maxAlike, maxAlikeBytes>>20, query.MaxIndexedText)

// An indexWalk finds children by the rows of an index.
type indexWalk struct {
	of     *Selection
	reader seek.Reader
	most   int // how many strings that begin alike are sorted at a time
	path   tree.Path
	parent []byte
	query  query.Query
	number uint32
}

// each calls yield with the selected children's components, from the end of the
// order if the limit counts from there. Of those that are longer than an index row
// holds and begin alike, only the last is sure to be in its place.
func (w *indexWalk) each(yield func(component []byte) error) error {
	prefix := layout.IndexPrefix(nil, w.parent, w.number)
	from := w.query.AppendLower(bytes.Clone(prefix), layout.AppendComponent)
	to := w.query.AppendUpper(bytes.Clone(prefix), layout.AppendComponent)
	if w.number == layout.PriorityIndex && len(from) == len(prefix) {
		from = append(from, 0) // the row that says that the index is there
	}
	if bytes.Compare(from, to) >= 0 {
		return nil
	}
	rows, err := w.reader.StepperIn(from, to)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	rows.Cost = nil // it is counted here
	first, next := rows.First, rows.Step
	if w.query.Last {
		first, next = rows.Last, rows.StepBack
	}
	group := alikeGroup{indexWalk: w, left: w.query.Limit, yield: yield}
	row := 0
	for ok := first(); ok; ok = next() {
		if err := w.of.left(row); err != nil {
			return err
		}
		row++
		w.reader.Cost.Add(len(rows.Key()))
		if more, err := group.row(rows.Key(), len(prefix)); err != nil || !more {
			return err
		}
	}
	if err := rows.Error(); err != nil {
		return damage.Mark(err)
	}
	_, err = group.end()
	return err
}

// An alikeGroup gathers neighbouring rows whose values were cut at the same place.
// Only the data tells their order.
type alikeGroup struct {
	*indexWalk
	left  int // what the limit leaves; negative without one
	yield func(component []byte) error

	value   []byte // the cut value of the group; empty if there is none
	bounded bool   // a bound of the query may be inside the group
	rows    int
	found   []query.Position
	bytes   int // of the values that were found
	// through says that all that are within the bounds are selected, so that the
	// order does not matter.
	through bool
}

// row takes the child of an index row, whose value begins after a prefix. It
// reports whether the limit leaves more.
func (g *alikeGroup) row(key []byte, prefix int) (more bool, err error) {
	row := key[prefix:]
	n, cut := query.IndexValueLen(row)
	if n < 0 || layout.ComponentLen(row[n:]) != len(row)-n {
		return false, damage.AtRow(key, errors.New("not an index row"))
	}
	if len(g.value) > 0 && !bytes.Equal(row[:n], g.value) {
		if more, err := g.end(); err != nil || !more {
			return more, err
		}
	}
	if !cut {
		return g.take(row[n:])
	}
	if len(g.value) == 0 {
		g.value = append(g.value, row[:n]...)
		g.bounded = g.holds(g.query.Lower) || g.holds(g.query.Upper)
		g.through = g.query.Limit == 0
	}
	return g.add(key[:prefix], row[n:])
}

// take selects a child.
func (g *alikeGroup) take(component []byte) (more bool, err error) {
	g.left--
	return g.left != 0, g.yield(component)
}

// add adds a child to the group.
func (g *alikeGroup) add(prefix, component []byte) (more bool, err error) {
	g.rows++
	if !g.through && (g.rows > g.most || g.bytes > maxAlikeBytes) {
		if err := g.pass(prefix); err != nil {
			return false, err
		}
	}
	if g.through && !g.bounded {
		return g.take(component)
	}
	key, _, err := layout.CutComponent(component)
	if err != nil {
		return false, damage.Mark(err)
	}
	value, err := g.reader.OrderValue(g.path.Child(key), g.query.Order)
	if err != nil {
		return false, err
	}
	p := query.Position{Value: value, Key: key}
	switch {
	case !g.query.Contains(p):
		return true, nil
	case g.through:
		return g.take(component)
	}
	g.keep(p)
	return true, nil
}

// keep remembers a child that was found. Now and then it forgets those that the
// limit does not reach.
func (g *alikeGroup) keep(p query.Position) {
	p.Value = p.Value.Clone()
	g.found = append(g.found, p)
	if g.bytes += p.Value.TextBytes(); len(g.found) < 2*g.left {
		return
	}
	g.sort()
	clear(g.found[g.left:])
	g.found, g.bytes = g.found[:g.left], 0
	for _, p := range g.found {
		g.bytes += p.Value.TextBytes()
	}
}

// sort sorts what was found, in the direction of the limit.
func (g *alikeGroup) sort() {
	slices.SortFunc(g.found, query.Compare)
	if g.query.Last {
		slices.Reverse(g.found)
	}
}

// holds reports whether a bound may be inside the group.
func (g *alikeGroup) holds(b query.Bound) bool {
	return b.Set && bytes.Equal(query.AppendIndexValue(nil, query.LeafValue(b.Value)), g.value)
}

// pass has the children of a group that is too large to be sorted taken as they
// come, if the limit does not end among them.
func (g *alikeGroup) pass(prefix []byte) error {
	from := append(bytes.Clone(prefix), g.value...)
	to := bytes.Clone(from)
	to[len(to)-1]++ // no index value is a prefix of another
	rows, err := g.reader.StepperIn(from, to)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	rows.Cost = nil // the walk counts them
	passed := 0
	for ok := rows.First(); ok; ok = rows.Step() {
		if err := g.of.left(passed); err != nil {
			return err
		}
		if passed++; passed >= g.left {
			return ErrAlike
		}
	}
	if err := rows.Error(); err != nil {
		return damage.Mark(err)
	}
	g.through = true
	_, err = g.takeFound()
	return err
}

// end takes the children of the group, and closes it.
func (g *alikeGroup) end() (more bool, err error) {
	g.sort()
	more, err = g.takeFound()
	g.value, g.rows, g.through = g.value[:0], 0, false
	return more, err
}

func (g *alikeGroup) takeFound() (more bool, err error) {
	for _, p := range g.found {
		if more, err := g.take(layout.AppendComponent(nil, p.Key)); err != nil || !more {
			return more, err
		}
	}
	clear(g.found)
	g.found, g.bytes = g.found[:0], 0
	return true, nil
}
