package engine

import (
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/hook"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/watch"
)

// The states of a task.
const (
	taskQueued int32 = iota
	taskTaken
	taskCancelled
)

// A task is a write, or a drop, on its way through the writer. It belongs to the
// goroutine of the client, to the writer, to the syncer, and to the client
// again.
type task struct {
	database *Database
	request  Request
	state    atomic.Int32
	drop     bool // that of the request, which is given up when the task is cancelled
	heavy    bool
	late     bool // it was prepared in vain too often
	prepared *prepared
	// needsRecent is set by needRecent. It belongs to the client's goroutine.
	needsRecent bool
	gone        <-chan struct{} // closed when the client has gone
	done        chan struct{}
	deadline    *time.Timer
	// next is what is published with the commit.
	next     *state.Published
	revision revision
	// departure is what the commit does to what its connection has left; nil for nothing.
	departure *departure
	// effect is what the commit is to watches; nil if there were none.
	effect *watch.Effect
	// due is what the Expiry is to know of the commit.
	due dueNews
	// told are the notices that the commit has for hooks.
	told []hook.Mark
	// shared says that others may have the task: it is queued, or not done.
	// When the client does not wait any longer, it is garbage.
	shared bool
	// submitted, if not nil, has the task answered there instead of by done.
	submitted *Submitted

	commit Commit
	err    error
}

// maxKept is how many tasks a database keeps for its next requests.
const maxKept = 64

// WaitFor is how long a write of some bytes may take where a small one has a deadline: a second more for each 4 MiB.
func WaitFor(deadline time.Duration, bytes int) time.Duration {
	return deadline + time.Duration(bytes>>22)*time.Second
}

// newTask returns a task whose time begins to run.
func (w *writer) newTask(req Request) *task {
	t, wait := w.keptTask(), WaitFor(w.db.deadline, req.Bytes())
	if t != nil {
		t.deadline.Reset(wait)
	} else {
		t = &task{done: make(chan struct{}, 1), deadline: time.NewTimer(wait)}
	}
	t.database, t.request, t.drop = w.db, req, req.drop
	return t
}

// keptTask returns one that was kept, nil if there is none.
func (w *writer) keptTask() *task {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.kept) - 1
	if last < 0 {
		return nil
	}
	t := w.kept[last]
	w.kept = w.kept[:last]
	return t
}

// free keeps the task for another request, unless it is shared: then the
// garbage collector has it, with what was prepared. When the writer has ended, no
// request is likely to come soon, and nothing is kept.
func (t *task) free() {
	t.deadline.Stop()
	d := t.database
	d.writer.forgetRecent(t)
	if t.shared {
		return
	}
	t.prepared.close()
	*t = task{done: t.done, deadline: t.deadline}
	d.writer.mu.Lock()
	defer d.writer.mu.Unlock()
	if d.writer.running && len(d.writer.kept) < maxKept {
		d.writer.kept = append(d.writer.kept, t)
	}
}

// leaves calls leave when the task is not under way any more. Its client may be gone before that, and what it holds
// is in memory until then.
func (t *task) leaves(leave func()) {
	if !t.shared || t.state.Load() == taskCancelled {
		leave()
		return
	}
	go func() {
		select {
		case <-t.done:
		case <-t.database.ended:
		}
		leave()
	}()
}

// Durable implements store.Ticket.
func (t *task) Durable(view uint64) {
	if t.next != nil {
		t.next.Since = view
		t.database.published.Store(t.next)
		t.database.watches.Durable()
	}
}

// Visible implements store.Ticket.
func (t *task) Visible() {
	if t.next != nil && !t.next.Dropped { // a drop ends the watches, when it is known to be made
		t.database.watches.Visible(t.commit.Change, t.effect, t.next)
		if t.next.Begun == t.next.Position {
			t.database.indexer.start()
		}
		tellDue(t.database, t.due)
	} else if t.next != nil {
		tellDue(t.database, dueNews{Never, true}) // a step finds that there is nothing more to do
	}
	if t.revision.rows != nil {
		// This is not left to the client that changed the settings: it may have gone.
		t.database.indexer.start()
	}
	t.tellHooks()
	if t.submitted != nil {
		t.submitted.end()
		return
	}
	t.done <- struct{}{}
}
