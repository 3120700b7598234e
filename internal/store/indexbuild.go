package store

import (
	"bytes"
	"runtime"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// Bounds of one step of building or dropping an index.
const (
	// StepChildren is how many children a step takes in that is worked out on a view.
	// Other writes wait while its rows are applied, which takes about as many
	// microseconds.
	StepChildren = 1000
	// StepChildrenLive is how many it takes in at its turn, where others wait for
	// the reading, too.
	StepChildrenLive = 100

	// stepSeeks is how many places a step looks at.
	stepSeeks = 2_000
	// yieldEvery is after how many of them others may go first. The scheduler itself
	// interrupts only after ten milliseconds, which is long for a request.
	yieldEvery = 32
	// amendments is how many children are looked at again at a step's turn.
	amendments = 200
)

// IndexRows are one step of building or dropping an index: rows to be committed,
// and where the next step goes on.
type IndexRows struct {
	rows *pebble.Batch // nil when a batch has taken them
	// Cursor is where the next step begins, nil if this was the last.
	Cursor []byte

	// The rest is what Amend needs.

	builder  *indexBuilder
	from     []byte // where the step began
	children []builtRow
}

// A builtRow is the index row of a child, which is there by its data key.
type builtRow struct{ child, row []byte }

// Close frees the rows.
func (r *IndexRows) Close() {
	if r.rows != nil {
		_ = r.rows.Close()
		r.rows = nil
	}
}

// BuildIndex works out a step of building an index that is in force at
// locations of a depth. From its first step on, every write must keep the index;
// then building is done when a step leaves no cursor.
//
// The tree may be that of a view which shows the commit that the index began with:
// then the rows must be amended before they are committed.
func (t Tree) BuildIndex(x *Indexes, index Index, depth int, cursor []byte, children int) (*IndexRows, error) {
	if cursor == nil {
		cursor = dataPrefix(t.id)
	}
	out := &IndexRows{rows: t.store.db.NewBatch(), from: cursor}
	out.builder = &indexBuilder{Tree: t, indexes: x, index: index, depth: depth, most: children, out: out}
	if err := out.builder.run(cursor); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

type indexBuilder struct {
	Tree
	indexes *Indexes
	index   Index
	depth   int
	most    int // children of the step
	out     *IndexRows

	// parent is the key of the last parent that has the index, path its path.
	parent []byte
	path   tree.Path
	// buffer and cursor are where keys are put together.
	buffer, cursor []byte
}

func (b *indexBuilder) run(cursor []byte) error {
	it, err := b.iterator(dataPrefix(b.id))
	if err != nil {
		return damaged(err)
	}
	rows := &stepper{Iterator: it, store: b.store}
	defer func() { _ = rows.Close() }()
	seeks := 0
	for ok := rows.SeekGE(cursor); ok; {
		if n := len(b.out.children) + seeks; n%yieldEvery == yieldEvery-1 {
			runtime.Gosched()
		}
		if len(b.out.children) == b.most || seeks == stepSeeks {
			b.out.Cursor = bytes.Clone(cursor)
			return nil
		}
		end, found, err := b.child(rows.Key())
		if err == nil && found {
			err = b.add(rows, end)
		}
		if err != nil {
			return err
		}
		whole := end == len(rows.Key())
		if whole && !found {
			cursor = append(append(b.cursor[:0], rows.Key()...), 0)
		} else {
			cursor = subtreeEnd(b.cursor[:0], rows.Key()[:end])
		}
		b.cursor = cursor
		if whole { // nothing is below it, and the next row is as good as any
			ok = rows.step()
		} else {
			ok = rows.SeekGE(cursor)
		}
		if !whole || !found {
			seeks++
		}
	}
	return damaged(rows.Error())
}

// child finds the child of a parent with the index that a data row belongs to, as
// the length of its key. If there is none, what begins with so many bytes of the key
// is of no interest.
func (b *indexBuilder) child(key []byte) (end int, found bool, err error) {
	if b.parent == nil || !belongs(key, b.parent) {
		if end, found, err = b.find(key); !found || err != nil {
			return end, false, err
		}
	}
	n := componentLen(key[len(b.parent):])
	if n < 0 {
		return len(key), false, nil // a chunk, or the priority, of the parent
	}
	return len(b.parent) + n, true, nil
}

// find looks for the parent with the index that a row is below.
func (b *indexBuilder) find(key []byte) (end int, found bool, err error) {
	x, path := b.indexes, tree.Path{}
	end = len(dataPrefix(b.id))
	for range b.depth {
		n := componentLen(key[end:])
		if n < 0 {
			return len(key), false, nil // a chunk, or a priority, above
		}
		name, _, err := cutComponent(key[end : end+n])
		if err != nil {
			return 0, false, damaged(err)
		}
		end += n
		if x = x.Child(name); x == nil {
			return end, false, nil
		}
		path = path.Child(name)
	}
	if !x.has(b.index.Number) {
		return end, false, nil
	}
	b.parent, b.path = bytes.Clone(key[:end]), path
	return end, true, nil
}

// add adds the row of a child, which a data row belongs to.
func (b *indexBuilder) add(rows *stepper, end int) error {
	key := rows.Key()
	var value query.Value
	var err error
	if end == len(key) {
		value, err = b.chunkValue(rows)
	} else {
		var name string
		if name, _, err = cutComponent(key[len(b.parent):end]); err == nil {
			value, err = b.orderValue(b.path.Child(name), b.index.Order)
		}
	}
	if err != nil {
		return damaged(err)
	}
	b.buffer = query.AppendIndexValue(indexPrefix(b.buffer[:0], b.parent, b.index.Number), value)
	b.buffer = append(b.buffer, key[len(b.parent):end]...)
	both := append(bytes.Clone(key[:end]), b.buffer...)
	b.out.children = append(b.out.children, builtRow{both[:end:end], both[end:]})
	return b.out.rows.Set(both[end:], nil, nil)
}

// chunkValue returns what a child is ordered by that is one chunk.
func (b *indexBuilder) chunkValue(rows *stepper) (query.Value, error) {
	row, err := rows.ValueAndErr()
	if err != nil {
		return query.Value{}, err
	}
	if err := checkRow(row); err != nil {
		return query.Value{}, rowError(rows.Key(), err)
	}
	path, _ := b.index.Order.Child()
	if text, ok := findJSON(row[1:], path); ok && row[0] == 0 {
		if text[0] == '{' {
			return query.ObjectValue(), nil
		}
		n, err := tree.DecodeBytes(text, tree.DecodeOptions{})
		if err != nil {
			return query.Value{}, rowError(rows.Key(), err)
		}
		return query.ByValue().Value(n), nil
	}
	n, err := decodeRow(row)
	if err != nil {
		return query.Value{}, rowError(rows.Key(), err)
	}
	return b.index.Order.Value(n), nil
}

func (x *Indexes) has(number uint32) bool {
	for _, index := range x.here() {
		if index.Number == number {
			return true
		}
	}
	return false
}
