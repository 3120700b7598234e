package watch

import (
	"sync"
	"sync/atomic"

	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A delivery is what is handed on at a time: changes of a database in order, all of
// them from one view to another.
type delivery struct {
	effects   []*Effect
	turns     int // how often the settings changed so that others may read, or something else
	bytes     int
	lost      bool             // there were too many to keep
	before    *store.View      // nil if it is not known
	shown     *state.Published // that belongs to before
	after     *store.View
	published *state.Published // that belongs to after
}

// from returns the position that the delivery starts behind.
func (del *delivery) from() uint64 { return del.effects[0].Position - 1 }

func (del *delivery) release() {
	if del.before != nil {
		del.before.Release()
	}
	if del.after != nil {
		del.after.Release()
	}
}

// A queue holds what is visible and was not handed on.
type queue struct {
	set     *Set
	waiting atomic.Int64 // the bytes of effects that were not handed on, see MaxPendingBytes

	mu      sync.Mutex
	running bool             // the dispatcher will look again
	closed  bool             // nothing is handed on any more
	newest  *state.Published // of the newest commit that is visible
	// open is what is visible of a group that will be whole soon, ready what is. Either
	// is nil if there is nothing: of most databases nobody watches anything.
	open, ready *delivery
}

// durable keeps the view before the commits of a group, of which the one that shows
// them is not there yet.
func (q *queue) durable() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if del := q.opened(); del.before == nil {
		del.before, del.shown = q.set.source.Store.View(), q.newest
	}
}

// opened returns the open delivery, which it begins if there is none.
func (q *queue) opened() *delivery {
	if q.open == nil {
		q.open = &delivery{}
	}
	return q.open
}

// visible adds a commit. When the newest of its group was added, the dispatcher has
// something to do.
func (q *queue) visible(c tree.Change, e *Effect, next *state.Published) {
	published := q.set.database.Published()
	whole, watched := next == published, q.set.Any()
	if !watched && whole {
		defer q.set.order.Load().reach(published.Position) // nobody is to be told
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.forget(e)
		return
	}
	turned := q.turned(next)
	if watched {
		q.add(c, e)
	} else {
		q.forget(e)
		if whole {
			q.drop(q.open)
			q.open = nil
		}
	}
	if turned && q.open != nil {
		q.open.turns++
	}
	if !whole || q.open == nil || len(q.open.effects) == 0 && !q.open.lost {
		return
	}
	q.open.after, q.open.published = q.set.source.Store.View(), published
	q.ready = q.merge(q.ready, q.open)
	q.open = nil
	if !q.running {
		q.running = true
		q.set.done.Go(q.set.dispatcher.run)
	}
}

// turned reports whether a commit that becomes visible changed the settings so that others may read, or something else. It must be
// asked of every commit: settings that are changed and changed back within a delivery look as if nothing had happened. The
// lock is held.
func (q *queue) turned(next *state.Published) bool {
	before := q.newest
	q.newest = next
	return before.Settings != next.Settings && !before.Settings.JudgesLike(next.Settings)
}

// add adds the effect of a commit to the open delivery. The lock is held.
func (q *queue) add(c tree.Change, e *Effect) {
	if e == nil {
		e = unobserved(c)
		q.count(e)
	}
	open := q.opened()
	if e == tooMuch || open.lost {
		q.forget(e)
		q.lose(open)
		return
	}
	open.effects = append(open.effects, e)
	open.bytes += e.counted
	if q.isFull() {
		q.lose(open)
		if q.ready != nil {
			q.lose(q.ready)
		}
	}
	q.bound(open)
}

// isFull reports whether more waits than may.
func (q *queue) isFull() bool { return q.waiting.Load() > int64(q.set.limits.MaxPendingBytes) }

// Lost stands for the effect of a change of which nobody here knows all: those who watch read
// again.
var Lost = tooMuch

// tooMuch stands for an effect that was not worked out because too much waits.
var tooMuch = &Effect{}

// count counts an effect. From then on it keeps nothing alive that is not counted.
func (q *queue) count(e *Effect) {
	e.detach()
	e.counted = e.bytes()
	q.waiting.Add(int64(e.counted))
}

// forget undoes count; nil is allowed.
func (q *queue) forget(e *Effect) {
	if e != nil {
		q.waiting.Add(-int64(e.counted))
	}
}

// lose forgets the effects of a delivery. All watches will read the tree again. The
// lock of the queue is held.
func (q *queue) lose(del *delivery) {
	q.waiting.Add(-int64(del.bytes))
	del.effects, del.bytes, del.lost = nil, 0, true
}

// drop lets go of a delivery that was handed on, or never will be; nil is allowed.
func (q *queue) drop(del *delivery) {
	if del == nil {
		return
	}
	q.waiting.Add(-int64(del.bytes))
	del.release()
}

// bound forgets the effects if they are too many.
func (q *queue) bound(del *delivery) {
	if len(del.effects) > q.set.limits.MaxPending {
		q.lose(del)
	}
}

// merge appends a delivery to one that was not taken yet.
func (q *queue) merge(ready, next *delivery) *delivery {
	if ready == nil {
		return next
	}
	ready.effects = append(ready.effects, next.effects...)
	ready.bytes += next.bytes
	ready.turns += next.turns
	if ready.lost || next.lost {
		q.lose(ready)
	}
	q.bound(ready)
	ready.after.Release()
	ready.after, ready.published = next.after, next.published
	if next.before != nil {
		next.before.Release()
	}
	return ready
}

// next returns what is to be handed on next; nil if there is nothing, and then the
// dispatcher must end.
func (q *queue) next() *delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	del := q.ready
	q.ready = nil
	q.running = del != nil
	return del
}

// close drops what is queued, and all that would be.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.drop(q.open)
	q.drop(q.ready)
	q.open, q.ready = nil, nil
}

// HandedOn reports whether all that is visible was handed on to the watches.
func (w *Set) HandedOn() bool {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	return !w.queue.running
}

// isBusy reports whether changes are queued, are being handed on, or are about to be
// queued.
func (q *queue) isBusy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running || q.ready != nil || q.open != nil
}
