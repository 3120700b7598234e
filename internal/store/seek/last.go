package seek

import (
	"bytes"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// A Last remembers the chunk that a reader found last, for those who look at many nodes of a tree
// one after the other, as rules do: most of them are in one chunk. It must be forgotten before the
// tree changes. A nil Last remembers nothing.
//
// A reader with a Last gives out one location and one chunk at a time: each is good until the next one
// is asked for.
type Last struct {
	location layout.Location
	key      []byte // of the chunk's row; empty if none is remembered
	chunk    Chunk
}

// Forget forgets the chunk, and keeps the memory for the next one.
func (s *Last) Forget() { s.key = s.key[:0] }

// locate returns the location of a path, in the memory of the one before.
func (s *Last) locate(id layout.ID, p tree.Path) layout.Location {
	s.location.Move(id, p)
	return s.location
}

// holding returns the chunk that is remembered if it holds l, else nil. There is no other one then: no
// row is above or below a chunk.
func (s *Last) holding(l layout.Location) *Chunk {
	if s == nil || len(s.key) == 0 || s.chunk.Depth > l.Depth() || !bytes.Equal(s.key, l.At(s.chunk.Depth)) {
		return nil
	}
	return &s.chunk
}

// keep remembers a chunk that was found for l, unless it is large.
func (s *Last) keep(l layout.Location, c *Chunk) {
	if s == nil || c == nil || len(c.Row) > maxOwn {
		return
	}
	s.key = append(s.key[:0], l.At(c.Depth)...)
	s.chunk.own = append(s.chunk.own[:0], c.Row...)
	s.chunk.Depth, s.chunk.Row, s.chunk.kept = c.Depth, s.chunk.own, true
}
