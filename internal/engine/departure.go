package engine

import (
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
)

// A departure is what a request does to what its connection has left.
type departure struct {
	of   *Leaving
	rows []store.LeftRow // that change with it, in one batch with the write if there is one
	was  *left
	next *left
}

// done is called when the rows are committed. It may be nil.
func (d *departure) done() {
	if d != nil {
		d.of.left.Store(d.next)
	}
}

// undo is called when the rows are not committed after all, for the newest first. It may be nil.
func (d *departure) undo() {
	if d != nil {
		d.of.left.Store(d.was)
	}
}

// changes reports whether there are rows to be committed.
func (d *departure) changes() bool { return d != nil && len(d.rows) > 0 }

var (
	errGone = fault.New(fault.Unavailable, "the connection has gone")
	// errMade says that a write that was left is not there any more: it was made.
	errMade = fault.New(fault.Conflict, "the write was made already")
)

// depart works out at the turn of a request what it does to what its connection has left.
// It returns nil if the request is not about that.
func (w *writer) depart(task *task) (*departure, error) {
	p := task.request.parting
	if p == nil || p.later && task.request.Who.Simulate {
		return nil, nil
	}
	was := p.of.left.Load()
	switch {
	case was.ended && p.identifies:
		return nil, errGone
	case p.makes > 0 && !was.list.Has(p.makes):
		return nil, errMade
	}
	next := *was
	next.ended = was.ended || p.ends
	if p.identifies {
		who := task.request.Who
		next.who = auth.Identity{Admin: who.Admin, Auth: who.Auth, Basis: who.Basis}
		next.identity = leave.EncodeIdentity(next.who)
	}
	var err error
	if next.list, err = w.changeList(task, was.list); err != nil {
		return nil, err
	}
	if next.name == "" && !next.list.IsEmpty() {
		if next.name, err = w.db.source.Clock.PushKey(); err != nil {
			return nil, err
		}
	}
	return &departure{of: p.of, rows: leftRows(was, &next), was: was, next: &next}, nil
}

// changeList returns the list after a request. What takes long is done before its turn.
func (w *writer) changeList(task *task, list *leave.List) (*leave.List, error) {
	p := task.request.parting
	switch {
	case p.change == nil:
		return list, nil
	case p.from == list:
		return p.to, nil
	case p.isHeavy(list, w.limits) && !task.late:
		return nil, state.ErrHeavy
	}
	return p.change(list)
}

// leftRows returns which rows change from one state to the next.
func leftRows(was, next *left) (rows []store.LeftRow) {
	stored, deleted := leave.Changes(was.list, next.list)
	row := func(number uint64, value []byte) {
		rows = append(rows, store.LeftRow{Connection: next.name, Number: number, Value: value})
	}
	switch {
	case next.list.IsEmpty():
		if !was.list.IsEmpty() && !next.spoilt {
			row(layout.LeftIdentity, nil)
		}
	case was.list.IsEmpty() || was.identity != next.identity:
		row(layout.LeftIdentity, []byte(next.identity))
	}
	for _, r := range stored {
		row(r.Number, []byte(r.Encoded))
	}
	for _, number := range deleted {
		row(number, nil)
	}
	return rows
}

// applyLeft commits what a request does to what its connection has left, and no data.
func (w *writer) applyLeft(task *task) error {
	departure := task.departure // once the store has the ticket, the task is no longer ours
	batch := w.live().NewBatch()
	if err := batch.Left(departure.rows); err != nil {
		batch.Close()
		return err
	}
	if err := w.commit(batch, task); err != nil {
		return err
	}
	departure.done()
	return nil
}
