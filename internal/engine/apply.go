package engine

import (
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// apply commits what was decided.
func (w *writer) apply(task *task) error {
	switch {
	case task.request.drop:
		return w.remove(task)
	case task.commit.Position == 0 && task.request.expiring != nil:
		return w.applyDue(task)
	case task.request.save != nil:
		return w.applyHooks(task)
	case task.commit.Position == 0:
		return w.applyLeft(task)
	}
	batch, err := w.build(task)
	if err != nil {
		return err
	}
	settings, err := w.settings.With(task.revision.rows)
	if err != nil {
		batch.Close()
		return err
	}
	begun := w.begun
	if batch.Begins() {
		begun = task.commit.Position
	}
	if task.revision.rows == nil {
		task.commit.Assignments = batch.Assignments()
		if err := w.notice(batch, task); err != nil {
			batch.Close()
			return err
		}
	}
	task.next = &state.Published{Position: task.commit.Position, Begun: begun, Settings: settings}
	task.due = dueOf(batch)
	task.effect = w.db.watches.Observe(w.live(), task.commit.Change)
	// Once the store has the ticket, the task is no longer ours.
	change, departure := task.commit.Change, task.departure
	if err := w.commit(batch, task); err != nil {
		w.db.watches.Abandon(task.effect)
		task.next, task.effect = nil, nil
		return err
	}
	departure.done()
	w.position, w.begun, w.settings = change.Position, begun, settings
	w.memory.recent.add(change, w.limits)
	return nil
}

func (w *writer) build(task *task) (*store.Batch, error) {
	if task.revision.rows != nil {
		if step := task.revision.step; step != nil {
			defer step.Close()
		}
		batch, err := w.db.source.Store.BuildSettings(w.live(), task.commit.Change, task.revision.rows, task.revision.step)
		if err == nil {
			if err = batch.Hooks(task.revision.hooks); err != nil {
				batch.Close()
			}
		}
		return batch, err
	}
	var rows *store.Prepared
	if task.prepared != nil {
		rows = task.prepared.rows
	}
	batch, err := w.db.source.Store.Build(w.live(), task.commit.Change, w.settings.Indexes, rows, &w.memory.frontier)
	if err == nil && task.departure.changes() {
		if err = batch.Left(task.departure.rows); err != nil {
			batch.Close()
		}
	}
	if err == nil && task.request.expiring != nil {
		if err = task.request.expiring.addTo(batch, w.live(), w.db.source.Clock.Now()); err != nil {
			batch.Close()
		}
	}
	return batch, err
}

// A judgement is what was decided about a request, and what that rests on.
type judgement struct {
	Commit
	reads   []tree.Path
	usedKey bool // some rule looked at the key that was drawn
	steps   int  // that the rules took
	by      rules.DecidingRule
}
