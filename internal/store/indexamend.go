package store

import (
	"bytes"
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// Amend brings the rows of a step that was worked out on a view up to what the live
// tree holds. Touched are the paths that writes have touched since the view. It
// reports false if those are too much to look at: then the rows are of no use.
//
// Every write keeps the rows of the children that it touches, if it changes what
// they are ordered by. What the step adds for them from the view may be taken back,
// and what it left out is there.
func (r *IndexRows) Amend(live Tree, touched []tree.Path) (bool, error) {
	looks := 0
	for _, p := range touched {
		l := live.locate(p)
		x := r.builder.indexes.below(firstKeys(p, r.builder.depth))
		switch {
		case x == nil || !r.overlaps(l):
			continue
		case l.depth() <= r.builder.depth || looks == amendments:
			return false, nil
		case !x.has(r.builder.index.Number):
			continue
		}
		looks++
		if err := r.amendChild(live, l, p); err != nil {
			return false, err
		}
	}
	return true, nil
}

// overlaps reports whether a node at l, or the child that it is in, is among what
// the step looked at.
func (r *IndexRows) overlaps(l location) bool {
	key := l.at(min(l.depth(), r.builder.depth+1))
	return bytes.Compare(r.from, subtreeEnd(nil, key)) < 0 && (r.Cursor == nil || bytes.Compare(key, r.Cursor) < 0)
}

// amendChild replaces the row of the child that a path is in.
func (r *IndexRows) amendChild(live Tree, l location, p tree.Path) error {
	depth := r.builder.depth
	child := l.at(depth + 1)
	at, found := slices.BinarySearchFunc(r.children, child, func(b builtRow, key []byte) int { return bytes.Compare(b.child, key) })
	if found {
		if err := r.rows.Delete(r.children[at].row, nil); err != nil {
			return err
		}
	}
	// Its parent may be a chunk by now, with no rows of its own.
	exists, err := live.hasRows(child)
	if err != nil || !exists {
		return err
	}
	value, err := live.orderValue(firstKeys(p, depth+1), r.builder.index.Order)
	if err != nil {
		return err
	}
	return r.rows.Set(indexKey(nil, l.at(depth), r.builder.index.Number, value, child[l.ends[depth]:]), nil, nil)
}

// hasRows reports whether there are rows in the subtree of a key.
func (t Tree) hasRows(key []byte) (bool, error) {
	it, err := t.iterator(key)
	if err != nil {
		return false, damaged(err)
	}
	found := it.SeekGE(key)
	if err := it.Error(); err != nil {
		_ = it.Close()
		return false, damaged(err)
	}
	return found, damaged(it.Close())
}

// firstKeys returns the path of the first n keys of p, or p if it has fewer.
func firstKeys(p tree.Path, n int) tree.Path {
	for p.Depth() > n {
		p = p.Parent()
	}
	return p
}
