package inspect

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// CheckData reads every data row of a database and reports those that break an
// invariant of the format, until report returns false. It does not hold chunks
// against the limit, which may have been another when they were written, but against
// the largest that is allowed. The error is what kept it from reading on.
func CheckData(r seek.Reader, report func(Flaw) bool) error {
	it, err := r.Iterator(layout.DataPrefix(r.ID))
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	c := checker{prefix: len(layout.DataPrefix(r.ID))}
	for ok := it.First(); ok; ok = it.Next() {
		row, err := it.ValueAndErr()
		if err != nil {
			return damage.Mark(err)
		}
		if node := c.orphan(it.Key()); node != nil && !report(flawAt(node, errOrphan)) {
			return nil
		}
		if err := c.row(it.Key(), row); err != nil && !report(flawAt(it.Key(), err)) {
			return nil
		}
	}
	if err := it.Error(); err != nil {
		return damage.Mark(err)
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
	if c.chunk != nil && layout.Belongs(key, c.chunk) {
		return fmt.Errorf("below the chunk %x", c.chunk)
	}
	if n := len(path); n > 0 && path[n-1] == layout.PriorityMark {
		if _, err := layout.DecodePath(path[:n-1]); err == nil {
			return c.priority(key, row)
		}
	}
	if _, err := layout.DecodePath(path); err != nil {
		return err
	}
	c.waiting, c.chunk = nil, bytes.Clone(key)
	return checkChunk(row)
}

func (c *checker) priority(key, row []byte) error {
	c.waiting = bytes.Clone(key[:len(key)-1])
	_, err := seek.DecodePriority(key, row)
	return err
}

// orphan returns the node that waits for a child, if the next row is not below it.
func (c *checker) orphan(next []byte) []byte {
	node := c.waiting
	if node == nil || layout.Belongs(next, node) {
		return nil
	}
	c.waiting = nil
	return node
}

// checkChunk holds the bytes of a chunk against those that its node would be
// stored as.
func checkChunk(row []byte) error {
	n, err := layout.DecodeChunk(row)
	if err != nil {
		return err
	}
	again, fits := layout.AppendChunk(nil, n, layout.MaxChunkBytes, nil)
	if !fits {
		return fmt.Errorf("a chunk of %d bytes", len(row))
	}
	if !bytes.Equal(again, row) {
		return errors.New("a chunk that is not in canonical form")
	}
	return nil
}
