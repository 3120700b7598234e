package batch

import (
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// This file says of which nodes a write changes the keys of the children. Most writes change those of none: they
// replace something in a chunk that is there before and after.

// A Relisting is a place in the tree where children come or go.
type Relisting struct {
	Path  tree.Path
	Reach Reach
}

// A Reach is how far from its path a Relisting goes.
type Reach uint8

const (
	// Anywhere is at the path, above it and below it.
	Anywhere Reach = iota
	// Subtree is at the path and below it: nodes above keep their children.
	Subtree
	// Children is at the path alone, whose node gets or loses a child.
	Children
	// LastChild is Children where a child comes after all others of the node.
	LastChild
)

// Relistings calls yield with the places where the batch may change the keys of children. A node that is at none of them has the same
// keys before and after. What is known of a batch of another store is only what it assigns.
//
// That a chunk which stays is no such place rests on two things. Nodes above it keep it as their child. And of nodes in it nobody
// remembers keys: those of chunks are not remembered, and what made a split node part of a chunk was a Relisting there.
func (b *Batch) Relistings(yield func(Relisting)) {
	if !b.listed {
		for _, a := range b.assignments {
			yield(Relisting{Path: a.Path})
		}
		return
	}
	for _, r := range b.relisted {
		yield(r)
	}
}

// relistings appends where the write changes the keys of children.
func (pl *plan) relistings(list []Relisting) []Relisting {
	for _, h := range pl.homes.list {
		switch {
		case h.empty:
			list = pl.relistEmptied(list, h)
		case h.split:
			list = append(list, Relisting{h.path, Subtree})
		case h.chunk != nil || h.Depth() == 0: // a database that was empty has no keys to forget
		case h.isLast:
			list = append(list, Relisting{layout.Ancestor(h.path, 1), LastChild})
		default:
			list = append(list, Relisting{layout.Ancestor(h.path, 1), Children})
		}
	}
	return list
}

// relistEmptied appends where a home changes the keys of children at which the write leaves nothing. The lowest node above it that
// stays loses a child, and those further above lose none. Whether a node stays was looked at before, or is not looked at here.
func (pl *plan) relistEmptied(list []Relisting, h *home) []Relisting {
	for d := h.Depth() - 1; d >= 0; d-- {
		stays, known := pl.leaves[string(h.At(d))]
		if !known {
			break
		}
		if stays {
			gone := layout.FirstKeys(h.path, d+1)
			return append(list, Relisting{gone, Subtree}, Relisting{gone.Parent(), Children})
		}
	}
	return append(list, Relisting{h.path, Anywhere})
}
