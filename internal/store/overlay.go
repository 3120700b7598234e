package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// An Overlay holds batches of one database that are not committed: they wait for others to
// agree. What is built next is built on its tree, which shows the live rows with those
// batches over them. As Live it belongs to the goroutine that orders the writes of the
// database, and nothing may be committed to that between the first Add and Reset.
type Overlay struct {
	store *Store
	id    layout.ID
	rows  *pebble.Batch // with an index; nil while nothing was copied
	// last was added and not copied: most groups have one batch, and nobody looks at what is there with it. A large one would be in memory twice.
	last *batch.Batch
	// shared is what readers of the overlay share. The gaps of the store hold without the
	// batches alone.
	shared *seek.Shared
}

// NewOverlay returns one that holds nothing, and takes nothing either.
func NewOverlay(s *Store, id layout.ID) *Overlay { return &Overlay{store: s, id: id} }

// Tree returns what is there with all that was added: the live tree if nothing was.
func (o *Overlay) Tree() Tree {
	o.copyLast()
	if o.rows == nil {
		return o.store.Live(o.id)
	}
	return Tree{store: o.store, reader: seek.Reader{Shared: o.shared, Source: o.rows, ID: o.id, View: seek.Live}}
}

// Add has the tree show a batch, which must stay as it is until Reset.
func (o *Overlay) Add(b *batch.Batch) {
	o.copyLast()
	o.last = b
}

// copyLast copies the batch that was added last. It cannot fail, but for a batch that is not one.
func (o *Overlay) copyLast() {
	b := o.last
	if b == nil {
		return
	}
	o.last = nil
	if o.rows == nil {
		o.rows = o.store.db.NewIndexedBatch()
		if o.shared == nil {
			o.shared = &seek.Shared{GapSteps: o.store.opts.GapSteps}
		}
		o.shared.BorrowGaps(&o.store.shared, o.id)
	}
	o.shared.CutGaps(o.id, b.Rows)
	if err := o.rows.Apply(b.Rows, nil); err != nil {
		panic(fmt.Sprintf("store: a batch of database %d cannot be read: %v", o.id, err)) // judging without it would be wrong
	}
}

// Rest gives up what an overlay that holds nothing keeps for what is added next: 2 KiB and more.
func (o *Overlay) Rest() {
	if o.rows == nil && o.last == nil {
		o.shared = nil
	}
}

// Reset forgets all that was added.
func (o *Overlay) Reset() {
	o.last = nil
	if o.rows != nil {
		_ = o.rows.Close()
		o.rows = nil
	}
}
