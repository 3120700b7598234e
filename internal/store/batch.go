package store

import (
	"bytes"
	"errors"
	"slices"

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
}

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
// must be resolved; indexes are those that are kept, prepared may be nil.
func (s *Store) Build(id ID, c tree.Change, indexes *Indexes, prepared *Prepared) (*Batch, error) {
	b := s.newBuilder(id, indexes, prepared)
	err := b.change(c.Write)
	if err == nil {
		err = b.log(c)
	}
	if err != nil {
		return nil, errors.Join(err, b.rows.Close())
	}
	return &Batch{id: id, rows: b.rows, millis: c.Millis}, nil
}

// A builder turns one write into rows.
//
// Every assignment has a home: the place in the tree that is rewritten for it.
// That is the chunk that holds its path; or, where none does, the path itself
// when its parent is split, or else the highest place above it where nothing is
// yet. Assignments with one home are applied to it together. Homes never
// overlap, so each can be worked out against the tree before the write.
type builder struct {
	Tree
	rows     *pebble.Batch
	prepared []preparedNode
	homes    map[string]*home // by key
	// survivors remembers answers of survives.
	survivors map[string]bool
	// filled are the keys of the homes that the write leaves data at, and of all
	// nodes above them; nil until somebody asks.
	filled map[string]bool
	// priorities are the new ones of nodes that stay split.
	priorities map[tree.Path]tree.Leaf
	it         *pebble.Iterator // over all data of the database, opened when needed
	scratch    []byte

	indexes        *Indexes
	above          map[string]bool // the keys of places above homes
	emptying       bool            // some home is left empty
	withPriorities map[string]bool // whether parents keep the index by priority
}

func (s *Store) newBuilder(id ID, indexes *Indexes, prepared *Prepared) *builder {
	b := &builder{
		Tree: s.Live(id), rows: s.db.NewBatch(),
		homes: make(map[string]*home), survivors: make(map[string]bool), priorities: make(map[tree.Path]tree.Leaf),
		scratch: make([]byte, 0, 512), // a small chunk
		indexes: indexes, above: make(map[string]bool), withPriorities: make(map[string]bool),
	}
	if prepared != nil {
		b.prepared = prepared.nodes
	}
	return b
}

type home struct {
	location
	path    tree.Path
	chunked bool // the home is a chunk now
	split   bool // or a split node
	old     tree.Node
	edits   []tree.Assignment
	node    tree.Node // what the write leaves there
	empty   bool      // which is nothing
}

// change adds the rows of a write.
func (b *builder) change(w tree.Write) (err error) {
	defer func() {
		if b.it != nil {
			err = errors.Join(err, b.it.Close())
		}
	}()
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
	for _, h := range b.homes {
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
	return b.index()
}

// adopt makes the rows of the one prepared node the batch itself, instead of
// copying them into it. Rows that are deleted must come before them; where a
// split node is cleared there are such.
func (b *builder) adopt() {
	if len(b.prepared) != 1 {
		return
	}
	for _, h := range b.homes {
		if h.split {
			return
		}
	}
	_ = b.rows.Close() // it is empty
	b.rows, b.prepared[0].rows = b.prepared[0].rows, nil
}

// assign finds the home of an assignment.
func (b *builder) assign(a tree.Assignment) error {
	l := b.locate(a.Path)
	if h := b.homeAbove(l); h != nil {
		h.edits = append(h.edits, a)
		return nil
	}
	c, err := b.cover(l)
	if err != nil {
		return err
	}
	if c != nil {
		defer c.release()
		old, err := b.decode(l, c)
		if err != nil {
			return err
		}
		h := b.newHome(l, c.depth, a.Path)
		h.chunked, h.old, h.edits = true, old, []tree.Assignment{a}
		return nil
	}
	exists, err := b.has(l.key)
	if err != nil {
		return err
	}
	if exists && a.Priority {
		b.priorities[a.Path] = a.Node.Leaf()
		return nil
	}
	depth := l.depth()
	if !exists {
		if depth, err = b.vacancy(l); err != nil {
			return err
		}
	}
	if a.Priority || (a.Node.IsNull() && !exists) {
		return nil // nothing is there and nothing comes
	}
	h := b.newHome(l, depth, a.Path)
	h.split, h.edits = exists, []tree.Assignment{a}
	return nil
}

// homeAbove returns the home at or above a location, if it is known.
func (b *builder) homeAbove(l location) *home {
	for d := l.depth(); d >= 0 && len(b.homes) > 0; d-- {
		if h := b.homes[string(l.at(d))]; h != nil {
			return h
		}
	}
	return nil
}

func (b *builder) newHome(l location, depth int, p tree.Path) *home {
	for range l.depth() - depth {
		p = p.Parent()
	}
	h := &home{location: location{key: l.at(depth), ends: l.ends[:depth+1]}, path: p}
	b.homes[string(h.key)] = h
	return h
}

// vacancy returns the depth of the highest place above l, or l itself, where
// nothing is.
func (b *builder) vacancy(l location) (int, error) {
	for d := l.depth() - 1; d >= 0; d-- {
		exists, err := b.has(l.at(d))
		if err != nil {
			return 0, err
		}
		if exists {
			return d + 1, nil
		}
	}
	return 0, nil
}

// has reports whether there are rows in the subtree of a key.
func (b *builder) has(key []byte) (bool, error) {
	row, err := b.seek(key)
	return row != nil && belongs(row, key), err
}

// seek returns the key of the first row at or behind key in the database. It
// never steps: a seek past a row that was rewritten often is quick.
func (b *builder) seek(key []byte) ([]byte, error) {
	if b.it == nil {
		it, err := b.iterator(dataPrefix(b.id))
		if err != nil {
			return nil, damaged(err)
		}
		b.it = it
	}
	if !b.it.SeekGE(key) {
		return nil, damaged(b.it.Error())
	}
	return b.it.Key(), nil
}

// rewrite replaces the rows of a home.
func (b *builder) rewrite(h *home) error {
	h.node = b.edited(h)
	h.empty = h.node.IsNull()
	if h.split {
		if err := b.clear(h.location); err != nil {
			return err
		}
	}
	overwritten := false
	if !h.empty {
		var err error
		if overwritten, err = b.emit(h.key, h.node, b.indexes.below(h.path)); err != nil {
			return err
		}
	}
	if h.chunked && !overwritten {
		return b.rows.Delete(h.key, nil)
	}
	return nil
}

// edited returns the new node of a home. Nodes whose rows are prepared are
// represented by a leaf; emit puts their rows in its place.
func (b *builder) edited(h *home) tree.Node {
	if a := h.edits[0]; len(h.edits) == 1 && a.Path == h.path && !a.Priority {
		return a.Node
	}
	// What comes is there before anything goes: a node that loses all its
	// children and gets others in one write keeps its priority.
	slices.SortStableFunc(h.edits, func(a, b tree.Assignment) int { return editRank(a) - editRank(b) })
	e := tree.NewEditor(h.old)
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
	}
	return e.Node()
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
