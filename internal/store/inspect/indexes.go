package inspect

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// CheckIndexes compares the index rows of a database with those that follow from
// its data, and reports those that are missing or too many, until report returns
// false. Rows of indexes that are not in x are not looked at, nor are those for which
// skip is true. Its memory does not grow with the data, and its time as much as the data does, unless there is a flaw.
func CheckIndexes(r seek.Reader, x *layout.Indexes, skip func(number uint32) bool, report func(Flaw) bool) error {
	r.Rows = nil // what is remembered is not what is stored
	c := indexChecker{reader: r, skip: skip, report: report}
	l := r.Locate(tree.Path{})
	root, err := r.Chunk(l)
	root.Release()
	if root == nil && err == nil {
		err = c.split(l.Key, tree.Path{}, x)
	}
	if err == nil {
		err = c.strays()
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// errEnough ends a check whose caller wants to hear no more.
var errEnough = errors.New("enough flaws")

type indexChecker struct {
	reader seek.Reader
	skip   func(uint32) bool
	report func(Flaw) bool
	seen   int // rows at split nodes, of indexes that are in force there
}

func (c *indexChecker) flaw(key []byte, err error) error {
	if c.report(flawAt(key, err)) {
		return nil
	}
	return errEnough
}

// split checks the rows of the split node with a key, and of those below it.
func (c *indexChecker) split(key []byte, p tree.Path, x *layout.Indexes) error {
	for _, index := range append([]layout.Index{layout.ByPriority()}, x.List()...) {
		if c.skip(index.Number) {
			continue
		}
		if err := c.index(key, p, index); err != nil {
			return err
		}
	}
	return c.reader.EachChild(key, nil, func(end int, row []byte) (bool, error) {
		if len(row) == end {
			return true, nil // a chunk
		}
		name, _, err := layout.CutComponent(row[len(key):end])
		if err != nil {
			return false, damage.AtRow(row, err)
		}
		return true, c.split(bytes.Clone(row[:end]), p.Child(name), x.Child(name))
	})
}

// index checks the rows of one index at one split node. Sums of the rows that follow from the data, and of those that are
// there, are compared first: both are read in their order, once, which a look-up of each row is not. Only if the sums differ
// are the rows looked for one by one.
func (c *indexChecker) index(key []byte, p tree.Path, index layout.Index) error {
	from, to := layout.IndexPrefix(nil, key, index.Number), layout.IndexPrefix(nil, key, index.Number+1)
	k := layout.Keeping{Kept: true}
	var want, got rowSum
	if index.Number == layout.PriorityIndex {
		// Once begun, the index stays when the priorities are gone, and so does its row without a child.
		var err error
		if k, err = c.priorityState(key); err != nil {
			return err
		}
		if k.Kept {
			want.add(from)
		}
	}
	rows, err := countRows(c.reader, from, to, func(row []byte) (bool, error) {
		got.add(row)
		return true, nil
	})
	c.seen += rows
	if err != nil {
		return err
	}
	followed := want
	err = c.eachRow(key, p, index, k, func(row []byte, must bool) error {
		if !must {
			if there, err := c.has(row); !there || err != nil {
				return err
			}
		}
		followed.add(row)
		return nil
	})
	if err != nil || followed == got {
		return err
	}
	there, err := c.search(key, p, index, k)
	if there += want.rows; err == nil && got.rows > there {
		err = c.flaw(from, fmt.Errorf("%d index rows without data", got.rows-there))
	}
	return err
}

// search looks for each row of an index that follows from the data, reports those that are missing, and returns how many are there.
func (c *indexChecker) search(key []byte, p tree.Path, index layout.Index, k layout.Keeping) (rows int, err error) {
	err = c.eachRow(key, p, index, k, func(row []byte, must bool) error {
		there, err := c.has(row)
		switch {
		case err != nil:
			return err
		case there:
			rows++
		case must:
			return c.flaw(bytes.Clone(row), errors.New("an index row is missing"))
		}
		return nil
	})
	return rows, err
}

// eachRow yields the rows of an index that follow from the children of the node with a key, and whether they must be there:
// while the index is built, those of some may be missing. A row is valid until yield returns.
func (c *indexChecker) eachRow(key []byte, p tree.Path, index layout.Index, k layout.Keeping, yield func(row []byte, must bool) error) error {
	var buffer []byte
	return c.reader.EachChildRow(key, nil, func(end int, rows *seek.Stepper) (bool, error) {
		component := rows.Key()[len(key):end]
		value, err := c.value(p, component, index, rows, end == len(rows.Key()))
		if err != nil {
			return false, err
		}
		isNull := query.CompareValues(value, query.Value{}) == 0
		if isNull && !k.Kept {
			return true, nil
		}
		buffer = layout.IndexKey(buffer[:0], key, index.Number, value, component)
		err = yield(buffer, !isNull || k.Covers(component))
		return err == nil, err
	})
}

// value returns what a child is ordered by, whose row the stepper is at.
func (c *indexChecker) value(p tree.Path, component []byte, index layout.Index, rows *seek.Stepper, isChunk bool) (query.Value, error) {
	if isChunk {
		row, err := rows.ValueAndErr()
		if err != nil {
			return query.Value{}, damage.Mark(err)
		}
		value, err := seek.OrderValueOfChunk(row, index.Order)
		if err != nil {
			return query.Value{}, damage.AtRow(rows.Key(), err)
		}
		return value, nil
	}
	name, _, err := layout.CutComponent(component)
	if err != nil {
		return query.Value{}, damage.AtRow(rows.Key(), err)
	}
	return c.reader.OrderValue(p.Child(name), index.Order)
}

// priorityState returns whether a node keeps the index by priority. If rows are
// missing, the node must be in the list of those whose index is to be built.
func (c *indexChecker) priorityState(key []byte) (layout.Keeping, error) {
	k, err := c.reader.Keeping(key)
	if err != nil || !k.IsBuilding() {
		return k, err
	}
	listed, err := c.has(layout.UnbuiltKey(c.reader.ID, k.Begun, key))
	if err == nil && !listed {
		err = c.flaw(layout.IndexPrefix(nil, key, layout.PriorityIndex), errors.New("the index by priority is not whole, and is not in the list of those to be built"))
	}
	return k, err
}

// has reports whether there is a row.
func (c *indexChecker) has(key []byte) (bool, error) {
	_, closer, err := c.reader.Source.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, damage.Mark(err)
	}
	return true, closer.Close()
}

// strays reports rows at nodes that should have none.
func (c *indexChecker) strays() error {
	if err := c.unbuiltList(); err != nil {
		return err
	}
	got, err := countRows(c.reader, layout.UnbuiltEnd(c.reader.ID), layout.AppendSpace(nil, layout.SpaceIndex, c.reader.ID+1), func(key []byte) (bool, error) {
		if layout.IsDueKey(key) {
			return false, nil // CheckDue looks at these
		}
		number, err := layout.IndexNumber(key)
		if err != nil {
			return false, c.flaw(key, err)
		}
		return !c.skip(number), nil
	})
	if err == nil && got > c.seen {
		err = c.flaw(layout.AppendSpace(nil, layout.SpaceIndex, c.reader.ID), fmt.Errorf("%d index rows at nodes that have no such index", got-c.seen))
	}
	return err
}

// unbuiltList checks the list of nodes whose index by priority is to be built. What
// was deleted or replaced since may be in it.
func (c *indexChecker) unbuiltList() error {
	_, err := countRows(c.reader, layout.AppendSpace(nil, layout.SpaceIndex, c.reader.ID), layout.UnbuiltEnd(c.reader.ID), func(key []byte) (bool, error) {
		if _, _, err := layout.CutUnbuiltKey(c.reader.ID, key); err != nil {
			return false, c.flaw(key, err)
		}
		return true, nil
	})
	return err
}

// countRows returns how many index rows of a range count.
func countRows(r seek.Reader, from, to []byte, counts func(key []byte) (bool, error)) (rows int, err error) {
	it, err := r.Source.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return 0, damage.Mark(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if len(it.Value()) > 0 && !layout.IsKeepingKey(it.Key()) && !layout.IsSweepKey(it.Key()) {
			return rows, damage.AtRow(it.Key(), errors.New("an index row with a value"))
		}
		counted, err := counts(it.Key())
		if err != nil {
			return rows, err
		}
		if counted {
			rows++
		}
	}
	return rows, damage.Mark(it.Error())
}
