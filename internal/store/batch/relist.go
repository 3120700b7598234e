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
	// Came is at the parent of the path alone, which gets this child.
	Came
	// CameLast is Came where the child comes after all others.
	CameLast
	// Gone is at the parent of the path alone, which loses this child, if it had it.
	Gone
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
			list = append(list, Relisting{h.path, CameLast})
		default:
			list = append(list, Relisting{h.path, Came})
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
			return append(list, Relisting{gone, Subtree}, Relisting{gone, Gone})
		}
	}
	return append(list, Relisting{h.path, Anywhere})
}
