package seek

import (
	"errors"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/rowcache"
	"github.com/livetree/livetree/internal/tree"
)

// A Chunk is the chunk that holds a location: the location's own, or that of an
// ancestor.
type Chunk struct {
	Depth int    // of the chunk's node
	Row   []byte // valid until Release

	closer io.Closer // nil if the row is in own
	own    []byte    // memory for a row that was remembered
	kept   bool      // by a Last: it is not given back
}

// chunks are used again: most rows are small.
var chunks = sync.Pool{New: func() any { return &Chunk{own: make([]byte, 0, usualRow)} }}

const (
	released = -1 // the depth of a chunk that was given back: nobody can use it
	usualRow = 512
	maxOwn   = 8 << 10 // no row that is remembered is longer
)

// Release gives the chunk back, once: another reader has it then. A nil chunk is none.
func (c *Chunk) Release() {
	if c == nil || c.kept {
		return
	}
	if c.closer != nil {
		_ = c.closer.Close()
	}
	c.Row, c.closer, c.Depth = nil, nil, released
	if cap(c.own) <= maxOwn {
		chunks.Put(c)
	}
}

// Chunk finds the chunk that holds l; nil if there is none, because the node is
// split or absent. Looking for each possible row is cheap: a row that is not
// there is ruled out by the bloom filters, and unlike an iterator's step a Get
// does not slow down when a row was rewritten many times. There is one at most,
// so the order of looking is free: the depth that was right for a similar
// location comes first.
func (r Reader) Chunk(l layout.Location) (*Chunk, error) {
	if c := r.Last.holding(l); c != nil {
		r.Cost.Add(len(c.Row))
		return c, nil
	}
	c, err := r.findChunk(l)
	r.Last.keep(l, c)
	return c, err
}

// findChunk is Chunk among the rows.
func (r Reader) findChunk(l layout.Location) (*Chunk, error) {
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
	if hint.Load() == splitHint && r.Last.holding(l) == nil {
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
	c, err := r.row(l.At(d), d)
	if c != nil {
		r.Cost.Add(len(c.Row))
	}
	return c, err
}

// row returns the row at a data key, nil if there is none, as the chunk of a node of a depth.
func (r Reader) row(key []byte, depth int) (*Chunk, error) {
	c := chunks.Get().(*Chunk)
	c.Depth = depth
	var found rowcache.Found
	if c.own, found = r.Rows.Row(c.own[:0], key, r.View); found != rowcache.Unknown {
		if found == rowcache.Absent {
			c.Release()
			return nil, nil
		}
		c.Row = c.own
		return c, nil
	}
	view := r.keepView()
	row, closer, err := r.Source.Get(key)
	switch {
	case err == nil:
		r.Rows.Keep(key, row, view)
		c.Row, c.closer = row, closer
		return c, nil
	case errors.Is(err, pebble.ErrNotFound):
		r.Rows.KeepAbsent(key, view)
		err = nil
	}
	c.Release()
	return nil, damage.Mark(err)
}

// keepView returns the view in which a row that is read next may be remembered. What is live may not be in any view yet;
// if no commit has touched the row since the newest view, it is what that shows.
func (r Reader) keepView() uint64 {
	if r.View == Live && r.Rows != nil {
		return r.Shared.Newest()
	}
	return r.View
}

// RowBy returns the row at a data key, nil if there is none. It is found by a stepper over the rows of a node, unless it is
// remembered: then it is put into own. The reader must be that of a view. The row is good until the stepper moves, or own is used again.
func (r Reader) RowBy(rows *Stepper, key []byte, own *[]byte) (row []byte, err error) {
	row, found := r.Rows.Row((*own)[:0], key, r.View)
	switch found {
	case rowcache.Absent:
		return nil, nil
	case rowcache.Present:
		*own = row
		return row, nil
	}
	if !rows.SeekPrefixGE(key) {
		return nil, damage.Mark(rows.Error())
	}
	if row, err = rows.ValueAndErr(); err != nil {
		return nil, damage.Mark(err)
	}
	r.Rows.KeepAgain(key, row, r.View)
	return row, nil
}

// Exists reports whether there is data at l, the location of p.
func (r Reader) Exists(l layout.Location, p tree.Path) (bool, error) {
	c, rows, err := r.Open(l)
	switch {
	case err != nil || c == nil && rows == nil:
		return false, err
	case rows != nil:
		return true, damage.Mark(rows.Close())
	}
	defer c.Release()
	exists, err := layout.ExistsIn(c.Row, layout.Below(p, c.Depth))
	if err != nil {
		return false, damage.AtRow(l.At(c.Depth), err)
	}
	return exists, nil
}

// Decode returns the node of a chunk, all of it: a chunk is small.
func (r Reader) Decode(l layout.Location, c *Chunk) (tree.Node, error) {
	n, err := layout.DecodeChunk(c.Row)
	if err != nil {
		return tree.Node{}, damage.AtRow(l.At(c.Depth), err)
	}
	return n, nil
}
