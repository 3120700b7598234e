package seek

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A Chunk is the chunk that holds a location: the location's own, or that of an
// ancestor.
type Chunk struct {
	Depth int    // of the chunk's node
	Row   []byte // valid until Release
	io.Closer
}

// Release gives the row back. A nil chunk has none.
func (c *Chunk) Release() {
	if c != nil {
		_ = c.Close()
	}
}

// Chunk finds the chunk that holds l; nil if there is none, because the node is
// split or absent. Looking for each possible row is cheap: a row that is not
// there is ruled out by the bloom filters, and unlike an iterator's step a Get
// does not slow down when a row was rewritten many times. There is one at most,
// so the order of looking is free: the depth that was right for a similar
// location comes first.
func (r Reader) Chunk(l layout.Location) (*Chunk, error) {
	hint := r.Shared.hints.of(l)
	guess := int(min(hint.Load(), uint32(l.Depth())))
	if c, err := r.chunkAt(l, guess); c != nil || err != nil {
		return c, err
	}
	for d := l.Depth(); d >= 0; d-- {
		if d == guess {
			continue
		}
		if c, err := r.chunkAt(l, d); c != nil || err != nil {
			hint.Store(uint32(d))
			return c, err
		}
	}
	return nil, nil
}

// Open finds what holds l: a chunk, or, if its node is split, a stepper at the
// first of its rows. There is neither if there is no data.
//
// What was split before is looked for among the rows first. One that is found
// below l makes it needless to ask for chunks: there is none above a row.
func (r Reader) Open(l layout.Location) (*Chunk, *Stepper, error) {
	hint := r.Shared.hints.of(l)
	if hint.Load() == splitHint {
		rows, err := r.openRows(l)
		if rows != nil || err != nil {
			return nil, rows, err
		}
		hint.Store(uint32(l.Depth()))
	}
	c, err := r.Chunk(l)
	if c != nil || err != nil {
		return c, nil, err
	}
	rows, err := r.openRows(l)
	if rows != nil {
		hint.Store(splitHint)
	}
	return nil, rows, err
}

// openRows returns a stepper at the first row below l, nil if there is none. It
// leaves a row at l itself aside, and the versions of one that was deleted.
func (r Reader) openRows(l layout.Location) (*Stepper, error) {
	rows, err := r.Stepper(l.Key)
	if err != nil {
		return nil, err
	}
	if !rows.SeekGE(append(l.Key, 0)) {
		return nil, damage.Mark(errors.Join(rows.Error(), rows.Close()))
	}
	return rows, nil
}

// chunkAt returns the chunk at the first d keys of l, if there is one.
func (r Reader) chunkAt(l layout.Location, d int) (*Chunk, error) {
	row, closer, err := r.Source.Get(l.At(d))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damage.Mark(err)
	}
	r.Cost.Add(len(row))
	return &Chunk{d, row, closer}, nil
}

// Decode returns the node of a chunk, all of it: a chunk is small.
func (r Reader) Decode(l layout.Location, c *Chunk) (tree.Node, error) {
	n, err := layout.DecodeChunk(c.Row)
	if err != nil {
		return tree.Node{}, damage.AtRow(l.At(c.Depth), err)
	}
	return n, nil
}
