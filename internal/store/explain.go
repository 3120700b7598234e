package store

import (
	"errors"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// How a read finds what it shows.
const (
	ByTree  = "tree"  // the node as it is, row by row
	ByChunk = "chunk" // from one row, which holds the whole collection
	ByKeys  = "keys"  // along the keys, from one bound to the other
	ByIndex = "index" // by the rows of an index
	ByScan  = "scan"  // through the whole collection, which is small
)

// An Explanation is how a read ran, and what it took.
type Explanation struct {
	How string
	seek.Cost
	// Result is the length of the text.
	Result int
}

// Explain runs a read of the node at p, of the children that q selects if it is
// not nil, and tells what it took. The index is as for Select.
func (t Tree) Explain(p tree.Path, q *query.Query, index *layout.Index) (Explanation, error) {
	e := Explanation{How: ByTree}
	t.reader.Cost = &e.Cost
	out := &lengthWriter{}
	if q == nil {
		err := t.Print(out, p, tree.Plain)
		e.Result = out.length
		return e, err
	}
	s, err := t.Select(p, *q, index, tree.Plain)
	if err != nil {
		return e, err
	}
	err = errors.Join(s.PrintTo(out), s.Close())
	e.How, e.Result = s.how, out.length
	return e, err
}

// A lengthWriter counts what is written to it.
type lengthWriter struct{ length int }

func (w *lengthWriter) Write(p []byte) (int, error) {
	w.length += len(p)
	return len(p), nil
}
