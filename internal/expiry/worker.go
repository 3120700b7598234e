// Package expiry deletes data when its time is over, in all databases of a store.
//
// A Worker knows, for each database in which something expires, when the next child comes
// due. It learns that from the store when it starts, from commits that give times to children
// (Note), and from each step that it makes. A database that nobody uses is opened when
// something in it comes due, not before.
//
// A step deletes a bounded number of children of one database, by ordinary commits
// (engine.Expiry). Then the database goes to the end of the queue: one with a million children
// that are due keeps none of the others waiting for longer than a step, which is short while any
// waits. A step that fails, for lack of space for example, is tried again after a wait that grows,
// and is logged once.
//
// In a cluster the home of a database deletes what expires there. At other nodes a step does nothing, and the worker
// forgets the database until a commit gives a time to a child, or the node becomes its home.
//
// The clock is that by which rules see now. It never goes back. Where the machine's clock is
// set forward, what has come due by that goes within half a second.
//
// What it holds in memory grows with the databases in which something will expire, not with
// how much does: a step holds some MiB at most, and few are made at a time.
package expiry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
)

const (
	// lookEvery is how often the clock is looked at while something will expire: it may be
	// set forward.
	lookEvery = 500 * time.Millisecond
	// atOnce is in how many databases things are deleted at a time.
	atOnce = 8
	// The wait after a step that failed is twice as long each time, from firstWait to lastWait.
	firstWait = 250 * time.Millisecond
	lastWait  = 30 * time.Second
)

// Databases finds databases by name.
type Databases interface {
	Database(name string) (*engine.Database, error)
}

// A Worker deletes what expires in the databases of a store. Note may be called before Start.
type Worker struct {
	clock  *state.Clock
	logger *slog.Logger
	fails  func() // called for each step that fails

	wake   chan struct{}
	cancel context.CancelFunc
	done   sync.WaitGroup
	// crowded says that a database waits for a step of another to end.
	crowded atomic.Bool

	mu      sync.Mutex
	entries map[string]*entry
	queue   queue
}

// An entry is a database in which something will expire.
type entry struct {
	name string
	// due is when the next child is due, but not before it was known here: engine.Never if none is known.
	due int64
	at  int64 // when the next step is to be made
	// noted is the earliest time of a child that was noted since the last step began, and sweeps says
	// that a sweep was.
	noted    int64
	sweeps   bool
	away     bool // it is not in the queue: a step is made, or has failed a moment ago
	place    int  // in the queue
	failures int  // in a row

	// The rest belongs to the step.

	database *engine.Database
	expiry   *engine.Expiry
}

// New returns a Worker that does nothing until it is started. Of each step that fails, fails
// is told.
func New(clock *state.Clock, logger *slog.Logger, fails func()) *Worker {
	return &Worker{clock: clock, logger: logger, fails: fails, wake: make(chan struct{}, 1), entries: make(map[string]*entry), cancel: func() {}}
}

// Note says that something in a database comes due then, or is to be swept. It does not block.
func (w *Worker) Note(database string, millis int64) {
	w.mu.Lock()
	at := max(millis, w.clock.Millis()) // what is due already waits behind what was before
	e := w.entries[database]
	if e == nil {
		e = &entry{name: database, due: engine.Never, at: at, noted: engine.Never}
		w.entries[database] = e
		w.queue.push(e)
	}
	if millis == engine.Sweep {
		e.sweeps = true
	} else {
		e.noted = min(e.noted, millis)
		e.due = min(e.due, at)
	}
	if !e.away && at < e.at {
		w.queue.move(e, at)
	}
	first := w.queue.first() == e
	w.mu.Unlock()
	if first {
		w.rouse()
	}
}

// rouse has the queue looked at again.
func (w *Worker) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Start begins to delete what expires. Of what came due before, in databases that list names
// with, it learns in the background.
func (w *Worker) Start(databases Databases, list func(ctx context.Context, found func(name string, millis int64)) error) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.done.Go(func() {
		if err := list(ctx, w.Note); err != nil && ctx.Err() == nil {
			w.logger.Error("not all databases can be looked at for what has expired: it is deleted when something is written there, or after the next start", "error", err)
		}
	})
	w.done.Go(func() { w.run(ctx, databases) })
}

