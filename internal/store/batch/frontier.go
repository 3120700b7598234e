package batch

import (
	"bytes"

	"github.com/livetree/livetree/internal/store/layout"
)

// A Frontier remembers where a database grows, for the one who writes to it. Most
// children that are added come behind all others of their parent: the keys of
// pushes follow the time. Where that is so, nothing must be read to know that
// nothing is there.
//
// What it remembers is so in the live tree. Every write to the database must be
// built with its frontier, which forgets what the write may end. It is right
// whether or not the batch is committed then. The zero value knows nothing.
type Frontier struct {
	edges   []edge
	next    int // the edge that makes way for another
	deletes int // of nodes, which sweep counts
}

// maxEdges is how many parents are remembered.
const maxEdges = 8

// An edge is what is known of a parent to which a child was added.
type edge struct {
	parent []byte // its data key
	last   []byte // where the child ends that was added last
	// outermost says that the parent is split and that no row of it is behind last.
	outermost bool
	// plain says that the parent does not keep the index by priority.
	plain bool
}

// find returns what is known of a parent, nil if that is nothing.
func (f *Frontier) find(parent []byte) *edge {
	if f == nil {
		return nil
	}
	for i := range f.edges {
		if bytes.Equal(f.edges[i].parent, parent) {
			return &f.edges[i]
		}
	}
	return nil
}

// above returns what is known of the parent of a location.
func (f *Frontier) above(l layout.Location) *edge {
	if l.Depth() == 0 {
		return nil
	}
	return f.find(l.At(l.Depth() - 1))
}

// isOutside reports whether it is known that nothing is at l, and that the parent
// of l is split.
func (f *Frontier) isOutside(l layout.Location) bool {
	e := f.above(l)
	return e != nil && e.outermost && bytes.Compare(l.Key, e.last) > 0
}

// add notes that a child is added at l to a parent that is split. Outermost says
// that nothing of the parent is behind it.
func (f *Frontier) add(l layout.Location, outermost bool) {
	if f == nil || l.Depth() == 0 {
		return
	}
	e := f.above(l)
	if e == nil {
		e = f.newEdge()
		e.parent = append(e.parent[:0], l.At(l.Depth()-1)...)
	}
	if !e.outermost {
		e.outermost, e.last = outermost, layout.SubtreeEnd(e.last[:0], l.Key)
	}
}

// newEdge returns an edge that knows nothing.
func (f *Frontier) newEdge() *edge {
	if len(f.edges) < maxEdges {
		f.edges = append(f.edges, edge{})
		return &f.edges[len(f.edges)-1]
	}
	f.next = (f.next + 1) % maxEdges
	e := &f.edges[f.next]
	e.forget()
	return e
}

// forget leaves only the memory. No parent has an empty key.
func (e *edge) forget() { *e = edge{parent: e.parent[:0], last: e.last[:0]} }

// occupied reports whether there are rows below l, which has none of its own; and,
// if there are none, whether there are none in the rest of its parent either, as far
// as that is worth a look: the child that was added there before is in front of l.
func (pl *plan) occupied(l layout.Location) (exists, outermost bool, err error) {
	e := pl.frontier.above(l)
	if e == nil || e.outermost || bytes.Compare(l.Key, e.last) < 0 {
		exists, err = pl.data.has(l.Key)
		return exists, false, err
	}
	row, err := pl.data.seekBelow(l.Key, pl.data.end(e.parent))
	return row != nil && layout.Belongs(row, l.Key), row == nil, err
}

// advance brings the frontier up to what the write leaves.
func (pl *plan) advance() error {
	if pl.frontier == nil {
		return nil
	}
	for i := range pl.frontier.edges {
		e := &pl.frontier.edges[i]
		for _, h := range pl.homes.list {
			if err := pl.advanceEdge(e, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// advanceEdge brings an edge up to what the write leaves at a home.
func (pl *plan) advanceEdge(e *edge, h *home) error {
	switch {
	case len(e.parent) == 0:
	case layout.Belongs(e.parent, h.Key): // it is written anew
		e.forget()
	case !layout.Belongs(h.Key, e.parent):
	case !h.empty:
		if bytes.Compare(h.Key, e.last) > 0 {
			e.last = layout.SubtreeEnd(e.last[:0], h.Key)
		}
	case e.outermost: // it may have lost its last child
		stays, err := pl.leavesData(e.parent)
		if err != nil {
			return err
		}
		e.outermost = stays
	}
	return nil
}
