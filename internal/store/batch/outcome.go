package batch

import (
	"slices"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// workOut works out what the write leaves at a home: its row, or its node.
func (pl *plan) workOut(h *home) error {
	row, spliced := pl.splice(pl.row[:0], h)
	if pl.row = row[:0]; spliced {
		h.spliced = pl.chunks.keep(row)
		return nil
	}
	var err error
	if h.node, err = pl.edited(h); err != nil {
		return err
	}
	h.empty, h.keepsLeaf = h.node.IsNull(), h.leavesLeaf()
	return nil
}

// splice makes the new row of a chunk from the old one, behind what is in a
// buffer, if that can be done without decoding it: every assignment replaces
// what is there. It reports false if it cannot.
func (pl *plan) splice(buf []byte, h *home) ([]byte, bool) {
	if h.chunk == nil || h.chunk[0] != 0 || h.chunk[1] != '{' || len(pl.prepared) > 0 {
		return buf, false
	}
	start := len(buf) + 1 // of the text
	buf = append(buf, h.chunk...)
	for _, a := range h.edits {
		if a.Priority || a.Node.IsNull() || a.Path == h.path {
			return buf, false
		}
		text, traits, fits := tree.AppendWithin(pl.text[:0], a.Node, tree.Plain, pl.chunkBytes)
		pl.text = text[:0]
		if !fits || traits != (tree.Traits{}) {
			return buf, false
		}
		from, to, ok := layout.LocateJSON(buf[start:], h.path.Below(a.Path))
		if !ok || to == 0 {
			return buf, false
		}
		buf = slices.Replace(buf, start+from, start+to, text...)
		if len(buf)-start > pl.chunkBytes {
			return buf, false
		}
	}
	return buf, true
}

// edited returns the new node of a home. Nodes whose rows are prepared are
// represented by a leaf; the writer puts their rows in its place.
func (pl *plan) edited(h *home) (tree.Node, error) {
	if a := h.edits[0]; len(h.edits) == 1 && a.Path == h.path && !a.Priority {
		return a.Node, nil
	}
	old, err := h.old()
	if err != nil {
		return old, err
	}
	e := tree.NewEditor(old)
	e.ApplyEach(h.path, func(yield func(tree.Assignment) bool) {
		for _, a := range h.edits {
			if !a.Priority && pl.prepared.at(a.Path) != nil {
				a.Node = tree.LeafNode(tree.BooleanLeaf(true))
			}
			if !yield(a) {
				return
			}
		}
	}, func(a tree.Assignment) {
		if m := (mark{e.Leaf(), e.Void(), e.Object()}); m != (mark{}) {
			pl.mark(a.Path, m)
		}
	})
	return e.Node(), nil
}

// A mark is what was found out about an assignment: see tree.Assignment.
type mark struct {
	leaf         int
	void, object bool
}

func (pl *plan) mark(p tree.Path, m mark) {
	if pl.marks == nil {
		pl.marks = make(map[tree.Path]mark)
	}
	pl.marks[p] = m
}

// marked returns the assignments with their marks.
func (pl *plan) marked(assignments []tree.Assignment) []tree.Assignment {
	if len(pl.marks) == 0 {
		return assignments
	}
	assignments = slices.Clone(assignments)
	for i := range assignments {
		m := pl.marks[assignments[i].Path] // no other assignment has the same path
		assignments[i].Leaf, assignments[i].Void, assignments[i].Object = m.leaf, m.void, m.object
	}
	return assignments
}
