package store

import (
	"bytes"
	"errors"
	"fmt"
)

// Check reads every row of the database and reports the first that breaks an
// invariant of the format, nil if none does. It does not hold chunks against
// the limit, which may have been another when they were written, but against
// the largest that is allowed.
func (t Tree) Check() error {
	var first error
	err := t.CheckEach(func(f Flaw) bool {
		first = f.Err
		return false
	})
	if first != nil {
		return first
	}
	return err
}

// CheckEach is Check for all flaws, until report returns false. The error is what
// kept it from reading on.
func (t Tree) CheckEach(report func(Flaw) bool) error {
	it, err := t.iterator(dataPrefix(t.id))
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	c := checker{prefix: len(dataPrefix(t.id))}
	for ok := it.First(); ok; ok = it.Next() {
		row, err := it.ValueAndErr()
		if err != nil {
			return damaged(err)
		}
		if node := c.orphan(it.Key()); node != nil && !report(flawAt(node, errOrphan)) {
			return nil
		}
		if err := c.row(it.Key(), row); err != nil && !report(flawAt(it.Key(), err)) {
			return nil
		}
	}
	if err := it.Error(); err != nil {
		return damaged(err)
	}
	if c.waiting != nil {
		report(flawAt(c.waiting, errOrphan))
	}
	return nil
}

var errOrphan = errors.New("a priority without a node")

// A checker sees the rows of a database in order.
type checker struct {
	prefix int
	chunk  []byte // the key of the newest chunk
	// waiting is the key of a split node whose priority was seen and whose
	// first child must follow.
	waiting []byte
}

func (c *checker) row(key, row []byte) error {
	path := key[c.prefix:]
	if c.chunk != nil && belongs(key, c.chunk) {
		return fmt.Errorf("below the chunk %x", c.chunk)
	}
	if n := len(path); n > 0 && path[n-1] == priorityMark {
		if _, err := decodePath(path[:n-1]); err == nil {
			return c.priority(key, row)
		}
	}
	if _, err := decodePath(path); err != nil {
		return err
	}
	c.waiting, c.chunk = nil, bytes.Clone(key)
	return checkChunk(row)
}

func (c *checker) priority(key, row []byte) error {
	c.waiting = bytes.Clone(key[:len(key)-1])
	_, err := decodePriorityRow(key, row)
	return err
}

// orphan returns the node that waits for a child, if the next row is not below it.
func (c *checker) orphan(next []byte) []byte {
	node := c.waiting
	if node == nil || belongs(next, node) {
		return nil
	}
	c.waiting = nil
	return node
}

// checkChunk holds the bytes of a chunk against those that its node would be
// stored as.
func checkChunk(row []byte) error {
	n, err := decodeRow(row)
	if err != nil {
		return err
	}
	again, fits := appendRow(nil, n, MaxChunkBytes)
	if !fits {
		return fmt.Errorf("a chunk of %d bytes", len(row))
	}
	if !bytes.Equal(again, row) {
		return errors.New("a chunk that is not in canonical form")
	}
	return nil
}

// Count returns the number of data rows of the database.
func (t Tree) Count() (rows int, err error) {
	it, err := t.iterator(dataPrefix(t.id))
	if err != nil {
		return 0, damaged(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		rows++
	}
	return rows, damaged(errors.Join(it.Error(), it.Close()))
}
