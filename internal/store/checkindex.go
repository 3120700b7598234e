package store

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// CheckIndexes compares the index rows of the database with those that follow
// from its data, and reports the first that is missing or too many. Rows of
// indexes that are not in x are not looked at, nor are those for which skip is
// true.
func (t Tree) CheckIndexes(x *Indexes, skip func(number uint32) bool) error {
	var first error
	err := t.CheckEachIndex(x, skip, func(f Flaw) bool {
		first = f.Err
		return false
	})
	if first != nil {
		return first
	}
	return err
}

// CheckEachIndex is CheckIndexes for all flaws, until report returns false. Its
// memory does not grow with the data: the rows that follow from the data are
// looked for one by one, and there may not be more than those.
func (t Tree) CheckEachIndex(x *Indexes, skip func(number uint32) bool, report func(Flaw) bool) error {
	c := indexChecker{Tree: t, skip: skip, report: report}
	l := t.locate(tree.Path{})
	root, err := t.cover(l)
	root.release()
	if root == nil && err == nil {
		err = c.split(l.key, tree.Path{}, x)
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
	Tree
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
func (c *indexChecker) split(key []byte, p tree.Path, x *Indexes) error {
	for _, index := range append([]Index{{priorityIndex, query.ByPriority()}}, x.here()...) {
		if c.skip(index.Number) {
			continue
		}
		if err := c.index(key, p, index); err != nil {
			return err
		}
	}
	return c.eachChild(key, nil, func(end int, row []byte) (bool, error) {
		if len(row) == end {
			return true, nil // a chunk
		}
		name, _, err := cutComponent(row[len(key):end])
		if err != nil {
			return false, rowError(row, err)
		}
		return true, c.split(bytes.Clone(row[:end]), p.Child(name), x.Child(name))
	})
}

// index checks the rows of one index at one split node.
func (c *indexChecker) index(key []byte, p tree.Path, index Index) error {
	want := 0
	active := true
	if index.Number == priorityIndex {
		// Once begun, the index stays when the priorities are gone.
		var err error
		if active, err = c.hasPriorityIndex(key); err != nil {
			return err
		}
		if active {
			want++
		}
	}
	err := c.eachChild(key, nil, func(end int, row []byte) (bool, error) {
		component := row[len(key):end]
		name, _, err := cutComponent(component)
		if err != nil {
			return false, rowError(row, err)
		}
		value, err := c.orderValue(p.Child(name), index.Order)
		if err != nil || !active && query.CompareValues(value, query.Value{}) == 0 {
			return err == nil, err
		}
		want++
		return true, c.expect(indexKey(nil, key, index.Number, value, component))
	})
	if err != nil {
		return err
	}
	from, to := indexPrefix(nil, key, index.Number), indexPrefix(nil, key, index.Number+1)
	got, err := c.countRows(from, to, func([]byte) (bool, error) { return true, nil })
	c.seen += got
	if err == nil && got > want {
		err = c.flaw(from, fmt.Errorf("%d index rows without data", got-want))
	}
	return err
}

// expect looks for an index row.
func (c *indexChecker) expect(key []byte) error {
	_, closer, err := c.reader.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return c.flaw(key, errors.New("an index row is missing"))
	}
	if err != nil {
		return damaged(err)
	}
	return closer.Close()
}

// strays reports rows at nodes that should have none.
func (c *indexChecker) strays() error {
	got, err := c.countRows(appendSpace(nil, spaceIndex, c.id), appendSpace(nil, spaceIndex, c.id+1), func(key []byte) (bool, error) {
		number, err := indexNumber(key)
		if err != nil {
			return false, c.flaw(key, err)
		}
		return !c.skip(number), nil
	})
	if err == nil && got > c.seen {
		err = c.flaw(appendSpace(nil, spaceIndex, c.id), fmt.Errorf("%d index rows at nodes that have no such index", got-c.seen))
	}
	return err
}

// countRows returns how many index rows of a range count.
func (t Tree) countRows(from, to []byte, counts func(key []byte) (bool, error)) (rows int, err error) {
	it, err := t.reader.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return 0, damaged(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if len(it.Value()) > 0 {
			return rows, rowError(it.Key(), errors.New("an index row with a value"))
		}
		counted, err := counts(it.Key())
		if err != nil {
			return rows, err
		}
		if counted {
			rows++
		}
	}
	return rows, damaged(it.Error())
}

// indexNumber returns the number of the index that a row belongs to.
func indexNumber(key []byte) (uint32, error) {
	rest := key[len(dataPrefix(0)):]
	for {
		n := componentLen(rest)
		if n < 0 {
			break
		}
		rest = rest[n:]
	}
	if len(rest) < 5 || rest[0] != priorityMark {
		return 0, fmt.Errorf("no index row: %x", key)
	}
	return uint32(rest[1])<<24 | uint32(rest[2])<<16 | uint32(rest[3])<<8 | uint32(rest[4]), nil
}

// CountIndexRows returns the number of index rows of the database.
func (t Tree) CountIndexRows() (rows int, err error) {
	return t.countRows(appendSpace(nil, spaceIndex, t.id), appendSpace(nil, spaceIndex, t.id+1),
		func([]byte) (bool, error) { return true, nil })
}
