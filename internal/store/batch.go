package store

import (
	"bytes"
	"errors"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/tree"
)

// pointDeletes is how many rows are deleted one by one. A range tombstone for a
// few rows is slow: each new one makes the next read sort all of them again.
const pointDeletes = 256

// A Batch is what one change does to the rows: data and log together.
type Batch struct {
	id     ID
	rows   *pebble.Batch
	millis int64

	assignments []tree.Assignment
}

// Assignments returns those of the change, with what was found out about them.
func (b *Batch) Assignments() []tree.Assignment { return b.assignments }

// Close frees the batch. Commit does it by itself.
func (b *Batch) Close() {
	if b.rows != nil {
		_ = b.rows.Close()
		b.rows = nil
	}
}

// Bytes returns the size of the batch.
func (b *Batch) Bytes() int { return b.rows.Len() }

// Build works out what a change does to the live tree of a database. The change
// must be resolved; indexes are those that are kept. Prepared may be nil, and so
// may the frontier of the database, if it always is.
func (s *Store) Build(id ID, c tree.Change, indexes *Indexes, prepared *Prepared, frontier *Frontier) (*Batch, error) {
	b := s.newBuilder(id, indexes, prepared)
	defer b.free()
	b.frontier = frontier
	err := b.change(c.Write)
	if err == nil {
		c.Assignments = b.marked(c.Assignments)
		err = b.log(c)
	}
	if err != nil {
		return nil, errors.Join(err, b.rows.Close())
	}
	return &Batch{id: id, rows: b.rows, millis: c.Millis, assignments: c.Assignments}, nil
}

// A builder turns one write into rows.
type builder struct {
	Tree
	rows     *pebble.Batch
	prepared []preparedNode
	homes    homeSet
	// survivors remembers answers of survives.
	survivors map[string]bool
	// filledBefore remembers answers of has, of a patch.
	filledBefore map[string]bool
	isPatch      bool
	// filled are the keys of the homes that the write leaves data at, and of all
	// nodes above them; nil until somebody asks.
	filled map[string]bool
	// priorities are the new ones of nodes that stay split.
	priorities map[tree.Path]tree.Leaf
	it         *pebble.Iterator   // over all data of the database, opened when needed
	all        pebble.IterOptions // of it
	limit      []byte             // of a seek
	leaves     map[tree.Path]int  // assignments below leaves that became objects: by how much

	frontier       *Frontier // may be nil
	indexes        *Indexes
	children       childList
	above          map[string]bool // the keys of places above many homes
	emptying       bool            // some home is left empty
	withPriorities map[string]bool // whether parents keep the index by priority

	// The rest is memory that is used again: for a row that is being made, for the
	// chunks of homes and what comes of them, and for the place of an assignment.
	scratch []byte
	chunks  []byte
	place   location
}

// builders are kept for the next write: a small one then takes no memory.
var builders = sync.Pool{New: func() any {
	return &builder{scratch: make([]byte, 0, 512), chunks: make([]byte, 0, 1024)} // small chunks
}}

func (s *Store) newBuilder(id ID, indexes *Indexes, prepared *Prepared) *builder {
	b := builders.Get().(*builder)
	b.Tree, b.rows, b.indexes = s.Live(id), s.db.NewBatch(), indexes
	if prepared != nil {
		b.prepared = prepared.nodes
	}
	return b
}

// maxKeptBytes is the size up to which a buffer is kept.
const maxKeptBytes = 64 << 10

// free gives the builder back. It must not be used afterwards; its rows may be.
func (b *builder) free() {
	b.homes.reset()
	b.children.reset()
	kept := builder{homes: b.homes, children: b.children, place: b.place, limit: b.limit}
	if cap(b.scratch) <= maxKeptBytes && cap(b.chunks) <= maxKeptBytes {
		kept.scratch, kept.chunks = b.scratch[:0], b.chunks[:0]
	}
	*b = kept
	builders.Put(b)
}

// change adds the rows of a write.
func (b *builder) change(w tree.Write) (err error) {
	defer func() {
		if b.it != nil {
			err = errors.Join(err, b.it.Close())
		}
	}()
	b.isPatch = len(w.Assignments) > 1
	for _, priorities := range []bool{false, true} { // what gets a priority must be there first
		for _, a := range w.Assignments {
			if a.Priority != priorities {
				continue
			}
			if err := b.assign(a); err != nil {
				return err
			}
		}
	}
	b.adopt()
	for _, h := range b.homes.list {
		if err := b.rewrite(h); err != nil {
			return err
		}
	}
	for p, priority := range b.priorities {
		if err := b.prioritise(p, priority); err != nil {
			return err
		}
	}
	if err := b.tidy(); err != nil {
		return err
	}
	if err := b.index(); err != nil {
		return err
	}
	return b.advance()
}

// adopt makes the rows of the one prepared node the batch itself, instead of
// copying them into it. Rows that are deleted must come before them; where a
// split node is cleared there are such.
func (b *builder) adopt() {
	if len(b.prepared) != 1 {
		return
	}
	for _, h := range b.homes.list {
		if h.split && !b.isCleared(h) {
			return
		}
	}
	_ = b.rows.Close() // it is empty
	b.rows, b.prepared[0].rows = b.prepared[0].rows, nil
}

