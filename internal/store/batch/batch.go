package batch

import (
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// PointDeletes is how many rows are deleted one by one. A range tombstone for a
// few rows is slow: each new one makes the next read sort all of them again.
const PointDeletes = 256

// A Batch is what one change does to the rows: data and log together.
type Batch struct {
	ID     layout.ID
	Rows   *pebble.Batch
	Logged LogRow

	// Dropped is the name of the database, if the batch removes it and somebody still has to
	// read its log.
	Dropped string

	assignments []tree.Assignment
	vague       bool // the assignments are not what has changed, but where it has
	begins      bool
	due         due

	// relisted are the places where children come or go, if listed. Most batches have one at most.
	relisted []Relisting
	listed   bool
	relist   [1]Relisting
}

// Begins reports whether the change leaves an index by priority to be built.
func (b *Batch) Begins() bool { return b.begins }

// Assignments returns those of the change, with what was found out about them.
func (b *Batch) Assignments() []tree.Assignment { return b.assignments }

// Replaces returns the data keys of the nodes that the change replaces, if it is a large one of few nodes: then they tell more shortly
// than its rows what it changes.
func (b *Batch) Replaces() (keys [][]byte) {
	if b.Rows.Count() <= PointDeletes || len(b.assignments) > maxReplaces || b.vague {
		return nil
	}
	for _, a := range b.assignments {
		keys = append(keys, layout.DataKey(nil, b.ID, a.Path))
	}
	return keys
}

// maxReplaces is how many nodes a large change may replace to be told by them.
const maxReplaces = 4

// Format returns the format version that a store must have which holds the rows, 0 for any.
func (b *Batch) Format() uint32 {
	switch {
	case b.due.added || b.due.sweeps:
		return layout.FormatDue
	case b.Logged.Position > 0:
		return layout.FormatAuthors
	}
	return 0
}

// Close frees the batch. Commit does it by itself.
func (b *Batch) Close() {
	if b.Rows != nil {
		_ = b.Rows.Close()
		b.Rows = nil
	}
}

// A Maker makes the batches of a store.
type Maker struct {
	DB *pebble.DB
	// IsHeld reports whether somebody needs whole records of commits; nil if nobody ever
	// does.
	IsHeld func() bool
	// ChunkBytes is the largest subtree that is kept in one row.
	ChunkBytes int
	// PriorityRows is how many rows a write adds itself where it brings the first
	// priorities among children; the rest is built in the background.
	PriorityRows int
	// StepChildren is how many children a step of building an index takes in. One that
	// is worked out at its turn takes in a tenth of them, one at least.
	StepChildren int
	// Spread is how many times the bytes of a write its rows may take, where they are many; 0 for any number. What was accepted
	// once, and is applied again, must not be held to it.
	Spread int
	// ManyRows is what they may take however few bytes the write has; 64 MiB if it is 0.
	ManyRows int64
}

// Build works out what a change does to the live tree of a database. The change
// must be resolved; indexes are those that are kept. Prepared may be nil, and so
// may the frontier of the database, if it always is.
func (m Maker) Build(live seek.Reader, c tree.Change, indexes *layout.Indexes, prepared *Prepared, frontier *Frontier) (*Batch, error) {
	b := m.newBuilder(live, indexes)
	defer b.free()
	if prepared != nil {
		b.plan.prepared, b.writer.prepared, b.writer.texts = prepared.nodes, prepared.nodes, prepared.texts
	}
	b.writer.isHeld, b.writer.most = m.isHeld(), m.mostRows(c.Write)
	b.plan.most = b.writer.most
	b.plan.frontier, b.indexer.position = frontier, c.Position
	err := b.change(c.Write)
	var logged LogRow
	if err == nil {
		c.Assignments = b.plan.marked(c.Assignments)
		logged, err = b.writer.log(layout.Record{Change: c})
	}
	if err != nil {
		return nil, errors.Join(err, b.writer.rows.Close())
	}
	made := &Batch{ID: live.ID, Rows: b.writer.rows, Logged: logged, assignments: c.Assignments, begins: b.indexer.begins, due: b.due}
	made.relisted, made.listed = b.plan.relistings(made.relist[:0]), true
	return made, nil
}

// A builder turns one write into rows: it plans, writes the data rows and writes the
// index rows.
type builder struct {
	plan    plan
	writer  writer
	indexer indexer
	due     due
	dueKey  []byte // memory that is used again
	// dueRemoved is how many rows are read to find what no longer expires.
	dueRemoved int
}

// builders are kept for the next write: a small one then takes no memory.
var builders = sync.Pool{New: func() any {
	b := &builder{}
	b.writer.scratch, b.plan.row, b.plan.chunks = make([]byte, 0, 512), make([]byte, 0, 512), make([]byte, 0, 1024) // small chunks
	return b
}}

func (m Maker) newBuilder(live seek.Reader, indexes *layout.Indexes) *builder {
	b := builders.Get().(*builder)
	b.dueRemoved = min(dueRemoved, m.StepChildren)
	b.plan.reader, b.plan.chunkBytes, b.plan.data.reader = live, m.ChunkBytes, live
	b.plan.most = mostRows
	b.writer.reader, b.writer.chunkBytes, b.writer.most = live, m.ChunkBytes, mostRows
	b.writer.rows, b.writer.indexes = m.DB.NewBatch(), indexes
	b.indexer.reader, b.indexer.priorityRows = live, m.PriorityRows
	b.indexer.plan, b.indexer.writer = &b.plan, &b.writer
	return b
}

// maxKeptBytes is the size up to which a buffer is kept.
const maxKeptBytes = 64 << 10

// kept returns a buffer for the next write, none if it has grown large.
func kept(buffer []byte) []byte {
	if cap(buffer) > maxKeptBytes {
		return nil
	}
	return buffer[:0]
}

// free gives the builder back. It must not be used afterwards; its rows may be.
func (b *builder) free() {
	*b = builder{plan: b.plan.emptied(), writer: b.writer.emptied(), indexer: b.indexer.emptied(), dueKey: kept(b.dueKey)}
	builders.Put(b)
}

// change adds the rows of a write.
func (b *builder) change(w tree.Write) (err error) {
	defer func() { err = errors.Join(err, b.plan.data.close()) }()
	if err := b.plan.make(w); err != nil {
		return err
	}
	if err := b.writer.write(&b.plan); err != nil {
		return err
	}
	if err := b.indexer.index(); err != nil {
		return err
	}
	if b.writer.indexes.Expires() {
		if err := b.writeDue(w); err != nil {
			return err
		}
	}
	if err := b.plan.sweep(b.writer.indexes); err != nil {
		return err
	}
	return b.plan.advance()
}

// Settings works out a batch that changes settings of a database, of which a nil
// value deletes one, together with the rows of a step, which may be nil and are taken
// over. Of the change only the position and the time count.
func (m Maker) Settings(live seek.Reader, c tree.Change, changed layout.Settings, step *IndexRows) (*Batch, error) {
	b := m.newBuilder(live, nil)
	defer b.free()
	w := &b.writer
	if step != nil {
		_ = w.rows.Close() // it is empty
		w.rows, step.rows, b.due = step.rows, nil, step.due
	}
	var err error
	for name, value := range changed {
		if value == nil {
			err = errors.Join(err, w.rows.Delete(layout.SettingKey(live.ID, name), nil))
		} else {
			err = errors.Join(err, w.rows.Set(layout.SettingKey(live.ID, name), value, nil))
		}
	}
	c.Write, c.Settings = tree.Write{}, true
	w.isHeld = m.isHeld()
	if changed == nil {
		changed = layout.Settings{} // the record is whole without any
	}
	logged, logErr := w.log(layout.Record{Change: c, Values: changed})
	if err = errors.Join(err, logErr); err != nil {
		return nil, errors.Join(err, w.rows.Close())
	}
	return &Batch{ID: live.ID, Rows: w.rows, Logged: logged, due: b.due}, nil
}

func (m Maker) isHeld() bool { return m.IsHeld != nil && m.IsHeld() }
