package engine

import (
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file drops a database. That is the last of its commits. Writes that were queued
// before it are made first, those that come after it are refused. Like every other answer,
// that there is no database is told only when a crash cannot take it back, and a view that
// lacks the data is not read: the syncer publishes that the database was dropped before
// that view.

// Drop removes the database from the store, with all it holds, and closes it. When it
// returns nil, that is durable.
func (d *Database) Drop() error {
	task := d.writer.newTask(Request{drop: true})
	task.deadline.Stop() // its outcome must be known
	defer task.free()
	if err := d.writer.enqueue(task); err != nil {
		return err
	}
	<-task.done
	if task.err != nil {
		return state.Classify(task.err)
	}
	d.Close()
	d.source.Store.Forget(d.source.ID)
	return nil
}

// remove commits the drop. No write is made after it.
func (w *writer) remove(task *task) error {
	batch, err := w.db.source.Store.BuildDrop(w.db.source.Name, w.db.source.ID, tree.Change{
		Position: w.position + 1, Millis: w.db.source.Clock.Millis(), Author: operator.Author(),
	})
	if err != nil {
		return err
	}
	task.next = &state.Published{Position: w.position, Settings: w.settings, Dropped: true}
	if err := w.commit(batch, task); err != nil {
		task.next = nil
		return err
	}
	w.dropped = true
	return nil
}

// Standing returns nil while the database is open. After it was dropped the error is a
// fault.NotFound, after it was closed a fault.Unavailable one.
func (d *Database) Standing() error {
	if d.published.Load().Dropped {
		return state.NoDatabase(d.source.Name)
	}
	select {
	case <-d.ended:
		return state.Classify(store.ErrClosed)
	default:
		return nil
	}
}
