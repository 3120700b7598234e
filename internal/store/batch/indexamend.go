package batch

import (
	"bytes"
	"slices"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// Amend brings the rows of a step that was worked out on a view up to what the live
// tree holds. Touched are the paths that writes have touched since the view. It
// reports false if those are too much to look at: then the rows are of no use.
//
// Every write keeps the rows of the children that it touches, if it changes what
// they are ordered by. What the step adds for them from the view may be taken back,
// and what it left out is there.
func (r *IndexRows) Amend(live seek.Reader, touched []tree.Path) (bool, error) {
	looks := 0
	for _, p := range touched {
		l := live.Locate(p)
		x := r.builder.indexes.Below(layout.FirstKeys(p, r.builder.depth))
		switch {
		case x == nil || !r.overlaps(l):
			continue
		case l.Depth() <= r.builder.depth || looks == amendments:
			return false, nil
		case !x.Has(r.builder.index.Number):
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
func (r *IndexRows) overlaps(l layout.Location) bool {
	key := l.At(min(l.Depth(), r.builder.depth+1))
	return bytes.Compare(r.from, layout.SubtreeEnd(nil, key)) < 0 && (r.Cursor == nil || bytes.Compare(key, r.Cursor) < 0)
}

// amendChild replaces the row of the child that a path is in.
func (r *IndexRows) amendChild(live seek.Reader, l layout.Location, p tree.Path) error {
	depth := r.builder.depth
	child := l.At(depth + 1)
	at, found := slices.BinarySearchFunc(r.children, child, func(b builtRow, key []byte) int { return bytes.Compare(b.child, key) })
	if found {
		if err := r.rows.Delete(r.children[at].row, nil); err != nil {
			return err
		}
	}
	// Its parent may be a chunk by now, with no rows of its own.
	exists, err := live.HasRows(child)
	if err != nil || !exists {
		return err
	}
	value, err := live.OrderValue(layout.FirstKeys(p, depth+1), r.builder.index.Order)
	if err != nil {
		return err
	}
	return r.rows.Set(layout.IndexKey(nil, l.At(depth), r.builder.index.Number, value, child[l.Ends[depth]:]), nil, nil)
}
