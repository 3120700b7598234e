package store

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/tree"
)

// stepChildren is how many children one step of building an index takes in, and
// stepSeeks how many places it looks at for them: a step must not hold up
// other writes.
const (
	stepChildren = 500
	stepSeeks    = 2_000
)

// IndexRows are one step of building or dropping an index: rows to be committed,
// and where the next step goes on.
type IndexRows struct {
	rows *pebble.Batch
	// Cursor is where the next step begins, nil if this was the last.
	Cursor []byte
}

// Close frees the rows.
func (r *IndexRows) Close() { _ = r.rows.Close() }

// BuildIndex works out a step of building an index that is in force at
// locations of a depth. From its first step on, every write must keep the index;
// then building is done when a step leaves no cursor. Like Build it looks at the
// live tree.
func (s *Store) BuildIndex(id ID, x *Indexes, index Index, depth int, cursor []byte) (*IndexRows, error) {
	b := &indexBuilder{
		Tree: s.Live(id), indexes: x, index: index, depth: depth,
		out: &IndexRows{rows: s.db.NewBatch()},
	}
	if err := b.run(cursor); err != nil {
		b.out.Close()
		return nil, err
	}
	return b.out, nil
}

type indexBuilder struct {
	Tree
	indexes *Indexes
	index   Index
	depth   int
	out     *IndexRows
}

func (b *indexBuilder) run(cursor []byte) error {
	root := dataPrefix(b.id)
	it, err := b.iterator(root)
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	if cursor == nil {
		cursor = root
	}
	children := 0
	for range stepSeeks {
		if children == stepChildren {
			break
		}
		if !it.SeekGE(cursor) {
			b.out.Cursor = nil
			return damaged(it.Error())
		}
		next, found, err := b.row(it.Key(), len(root))
		if err != nil {
			return err
		}
		if found {
			children++
		}
		cursor = next
	}
	b.out.Cursor = cursor
	return nil
}

// row takes in the child that a data row belongs to, if its parent has the
// index, and returns where to look next.
func (b *indexBuilder) row(key []byte, end int) (next []byte, found bool, err error) {
	x, parent := b.indexes, tree.Path{}
	for range b.depth {
		n := componentLen(key[end:])
		if n < 0 {
			return append(bytes.Clone(key), 0), false, nil // a chunk, or a priority, above
		}
		name, _, err := cutComponent(key[end : end+n])
		if err != nil {
			return nil, false, damaged(err)
		}
		end += n
		if x = x.Child(name); x == nil {
			return subtreeEnd(nil, key[:end]), false, nil
		}
		parent = parent.Child(name)
	}
	if !x.has(b.index.Number) {
		return subtreeEnd(nil, key[:end]), false, nil
	}
	n := componentLen(key[end:])
	if n < 0 {
		return append(bytes.Clone(key), 0), false, nil
	}
	name, _, err := cutComponent(key[end : end+n])
	if err != nil {
		return nil, false, damaged(err)
	}
	value, err := b.orderValue(parent.Child(name), b.index.Order)
	if err != nil {
		return nil, false, err
	}
	row := indexKey(key[:end], b.index.Number, value, key[end:end+n])
	return subtreeEnd(nil, key[:end+n]), true, b.out.rows.Set(row, nil, nil)
}

func (x *Indexes) has(number uint32) bool {
	for _, index := range x.here() {
		if index.Number == number {
			return true
		}
	}
	return false
}

// DropIndex works out a step of removing the rows of an index that is no longer
// kept.
func (s *Store) DropIndex(id ID, number uint32, cursor []byte) (*IndexRows, error) {
	out := &IndexRows{rows: s.db.NewBatch()}
	if err := s.dropStep(id, number, cursor, out); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

func (s *Store) dropStep(id ID, number uint32, cursor []byte, out *IndexRows) error {
	from, to := appendSpace(nil, spaceIndex, id), appendSpace(nil, spaceIndex, id+1)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	if cursor == nil {
		cursor = from
	}
	for range stepSeeks {
		if !it.SeekGE(cursor) {
			out.Cursor = nil
			return damaged(it.Error())
		}
		// The rows of one parent are together: those of the index are a range.
		parent := parentOf(it.Key(), len(from))
		first := indexPrefix(nil, parent, number)
		if it.SeekGE(first) && bytes.HasPrefix(it.Key(), first) {
			if err := out.rows.DeleteRange(first, append(bytes.Clone(first), 0xFF), nil); err != nil {
				return err
			}
		}
		cursor = append(bytes.Clone(parent), priorityMark+1)
	}
	out.Cursor = cursor
	return nil
}

// parentOf returns the part of an index row's key that names the parent.
func parentOf(key []byte, end int) []byte {
	for {
		n := componentLen(key[end:])
		if n < 0 {
			return bytes.Clone(key[:end])
		}
		end += n
	}
}
