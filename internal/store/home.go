package store

import (
	"bytes"
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// A home is the place in the tree that is rewritten for an assignment. That is
// the chunk that holds its path; or, where none does, the path itself when its
// parent is split, or else the highest place above it where nothing is yet.
// Assignments with one home are applied to it together. Homes never overlap, so
// each can be worked out against the tree before the write.
type home struct {
	location
	path  tree.Path
	chunk []byte // the row that is there now, if the home is a chunk
	split bool   // or a split node
	edits []tree.Assignment
	// node is what the write leaves there, unless spliced is: then that is its row.
	node    tree.Node
	spliced []byte
	empty   bool // nothing is left
}

// reset forgets everything but the memory.
func (h *home) reset() {
	clear(h.edits)
	*h = home{location: location{h.key[:0], h.ends[:0]}, edits: h.edits[:0]}
}

// before looks at what is at rel below the home without the write. The home must
// not be split.
func (h *home) before(rel tree.Path) (glimpse, error) {
	if h.chunk == nil {
		return glimpse{}, nil
	}
	g, err := glimpseRow(h.chunk, rel)
	if err != nil {
		return g, rowError(h.key, err)
	}
	return g, nil
}

// old returns what is there without the write. The home must not be split.
func (h *home) old() (tree.Node, error) {
	if h.chunk == nil {
		return tree.Node{}, nil
	}
	n, err := decodeRow(h.chunk)
	if err != nil {
		return n, rowError(h.key, err)
	}
	return n, nil
}

// splice makes the new row of a chunk from the old one, behind what is in a
// buffer, if that can be done without decoding it: every assignment replaces
// what is there. It reports false if it cannot.
func (b *builder) splice(buf []byte, h *home) ([]byte, bool) {
	if h.chunk == nil || h.chunk[0] != 0 || h.chunk[1] != '{' || len(b.prepared) > 0 {
		return buf, false
	}
	start := len(buf) + 1 // of the text
	buf = append(buf, h.chunk...)
	for _, a := range h.edits {
		if a.Priority || a.Node.IsNull() || a.Path == h.path {
			return buf, false
		}
		text, traits, fits := tree.AppendWithin(b.scratch[:0], a.Node, tree.Plain, b.store.opts.ChunkBytes)
		b.scratch = text[:0]
		if !fits || traits != (tree.Traits{}) {
			return buf, false
		}
		from, to, ok := spanJSON(buf[start:], h.path.Below(a.Path))
		if !ok || to == 0 {
			return buf, false
		}
		buf = slices.Replace(buf, start+from, start+to, text...)
		if len(buf)-start > b.store.opts.ChunkBytes {
			return buf, false
		}
	}
	return buf, true
}

// assign finds the home of an assignment.
func (b *builder) assign(a tree.Assignment) error {
	b.place.move(b.id, a.Path)
	l := b.place
	if h := b.homes.above(l); h != nil {
		h.edits = append(h.edits, a)
		return nil
	}
	if b.frontier.isOutside(l) {
		if !a.Priority && !a.Node.IsNull() {
			b.assignNew(l, l.depth(), a)
		}
		return nil
	}
	c, err := b.cover(l)
	if err != nil {
		return err
	}
	if c != nil {
		defer c.release()
		return b.assignChunk(l, c, a)
	}
	exists, outermost, err := b.occupied(l)
	if err != nil {
		return err
	}
	if exists && a.Priority {
		if b.priorities == nil {
			b.priorities = make(map[tree.Path]tree.Leaf)
		}
		b.priorities[a.Path] = a.Node.Leaf()
		return nil
	}
	if a.Priority || (a.Node.IsNull() && !exists) {
		return nil // nothing is there and nothing comes
	}
	if exists {
		b.assignNew(l, l.depth(), a).split = true
		return nil
	}
	depth, err := b.vacancy(l)
	if err != nil {
		return err
	}
	if depth == l.depth() {
		b.frontier.add(l, outermost)
	}
	b.assignNew(l, depth, a)
	return nil
}

// assignNew makes a new home for an assignment, at the first keys of its location.
func (b *builder) assignNew(l location, depth int, a tree.Assignment) *home {
	h := b.homes.add(l, depth, a.Path)
	h.edits = append(h.edits, a)
	return h
}

// assignChunk makes a chunk the home of an assignment.
func (b *builder) assignChunk(l location, c *cover, a tree.Assignment) error {
	if err := checkRow(c.row); err != nil {
		return rowError(l.at(c.depth), err)
	}
	start := len(b.chunks)
	b.chunks = append(b.chunks, c.row...)
	b.assignNew(l, c.depth, a).chunk = b.chunks[start:len(b.chunks):len(b.chunks)]
	return nil
}

// A homeSet holds the homes of a write.
type homeSet struct {
	list  []*home
	byKey map[string]*home // once there are many
}

// fewHomes is how many homes are searched one by one, and kept for the next
// write.
const fewHomes = 8

// at returns the home with a key, if there is one.
func (s *homeSet) at(key []byte) *home {
	if s.byKey != nil {
		return s.byKey[string(key)]
	}
	for _, h := range s.list {
		if bytes.Equal(h.key, key) {
			return h
		}
	}
	return nil
}

// above returns the home at or above a location, if there is one.
func (s *homeSet) above(l location) *home {
	for d := l.depth(); d >= 0 && len(s.list) > 0; d-- {
		if h := s.at(l.at(d)); h != nil {
			return h
		}
	}
	return nil
}

// add adds a home at the first keys of a location, whose path is p.
func (s *homeSet) add(l location, depth int, p tree.Path) *home {
	var h *home
	if n := len(s.list); n < cap(s.list) && s.list[:n+1][n] != nil {
		s.list = s.list[:n+1]
		h = s.list[n]
	} else {
		h = &home{}
		s.list = append(s.list, h)
	}
	h.key = append(h.key, l.at(depth)...)
	h.ends = append(h.ends, l.ends[:depth+1]...)
	h.path = ancestor(p, l.depth()-depth)
	s.remember()
	return h
}

// remember enters the newest home into the map, once there is one.
func (s *homeSet) remember() {
	if s.byKey == nil && len(s.list) > fewHomes {
		s.byKey = make(map[string]*home)
		for _, h := range s.list {
			s.byKey[string(h.key)] = h
		}
	}
	if s.byKey != nil {
		h := s.list[len(s.list)-1]
		s.byKey[string(h.key)] = h
	}
}

// reset empties the set. A few homes are kept to be used again.
func (s *homeSet) reset() {
	list := s.list
	if len(list) > fewHomes {
		list = nil
	}
	for _, h := range list {
		h.reset()
	}
	*s = homeSet{list: list[:0]}
}

// ancestor returns the path that is some levels above p.
func ancestor(p tree.Path, levels int) tree.Path {
	for range levels {
		p = p.Parent()
	}
	return p
}
