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
// true. It holds all rows in memory.
func (t Tree) CheckIndexes(x *Indexes, skip func(number uint32) bool) error {
	want, err := t.expectedRows(x, skip)
	if err != nil {
		return err
	}
	it, err := t.reader.NewIter(&pebble.IterOptions{
		LowerBound: appendSpace(nil, spaceIndex, t.id), UpperBound: appendSpace(nil, spaceIndex, t.id+1),
	})
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	for ok := it.First(); ok; ok = it.Next() {
		number, err := indexNumber(it.Key())
		if err != nil {
			return rowError(it.Key(), err)
		}
		if skip(number) {
			continue
		}
		if !want[string(it.Key())] {
			return rowError(it.Key(), errors.New("an index row without data"))
		}
		delete(want, string(it.Key()))
	}
	for key := range want {
		return rowError([]byte(key), errors.New("an index row is missing"))
	}
	return damaged(it.Error())
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

// expectedRows walks all split nodes and returns the keys of their index rows.
func (t Tree) expectedRows(x *Indexes, skip func(uint32) bool) (map[string]bool, error) {
	e := expectation{t, skip, make(map[string]bool)}
	l := t.locate(tree.Path{})
	c, err := t.cover(l)
	if c != nil || err != nil {
		c.release()
		return e.rows, err
	}
	return e.rows, e.split(l.key, tree.Path{}, x)
}

type expectation struct {
	Tree
	skip func(uint32) bool
	rows map[string]bool
}

// split adds the rows of the split node with a key, and of those below it.
func (e *expectation) split(key []byte, p tree.Path, x *Indexes) error {
	prioritised := false
	type child struct {
		name      string
		component []byte
		split     bool
	}
	var children []child
	err := e.eachChild(key, nil, func(end int, row []byte) (bool, error) {
		name, _, err := cutComponent(row[len(key):end])
		children = append(children, child{name, bytes.Clone(row[len(key):end]), len(row) > end})
		return true, err
	})
	if err != nil {
		return err
	}
	orders := append([]Index{{priorityIndex, query.ByPriority()}}, x.here()...)
	for _, index := range orders {
		var rows []string
		for _, c := range children {
			value, err := e.orderValue(p.Child(c.name), index.Order)
			if err != nil {
				return err
			}
			prioritised = prioritised || index.Number == priorityIndex && query.CompareValues(value, query.Value{}) != 0
			rows = append(rows, string(indexKey(key, index.Number, value, c.component)))
		}
		if index.Number == priorityIndex {
			// Once begun, the index stays when the priorities are gone.
			active, err := e.hasPriorityIndex(key)
			if err != nil {
				return err
			}
			if !prioritised && !active {
				continue
			}
			rows = append(rows, string(indexPrefix(nil, key, priorityIndex)))
		}
		for _, row := range rows {
			if !e.skip(index.Number) {
				e.rows[row] = true
			}
		}
	}
	for _, c := range children {
		if !c.split {
			continue
		}
		if err := e.split(append(bytes.Clone(key), c.component...), p.Child(c.name), x.Child(c.name)); err != nil {
			return err
		}
	}
	return nil
}

// CountIndexRows returns the number of index rows of the database.
func (t Tree) CountIndexRows() (rows int, err error) {
	it, err := t.reader.NewIter(&pebble.IterOptions{
		LowerBound: appendSpace(nil, spaceIndex, t.id), UpperBound: appendSpace(nil, spaceIndex, t.id+1),
	})
	if err != nil {
		return 0, damaged(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		rows++
	}
	return rows, damaged(errors.Join(it.Error(), it.Close()))
}
