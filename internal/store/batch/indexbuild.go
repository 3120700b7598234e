package batch

import (
	"bytes"
	"runtime"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// Bounds of one step of building or dropping an index.
const (
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

	due due // what the step adds to the rows of what expires

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

// Take makes the rows of a step those of an empty batch, which is no change in the log.
func (b *Batch) Take(r *IndexRows) {
	b.Close()
	b.Rows, r.rows, b.due = r.rows, nil, r.due
}

// BuildIndex works out a step of building an index that is in force at
// locations of a depth. From its first step on, every write must keep the index;
// then building is done when a step leaves no cursor.
//
// The reader may be that of a view which shows the commit that the index began with:
// then the rows must be amended before they are committed.
func (m Maker) BuildIndex(r seek.Reader, x *layout.Indexes, index layout.Index, depth int, cursor []byte) (*IndexRows, error) {
	if cursor == nil {
		cursor = layout.DataPrefix(r.ID)
	}
	out := &IndexRows{rows: m.DB.NewBatch(), from: cursor}
	out.builder = &indexBuilder{reader: r, most: m.stepChildren(r), indexes: x, index: index, depth: depth, out: out, within: layout.DataPrefix(r.ID)}
	if err := out.builder.run(cursor); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

type indexBuilder struct {
	reader  seek.Reader
	most    int // how many children the step takes in
	indexes *layout.Indexes
	index   layout.Index
	depth   int
	out     *IndexRows
	within  []byte // the key of the node that is looked at with all below it

	// parent is the key of the last parent that has the index, path its path.
	parent []byte
	path   tree.Path
	// buffer and cursor are where keys are put together.
	buffer, cursor []byte
}

// stepChildren is how many children a step takes in. Other writes wait while its
// rows are applied, which takes about as many microseconds. On the live tree they
// also wait for the reading.
func (m Maker) stepChildren(r seek.Reader) int {
	if r.View == seek.Live {
		return max(1, m.StepChildren/10)
	}
	return m.StepChildren
}

func (b *indexBuilder) run(cursor []byte) error {
	rows, err := b.reader.Stepper(b.within)
	if err != nil {
		return err
	}
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
			cursor = layout.SubtreeEnd(b.cursor[:0], rows.Key()[:end])
		}
		b.cursor = cursor
		if whole { // nothing is below it, and the next row is as good as any
			ok = rows.Step()
		} else {
			ok = rows.SeekGE(cursor)
		}
		if !whole || !found {
			seeks++
		}
	}
	return damage.Mark(rows.Error())
}

// child finds the child of a parent with the index that a data row belongs to, as
// the length of its key. If there is none, what begins with so many bytes of the key
// is of no interest.
func (b *indexBuilder) child(key []byte) (end int, found bool, err error) {
	if b.parent == nil || !layout.Belongs(key, b.parent) {
		if end, found, err = b.find(key); !found || err != nil {
			return end, false, err
		}
	}
	n := layout.ComponentLen(key[len(b.parent):])
	if n < 0 {
		return len(key), false, nil // a chunk, or the priority, of the parent
	}
	return len(b.parent) + n, true, nil
}

// find looks for the parent with the index that a row is below.
func (b *indexBuilder) find(key []byte) (end int, found bool, err error) {
	x, path := b.indexes, tree.Path{}
	end = len(layout.DataPrefix(b.reader.ID))
	for range b.depth {
		n := layout.ComponentLen(key[end:])
		if n < 0 {
			return len(key), false, nil // a chunk, or a priority, above
		}
		name, _, err := layout.CutComponent(key[end : end+n])
		if err != nil {
			return 0, false, damage.Mark(err)
		}
		end += n
		if x = x.Child(name); x == nil {
			return end, false, nil
		}
		path = path.Child(name)
	}
	if !x.Has(b.index.Number) {
		return end, false, nil
	}
	b.parent, b.path = bytes.Clone(key[:end]), path
	return end, true, nil
}

// add adds the row of a child, which a data row belongs to.
func (b *indexBuilder) add(rows *seek.Stepper, end int) error {
	key := rows.Key()
	var value query.Value
	var err error
	if end == len(key) {
		value, err = b.chunkValue(rows)
	} else {
		var name string
		if name, _, err = layout.CutComponent(key[len(b.parent):end]); err == nil {
			value, err = b.reader.OrderValue(b.path.Child(name), b.index.Order)
		}
	}
	if err != nil {
		return damage.Mark(err)
	}
	b.buffer = query.AppendIndexValue(layout.IndexPrefix(b.buffer[:0], b.parent, b.index.Number), value)
	b.buffer = append(b.buffer, key[len(b.parent):end]...)
	both := append(bytes.Clone(key[:end]), b.buffer...)
	b.out.children = append(b.out.children, builtRow{both[:end:end], both[end:]})
	return b.out.rows.Set(both[end:], nil, nil)
}

// chunkValue returns what a child is ordered by that is one chunk.
func (b *indexBuilder) chunkValue(rows *seek.Stepper) (query.Value, error) {
	row, err := rows.ValueAndErr()
	if err != nil {
		return query.Value{}, err
	}
	if err := layout.CheckChunk(row); err != nil {
		return query.Value{}, damage.AtRow(rows.Key(), err)
	}
	path, _ := b.index.Order.Child()
	if row[0] == 0 && b.index.Order == query.ByPriority() {
		return query.Value{}, nil // nothing in the chunk has one
	}
	if text, ok := layout.FindJSON(row[1:], path); ok && row[0] == 0 {
		if text[0] == '{' {
			return query.ObjectValue(), nil
		}
		n, err := tree.DecodeBytes(text, tree.DecodeOptions{})
		if err != nil {
			return query.Value{}, damage.AtRow(rows.Key(), err)
		}
		return query.ByValue().Value(n), nil
	}
	n, err := layout.DecodeChunk(row)
	if err != nil {
		return query.Value{}, damage.AtRow(rows.Key(), err)
	}
	return b.index.Order.Value(n), nil
}
