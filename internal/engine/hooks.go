package engine

import (
	"context"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// This file keeps the webhooks of a database, and what is to be delivered by them. A commit
// that changes what a hook is for writes a notice for it, in its own batch. Package deliver reads
// the notices, and has saved how far it is.

// notice adds the notices of a commit to its batch. Without hooks that is one look.
func (w *writer) notice(batch *store.Batch, task *task) error {
	if w.settings.Hooks.IsEmpty() {
		return nil
	}
	live := w.live()
	told, err := w.settings.Hooks.Gather(live, task.commit.Change, w.limits.Hooks)
	if err != nil || len(told) == 0 {
		return err
	}
	rows := make([]store.HookRow, 0, len(told))
	task.told = make([]hook.Mark, 0, len(told))
	for _, t := range told {
		row := t.Notice.AppendTo(nil)
		rows = append(rows, store.HookRow{Hook: t.Hook.Number, Position: t.Notice.Position, Notice: row})
		task.told = append(task.told, hook.Mark{Hook: t.Hook.Number, Position: t.Notice.Position, Bytes: len(row)})
	}
	return batch.Hooks(rows)
}

// tellHooks tells the observer that there is something to be delivered, or that the hooks are others.
func (t *task) tellHooks() {
	source := &t.database.source
	if t.next == nil || source.Observers == nil || source.Observers.Hooked == nil {
		return
	}
	_, revised := t.revision.rows[state.SettingHooks]
	if len(t.told) > 0 || revised || t.next.Dropped {
		source.Observers.Hooked(source.Name, source.Epoch(), t.told)
	}
}

// A hookSave is what becomes of rows of hooks.
type hookSave struct{ rows []store.HookRow }

// applyHooks commits what becomes of rows of hooks, of those that there still are.
func (w *writer) applyHooks(task *task) error {
	var rows []store.HookRow
	for _, r := range task.request.save.rows {
		if w.settings.Hooks.Has(r.Hook) {
			rows = append(rows, r)
		}
	}
	batch := w.live().NewBatch()
	if err := batch.Hooks(rows); err != nil {
		batch.Close()
		return err
	}
	return w.commit(batch, task)
}

// SaveHooks changes rows of hooks, at its turn in the order of commits but without a position. When it returns nil
// the rows are durable.
func SaveHooks(ctx context.Context, d *Database, rows []store.HookRow) error {
	w := &d.writer
	if err := d.source.Store.AdmitSettings(); err != nil {
		return state.Classify(err)
	}
	task := w.newTask(Request{save: &hookSave{rows}})
	defer task.free()
	task.gone = ctx.Done()
	if err := w.perform(ctx, task); err != nil {
		return err
	}
	return state.Classify(task.err)
}

// HookProgress returns the row that says how far a hook is, nil if there is none.
func HookProgress(d *Database, number uint32) ([]byte, error) {
	view, published := d.view()
	defer view.Release()
	if published.Dropped {
		return nil, state.NoDatabase(d.source.Name)
	}
	row, err := view.Tree(d.source.ID).Reader().HookProgress(number)
	return row, state.Classify(err)
}

// Notices calls yield with the notices of a hook whose positions are from first to last, in order, until it
// returns false. A row is good until yield returns.
func Notices(d *Database, number uint32, first, last uint64, yield func(position uint64, row []byte) bool) error {
	view, published := d.view()
	defer view.Release()
	if published.Dropped {
		return state.NoDatabase(d.source.Name)
	}
	return state.Classify(view.Tree(d.source.ID).Reader().Notices(number, first, last, yield))
}

// Hooks returns the webhooks of a database.
func Hooks(d *Database) *hook.Set { return d.published.Load().Settings.Hooks }

// AddHook adds a webhook, and returns it with its number. A fault.Conflict error says that its name is taken.
func AddHook(ctx context.Context, d *Database, h hook.Hook) (*hook.Hook, error) {
	h.Created = d.source.Clock.Millis()
	return changeHook(ctx, d, (*addHook)(&h))
}

// ReviseHook changes the webhook with a name at its turn in the order of commits. Its name, pattern and events stay.
func ReviseHook(ctx context.Context, d *Database, name string, change func(*hook.Hook) error) (*hook.Hook, error) {
	for tries := 1; ; tries++ {
		was, err := Hooks(d).Named(name)
		if err != nil {
			return nil, err
		}
		is := *was
		if err := change(&is); err != nil {
			return nil, err
		}
		is.Number, is.Name, is.Pattern, is.Events = was.Number, was.Name, was.Pattern, was.Events
		revised, err := changeHook(ctx, d, replaceHook{was, &is})
		if fault.KindOf(err) != fault.Precondition || tries == hookTries {
			return revised, err
		}
	}
}

// hookTries is how often a change of a hook is worked out which others change, too.
const hookTries = 8

// RemoveHook removes the webhook with a name, with all that it has not delivered.
func RemoveHook(ctx context.Context, d *Database, name string) (*hook.Hook, error) {
	return changeHook(ctx, d, removeHook(name))
}

func changeHook(ctx context.Context, d *Database, change reviser) (*hook.Hook, error) {
	revised, err := d.revise(ctx, change)
	return revised.Hook, err
}
