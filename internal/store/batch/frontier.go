package batch

import (
	"bytes"

	"github.com/livetree/livetree/internal/store/layout"
)

// A Frontier remembers where a database grows, for the one who writes to it. Most
// children that are added come one after the other: the keys of pushes follow the
// time. So between the last of them and the next child that their parent has, or its
// end, there is nothing, and nothing must be read to know that.
//
// What it remembers is so in the live tree. Every write to the database must be
// built with its frontier, which forgets what the write may end. It is right
// whether or not the batch is committed then. The zero value knows nothing.
type Frontier struct {
	// Most is how many parents are remembered; maxEdges if it is 0.
	Most int

	edges   []edge
	at      map[string]int // where in edges a parent is
	longest int            // no parent has a longer key
	next    int            // the edge that makes way for another, unless it was of use
	deletes int            // of nodes, which sweep counts
}

const (
	// maxEdges is how many parents are remembered: as many chat rooms as one database
	// has messages for at a time.
	maxEdges = 128
	// maxEdgeBytes is the longest key that is remembered, so that all of them take no
	// more than some hundred KiB.
	maxEdgeBytes = 512
)

// An edge is what is known of a parent to which a child was added.
type edge struct {
	parent []byte // its data key; empty if nothing is known
	last   []byte // where the child ends that was added last
	until  []byte // the first row after it; empty if that is not one of the parent
	// open says that the parent is split and that no child of it is between last and
	// until.
	open bool
	// plain says that the parent does not keep the index by priority.
	plain bool
	// used says that the edge spared a read since it was last looked at for another to
	// take its place.
	used bool
}

// find returns what is known of a parent, nil if that is nothing.
func (f *Frontier) find(parent []byte) *edge {
	if f == nil {
		return nil
	}
	if i, ok := f.at[string(parent)]; ok {
		return &f.edges[i]
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

// isOutermost reports whether no child of the parent comes after last.
func (e *edge) isOutermost() bool { return e.open && len(e.until) == 0 }

// lacks reports whether it is known that nothing is at a child or below it.
func (e *edge) lacks(child []byte) bool {
	return e.open && bytes.Compare(child, e.last) > 0 &&
		(len(e.until) == 0 || bytes.Compare(child, e.until) < 0 && !bytes.HasPrefix(e.until, child))
}

// Lacks reports whether it is known that nothing is at l or below it, and that the
// parent of l is split.
func (f *Frontier) Lacks(l layout.Location) bool {
	lacks, _ := f.look(l)
	return lacks
}

// look is Lacks, and reports whether no child of the parent comes after l.
func (f *Frontier) look(l layout.Location) (lacks, outermost bool) {
	e := f.above(l)
	if e == nil || !e.lacks(l.Key) {
		return false, false
	}
	e.used = true
	return true, e.isOutermost()
}

// add notes that a child is added at l to a parent that is split. Until is the first row
// after it, empty if that is not one of the parent.
func (f *Frontier) add(l layout.Location, until []byte) {
	if f == nil || l.Depth() == 0 || len(l.Key) > maxEdgeBytes || len(until) > maxEdgeBytes {
		return
	}
	e := f.above(l)
	if e == nil {
		e = f.newEdge(l.At(l.Depth() - 1))
	}
	e.open = true
	e.last, e.until = layout.SubtreeEnd(e.last[:0], l.Key), append(e.until[:0], until...)
}

// newEdge returns an edge that knows nothing yet of a parent.
func (f *Frontier) newEdge(parent []byte) *edge {
	most := f.Most
	if most == 0 {
		most = maxEdges
	}
	i := len(f.edges)
	if i < most {
		f.edges = append(f.edges, edge{})
	} else {
		i = f.unused()
		f.forget(&f.edges[i])
	}
	e := &f.edges[i]
	e.parent = append(e.parent, parent...)
	if f.at == nil {
		f.at = make(map[string]int)
	}
	f.at[string(parent)], f.longest = i, max(f.longest, len(parent))
	return e
}

// unused returns the place of an edge that was of no use since it was looked at last.
func (f *Frontier) unused() int {
	for {
		f.next = (f.next + 1) % len(f.edges)
		if e := &f.edges[f.next]; !e.used {
			return f.next
		}
		f.edges[f.next].used = false
	}
}

// forget leaves only the memory of an edge. No parent has an empty key.
func (f *Frontier) forget(e *edge) {
	delete(f.at, string(e.parent))
	*e = edge{parent: e.parent[:0], last: e.last[:0], until: e.until[:0]}
}

// forgetBelow forgets the parents at or below a node, which is written anew.
func (f *Frontier) forgetBelow(key []byte) {
	if len(key) > f.longest {
		return
	}
	for i := range f.edges {
		if e := &f.edges[i]; len(e.parent) >= len(key) && layout.Belongs(e.parent, key) {
			f.forget(e)
		}
	}
}

// occupied reports whether there are rows below l, which has none of its own. If the
// frontier could make use of it, it looks for the next row of the parent as well, which is
// in until then. That is the same seek, which ends later.
func (pl *plan) occupied(l layout.Location) (exists, looked bool, err error) {
	if !pl.frontier.wants(l) {
		exists, err = pl.data.has(l.Key)
		return exists, false, err
	}
	row, err := pl.data.seekBelow(l.Key, pl.data.end(l.At(l.Depth()-1)))
	pl.until = append(pl.until[:0], row...)
	return row != nil && layout.Belongs(row, l.Key), true, err
}

// wants reports whether it would help to know what comes after l. What is known of the
// end of the parent is kept, and what was of use is kept for once.
func (f *Frontier) wants(l layout.Location) bool {
	if f == nil || l.Depth() == 0 {
		return false
	}
	e := f.above(l)
	if e == nil || !e.open {
		return true
	}
	used := e.used
	e.used = false
	return !used && !e.isOutermost()
}

// advance brings the frontier up to what the write leaves.
func (pl *plan) advance() error {
	f := pl.frontier
	if f == nil || len(f.edges) == 0 {
		return nil
	}
	for _, h := range pl.homes.list {
		f.forgetBelow(h.Key)
		for d := range h.Depth() {
			if e := f.find(h.At(d)); e != nil {
				if err := pl.advanceEdge(e, h); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// advanceEdge brings the edge of a node up to what the write leaves at a home below it.
// No other child of the node has rows between last and until than the one that last is in.
func (pl *plan) advanceEdge(e *edge, h *home) error {
	switch {
	case !e.open:
	case h.empty: // the node may have lost its last child
		stays, err := pl.leavesData(e.parent)
		if err != nil {
			return err
		}
		e.open = stays
	case bytes.Compare(h.Key, e.last) <= 0 || len(e.until) > 0 && bytes.Compare(h.Key, e.until) >= 0:
	case len(h.Key) > maxEdgeBytes:
		e.open = false
	default:
		e.last = layout.SubtreeEnd(e.last[:0], h.Key)
	}
	return nil
}
