package store

import (
	"errors"

	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/layout"
)

// firstFlaw returns the first flaw that a check reports, or what kept the check from
// reading on.
func firstFlaw(check func(report func(inspect.Flaw) bool) error) error {
	var first error
	err := check(func(f inspect.Flaw) bool {
		first = f.Err
		return false
	})
	return errors.Join(first, err)
}

// checkData returns the first flaw in the data rows of a tree.
func checkData(t Tree) error {
	return firstFlaw(func(report func(inspect.Flaw) bool) error { return inspect.CheckData(t.reader, report) })
}

// checkIndexes returns the first flaw in the index rows of a tree.
func checkIndexes(t Tree, x *layout.Indexes) error {
	return firstFlaw(func(report func(inspect.Flaw) bool) error {
		return inspect.CheckIndexes(t.reader, x, func(uint32) bool { return false }, report)
	})
}

// countSpace returns how many rows a tree has in a space.
func countSpace(t Tree, space byte) (rows int, err error) {
	it, err := t.reader.Space(space)
	if err != nil {
		return 0, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		rows++
	}
	return rows, errors.Join(it.Error(), it.Close())
}