// Close ends the work and returns when no step is being made. It may be called twice.
func (w *Worker) Close() {
	w.cancel()
	w.done.Wait()
}

// run makes steps as they come due.
func (w *Worker) run(ctx context.Context, databases Databases) {
	slots := make(chan struct{}, atOnce)
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for ctx.Err() == nil {
		e, wait := w.take()
		if e != nil {
			w.crowded.Store(len(slots) == atOnce)
			slots <- struct{}{} // a step ends, at the latest by its deadline
			w.crowded.Store(false)
			w.done.Go(func() {
				defer func() { <-slots }()
				w.step(ctx, e, databases)
			})
			continue
		}
		timer.Reset(wait)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// take returns the entry whose step is to be made, or how long to wait for the next.
func (w *Worker) take() (*entry, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.queue.first()
	if e == nil {
		return nil, time.Hour // a Note wakes it
	}
	if wait := e.at - w.clock.Millis(); wait > 0 {
		return nil, min(time.Duration(min(wait, time.Hour.Milliseconds()))*time.Millisecond, lookEvery)
	}
	w.queue.remove(e)
	e.away = true
	return e, 0
}

// step makes one step in a database, and puts it into the queue again.
func (w *Worker) step(ctx context.Context, e *entry, databases Databases) {
	w.mu.Lock()
	noted, sweeps := e.noted, e.sweeps
	e.noted, e.sweeps = engine.Never, false
	w.mu.Unlock()
	var result engine.Expired
	d, err := databases.Database(e.name)
	if err == nil {
		if d != e.database { // the first step, or another database of the name
			e.database, e.expiry = d, engine.NewExpiry(d)
		}
		e.expiry.Note(noted)
		result, err = e.expiry.Step(ctx, w.crowded.Load)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.recover(e)
		e.sweeps = e.sweeps || sweeps && result.Oldest != engine.Never // what is due goes first
		w.goOn(e, result)
	case fault.KindOf(err) == fault.NotFound: // it was dropped; another may have been made since
		w.goOn(e, engine.Expired{Next: engine.Never, Again: engine.Never})
	case ctx.Err() != nil:
	default:
		e.noted, e.sweeps = min(e.noted, noted), e.sweeps || sweeps
		// Not by the clock that rules see: it stands while the machine's is behind.
		time.AfterFunc(w.fail(e, err), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.enter(e, w.clock.Millis())
		})
	}
}

// goOn puts an entry into the queue again after a step, if there is more to do.
func (w *Worker) goOn(e *entry, result engine.Expired) {
	now := w.clock.Millis()
	if e.due = max(result.Next, min(e.due, now)); e.noted != engine.Never {
		e.due = min(e.due, max(e.noted, now))
	}
	at := min(e.due, result.Again)
	if e.sweeps {
		at = now
	}
	if at == engine.Never {
		delete(w.entries, e.name)
		return
	}
	w.enter(e, max(at, now)) // after those that wait
}

// enter puts an entry into the queue.
func (w *Worker) enter(e *entry, at int64) {
	e.away, e.at = false, at
	w.queue.push(e)
	w.rouse()
}

// fail notes a step that failed and returns how long to wait.
func (w *Worker) fail(e *entry, err error) time.Duration {
	w.fails()
	e.failures++
	if e.failures == 1 {
		w.logger.Error("what has expired could not be deleted: it is tried again", "database", e.name, "error", err)
	}
	return min(firstWait<<min(e.failures-1, 10), lastWait)
}

// recover notes a step that went well.
func (w *Worker) recover(e *entry) {
	if e.failures > 0 {
		e.failures = 0
		w.logger.Info("what has expired is deleted again", "database", e.name)
	}
}

// Late returns in how many databases something is due that is not deleted yet, and for how
// long the oldest of it could have been: since it was due, or since the start or the write that told of it.
func (w *Worker) Late() (databases int, by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Millis()
	for _, e := range w.entries {
		if e.due > now {
			continue
		}
		databases++
		by = max(by, time.Duration(now-e.due)*time.Millisecond)
	}
	return databases, by
}