// rewrite replaces the rows of a home.
func (b *builder) rewrite(h *home) error {
	start := len(b.chunks)
	row, spliced := b.splice(b.chunks, h)
	if b.chunks = row; spliced {
		h.spliced = row[start:len(row):len(row)]
		return b.rows.Set(h.key, h.spliced, nil)
	}
	b.chunks = b.chunks[:start]
	var err error
	if h.node, err = b.edited(h); err != nil {
		return err
	}
	h.empty = h.node.IsNull()
	if h.split && !b.isCleared(h) {
		if err := b.clear(h.location); err != nil {
			return err
		}
	}
	overwritten := false
	if !h.empty {
		if overwritten, err = b.emit(h.key, h.node, b.indexes.below(h.path)); err != nil {
			return err
		}
	}
	if h.chunk != nil && !overwritten {
		return b.rows.Delete(h.key, nil)
	}
	return nil
}

// isCleared reports whether the rows that are prepared for a home begin with
// deleting what is there.
func (b *builder) isCleared(h *home) bool {
	return slices.ContainsFunc(b.prepared, func(p preparedNode) bool { return p.cleared && bytes.Equal(p.key, h.key) })
}

// edited returns the new node of a home. Nodes whose rows are prepared are
// represented by a leaf; emit puts their rows in its place.
func (b *builder) edited(h *home) (tree.Node, error) {
	if a := h.edits[0]; len(h.edits) == 1 && a.Path == h.path && !a.Priority {
		return a.Node, nil
	}
	old, err := h.old()
	if err != nil {
		return old, err
	}
	// What comes is there before anything goes: a node that loses all its
	// children and gets others in one write keeps its priority.
	slices.SortStableFunc(h.edits, func(a, b tree.Assignment) int { return editRank(a) - editRank(b) })
	e := tree.NewEditor(old)
	for _, a := range h.edits {
		rel := h.path.Below(a.Path)
		switch {
		case a.Priority:
			e.SetPriority(rel, a.Node.Leaf())
		case b.preparedAt(a.Path):
			e.Set(rel, tree.LeafNode(tree.BooleanLeaf(true)))
		default:
			e.Set(rel, a.Node)
		}
		if leaf := e.Leaf(); leaf > 0 && !a.Priority {
			if b.leaves == nil {
				b.leaves = make(map[tree.Path]int)
			}
			b.leaves[a.Path] = leaf
		}
	}
	return e.Node(), nil
}

// marked returns the assignments, with those marked that are below leaves.
func (b *builder) marked(assignments []tree.Assignment) []tree.Assignment {
	if len(b.leaves) == 0 {
		return assignments
	}
	assignments = slices.Clone(assignments)
	for i := range assignments {
		if a := &assignments[i]; !a.Priority {
			a.Leaf = b.leaves[a.Path]
		}
	}
	return assignments
}

func editRank(a tree.Assignment) int {
	switch {
	case a.Priority:
		return 2
	case a.Node.IsNull():
		return 1
	}
	return 0
}

func (b *builder) preparedAt(p tree.Path) bool {
	for _, n := range b.prepared {
		if n.path == p {
			return true
		}
	}
	return false
}

// clear deletes the rows of a split node, and their index rows.
func (b *builder) clear(l location) error {
	if err := b.clearRange(l.key, l.end()); err != nil {
		return err
	}
	return b.clearIndexes(l.key)
}

// clearRange deletes rows: one by one if they are few, else as a range.
func (b *builder) clearRange(from, to []byte) error {
	it, err := b.reader.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damaged(err)
	}
	rows := &stepper{Iterator: it, store: b.store}
	defer func() { _ = rows.Close() }()
	keys := make([][]byte, 0, 16)
	for ok := rows.First(); ok; ok = rows.step() {
		if len(keys) == pointDeletes {
			return b.rows.DeleteRange(from, to, nil)
		}
		keys = append(keys, bytes.Clone(rows.Key()))
	}
	if err := rows.Error(); err != nil {
		return damaged(err)
	}
	for _, key := range keys {
		if err := b.rows.Delete(key, nil); err != nil {
			return err
		}
	}
	return nil
}

// emit adds the rows of a node: one chunk if it fits the limit, which it
// reports, else its priority and its children.
func (b *builder) emit(key []byte, n tree.Node, x *Indexes) (chunked bool, err error) {
	above := false // a prepared node is below: this one cannot be a chunk
	for _, p := range b.prepared {
		if bytes.Equal(p.key, key) {
			if p.rows == nil { // adopted
				return false, nil
			}
			return false, b.rows.Apply(p.rows, nil)
		}
		above = above || belongs(p.key, key)
	}
	if !above {
		row, fits := appendRow(b.scratch[:0], n, b.store.opts.ChunkBytes)
		b.scratch = row[:0]
		if fits {
			return true, b.rows.Set(key, row, nil)
		}
	}
	if priority := n.Priority(); !priority.IsNull() {
		if err := b.setPriority(key, priority); err != nil {
			return false, err
		}
	}
	key = slices.Grow(key[:len(key):len(key)], 32) // where the keys of all children find room
	for name, child := range n.Children() {
		if _, err := b.emit(appendComponent(key, name), child, x.Child(name)); err != nil {
			return false, err
		}
	}
	return false, b.emitIndexes(key, n, x.here())
}

// setPriority writes or deletes the priority row of the split node with a key.
func (b *builder) setPriority(key []byte, priority tree.Leaf) error {
	key = append(key[:len(key):len(key)], priorityMark)
	if priority.IsNull() {
		return b.rows.Delete(key, nil)
	}
	row, _ := appendRow(b.scratch[:0], tree.LeafNode(priority), 0)
	b.scratch = row[:0]
	return b.rows.Set(key, row, nil)
}

// prioritise changes the priority of a split node, if the write leaves it there.
func (b *builder) prioritise(p tree.Path, priority tree.Leaf) error {
	l := b.locate(p)
	survives, err := b.survives(l.key)
	if err != nil || !survives {
		return err
	}
	return b.setPriority(l.key, priority)
}
