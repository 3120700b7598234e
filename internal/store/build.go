package store

import (
	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// Build works out what a change does to a tree: the live one of a database, or that of an
// overlay. The change must be resolved; indexes are those that are kept. Prepared may be nil,
// and so may the frontier of the database, if it always is.
func (s *Store) Build(on Tree, c tree.Change, indexes *layout.Indexes, prepared *batch.Prepared, frontier *batch.Frontier) (*batch.Batch, error) {
	return s.batches.Build(on.reader, c, indexes, prepared, frontier)
}

// Prepare encodes the rows of the nodes in w that are larger than minBytes. The
// write must be resolved, and the indexes the same when it is built. What the tree
// shows now need not be so then. The result must be closed.
func (t Tree) Prepare(w tree.Write, indexes *layout.Indexes, minBytes int) (*batch.Prepared, error) {
	return t.store.batches.Prepare(t.reader, w, indexes, minBytes)
}

// BuildIndex works out a step of building an index that is in force at
// locations of a depth. From its first step on, every write must keep the index;
// then building is done when a step leaves no cursor.
//
// The tree may be that of a view which shows the commit that the index began with:
// then the rows must be amended before they are committed.
func (t Tree) BuildIndex(x *layout.Indexes, index layout.Index, depth int, cursor []byte) (*batch.IndexRows, error) {
	return t.store.batches.BuildIndex(t.reader, x, index, depth, cursor)
}

// BuildDue works out a step of building the rows of an index by which children expire. From
// its first step on, every write must keep the index. The tree may be that of a view: the
// rows need not be amended.
func BuildDue(t Tree, x *layout.Indexes, number uint32, cursor []byte) (*batch.IndexRows, error) {
	return t.store.batches.BuildDue(t.reader, x, number, cursor)
}

// DropIndex works out a step of removing the rows of an index that is no longer
// kept. Nobody writes such rows any more, so what any view shows that has the commit
// that dropped the index is still so at the step's turn.
func (t Tree) DropIndex(number uint32, cursor []byte) (*batch.IndexRows, error) {
	return t.store.batches.DropIndex(t.reader, number, cursor)
}

// BuildPriority works out a step of building the first index by priority that a
// commit at a position, or a later one, has begun; nil if there is none. As for
// BuildIndex, the tree may be that of a view: then Amend must say that the step
// still holds.
func (t Tree) BuildPriority(from uint64) (*batch.PriorityRows, error) {
	return t.store.batches.BuildPriority(t.reader, from)
}

// HasUnbuilt reports whether indexes by priority are to be built.
func (t Tree) HasUnbuilt() (bool, error) { return batch.HasUnbuilt(t.reader) }
