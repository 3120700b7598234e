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
		if err := c.row(it.Key(), row); err != nil {
			return rowError(it.Key(), err)
		}
	}
	if err := it.Error(); err != nil {
		return damaged(err)
	}
	return c.end()
}

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
	if c.waiting != nil && !belongs(key, c.waiting) {
		return c.end()
	}
	c.waiting, c.chunk = nil, bytes.Clone(key)
	return checkChunk(row)
}

func (c *checker) priority(key, row []byte) error {
	node := key[:len(key)-1]
	if c.waiting != nil && !belongs(key, c.waiting) {
		return c.end()
	}
	c.waiting = bytes.Clone(node)
	_, err := decodePriorityRow(key, row)
	return err
}

func (c *checker) end() error {
	if c.waiting == nil {
		return nil
	}
	return rowError(c.waiting, errors.New("a priority without a node"))
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
