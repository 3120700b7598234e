package engine

import (
	"sync/atomic"
	"time"
)

// The states of an operation.
const (
	opQueued int32 = iota
	opTaken
	opCancelled
)

// An operation is a request on its way through the order. It belongs to the
// goroutine of the client, to the writer, to the syncer, and to the client
// again.
type operation struct {
	database *Database
	request  Request
	state    atomic.Int32
	heavy    bool
	prepared *prepared
	done     chan struct{}
	deadline *time.Timer
	// next is what is published with the commit.
	next     *published
	revision revision
	// effect is what the commit is to watches; nil if there were none.
	effect *effect
	// shared says that others may have the operation: it is queued, or not done.
	// When the client does not wait any longer, it is garbage.
	shared bool

	commit Commit
	err    error
}

// maxKept is how many operations a database keeps for its next requests.
const maxKept = 64

// newOperation returns an operation whose time begins to run.
func (d *Database) newOperation(req Request) *operation {
	op := d.keptOperation()
	if op != nil {
		op.deadline.Reset(d.opts.Deadline)
	} else {
		op = &operation{done: make(chan struct{}, 1), deadline: time.NewTimer(d.opts.Deadline)}
	}
	op.database, op.request = d, req
	return op
}

// keptOperation returns one that was kept, nil if there is none.
func (d *Database) keptOperation() *operation {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := len(d.kept) - 1
	if last < 0 {
		return nil
	}
	op := d.kept[last]
	d.kept = d.kept[:last]
	return op
}

// free keeps the operation for another request, unless it is shared: then the
// garbage collector has it, with what was prepared. When the writer has ended, no
// request is likely to come soon, and nothing is kept.
func (op *operation) free() {
	op.deadline.Stop()
	if op.shared {
		return
	}
	op.prepared.close()
	d := op.database
	*op = operation{done: op.done, deadline: op.deadline}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running && len(d.kept) < maxKept {
		d.kept = append(d.kept, op)
	}
}

// Durable implements store.Ticket.
func (op *operation) Durable(view uint64) {
	if op.next != nil {
		op.next.since = view
		op.database.published.Store(op.next)
		op.database.watches.durable()
	}
}

// Visible implements store.Ticket.
func (op *operation) Visible() {
	if op.next != nil {
		op.database.watches.visible(op)
	}
	op.done <- struct{}{}
}
