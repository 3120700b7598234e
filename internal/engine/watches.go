package engine

import (
	"sync"
	"sync/atomic"

	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// Limits of what waits to be told to watches.
const (
	// maxPending bounds the changes that are visible and not yet handed on, and
	// maxPendingBytes their nodes. With more, all watches read the tree again.
	maxPending      = 4096
	maxPendingBytes = 64 << 20
	// streamBytes and topicBytes are what all watches of all databases, and those of
	// one location, may keep that is not taken, by default.
	streamBytes = 256 << 20
	topicBytes  = 8 << 20
	// maxStreamBytes is enough for any server.
	maxStreamBytes = 16 << 30
)

// NewStreamBudget returns a budget for what watches keep that is not taken.
func NewStreamBudget(bytes int64) *hub.Budget {
	return hub.NewBudget(min(bytes, maxStreamBytes), topicBytes)
}

// watches are those of one database.
//
// A change goes through three hands. The writer compares it with the tree, at its
// turn, if somebody watches the place. The syncer queues it when it is visible.
// The dispatcher, a goroutine that runs while anything is queued, takes what is
// there as one delivery, with the views before and after it, judges again those whose
// permission may have changed, and publishes the events to the topics.
type watches struct {
	database *Database
	budget   *hub.Budget
	count    atomic.Int64 // of watches, also of those that are just being opened
	done     sync.WaitGroup

	queue queue

	// gate is held while a delivery is taken, and by a watch that could not be opened
	// between two deliveries.
	gate sync.Mutex

	mu     sync.RWMutex
	closed bool
	taken  uint64 // the position up to which changes were taken to be handed on
	places map[placeKey]*place
	by     hub.Register[*place] // by the path that is watched
	rests  hub.Register[*Watch] // by the paths that their permission rests on
	all    map[*Watch]struct{}

	dispatcher dispatcher
}

// A placeKey is what watches must have in common to get the same events.
type placeKey struct {
	path     tree.Path
	form     tree.Form
	priority bool
	filtered bool
	query    query.Query
}

// A place is a location that is watched in one way.
type place struct {
	placeKey
	topic *hub.Topic[*Event]
	since uint64 // changes at or below this position are not for it
	// window belongs to the dispatcher once the place is registered. It may be
	// unknown because it could not be read.
	window  window
	unknown bool
	// unsettled is where the last watch began that began before all changes up to
	// there were handed on. It is guarded by the lock of watches.
	unsettled uint64
}

func (w *watches) init(d *Database) {
	w.database = d
	w.budget = d.opts.Streams
	if w.budget == nil {
		w.budget = NewStreamBudget(streamBytes)
	}
	w.places = make(map[placeKey]*place)
	w.all = make(map[*Watch]struct{})
	w.taken = d.position
	w.dispatcher.settings = d.settings
}

// concerns reports whether anybody watches the path, something above it or below.
func (w *watches) concerns(p tree.Path) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.by.Concerns(p)
}

// A delivery is what is handed on at a time: changes of a database in order, all of
// them from one view to another.
type delivery struct {
	effects   []*effect
	bytes     int
	lost      bool        // there were too many to keep
	before    *store.View // nil if it is not known
	after     *store.View
	published *published // that belongs to after
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
	mu      sync.Mutex
	running bool // the dispatcher will look again
	closed  bool // nothing is handed on any more
	// open is what is visible of a group that will be whole soon, ready what is.
	open  delivery
	ready *delivery
}

// durable is called by the syncer for the commits of a group, before the view
// that shows them is there.
func (w *watches) durable() {
	if w.count.Load() == 0 {
		return
	}
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	if w.queue.open.before == nil && !w.queue.closed {
		w.queue.open.before = w.database.store.View()
	}
}

// visible is called by the syncer for each commit when the view that shows the
// whole group is there.
func (w *watches) visible(op *operation) {
	q := &w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	published := w.database.published.Load()
	whole := op.next == published
	if w.count.Load() > 0 {
		if op.effect == nil {
			op.effect = unobserved(op.commit.Change)
		}
		q.open.add(op.effect)
	} else if whole {
		q.open.release()
		q.open = delivery{}
	}
	if !whole || len(q.open.effects) == 0 && !q.open.lost {
		return
	}
	q.open.after, q.open.published = w.database.store.View(), published
	q.ready = merge(q.ready, q.open)
	q.open = delivery{}
	if !q.running {
		q.running = true
		w.done.Go(w.run)
	}
}

func (del *delivery) add(e *effect) {
	del.effects = append(del.effects, e)
	del.bytes += e.bytes()
	del.bound()
}

// bound forgets the effects if they are too many.
func (del *delivery) bound() {
	if len(del.effects) > maxPending || del.bytes > maxPendingBytes {
		del.effects, del.bytes, del.lost = nil, 0, true
	}
}

// merge appends a delivery to one that was not taken yet.
func merge(ready *delivery, next delivery) *delivery {
	if ready == nil {
		return &next
	}
	ready.effects = append(ready.effects, next.effects...)
	ready.bytes += next.bytes
	ready.lost = ready.lost || next.lost
	ready.bound()
	ready.after.Release()
	ready.after, ready.published = next.after, next.published
	if next.before != nil {
		next.before.Release()
	}
	return ready
}

// run is the dispatcher's goroutine: it hands on what is queued and ends.
func (w *watches) run() {
	for {
		w.queue.mu.Lock()
		del := w.queue.ready
		w.queue.ready = nil
		w.queue.running = del != nil
		w.queue.mu.Unlock()
		if del == nil {
			return
		}
		w.dispatch(del)
		del.release()
	}
}

// join registers a watch whose permission was judged on a snapshot. It reports
// false if changes that the snapshot does not show were handed on already: then
// the snapshot is too old.
func (w *watches) join(watch *Watch, position uint64, first window) (joined bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false, classify(store.ErrClosed)
	}
	if position < w.taken {
		return false, nil
	}
	at := w.places[watch.key]
	if at != nil && position < at.since {
		return false, nil // somebody with a newer snapshot was faster
	}
	if at == nil {
		at = &place{placeKey: watch.key, topic: hub.NewTopic[*Event](w.budget), since: position, window: first}
		w.places[watch.key] = at
		w.by.Add(at.path, at)
	}
	at.unsettle(position, w.taken)
	watch.place = at
	watch.subscription = at.topic.Subscribe(watch.wake)
	for _, p := range watch.reads {
		w.rests.Add(p, watch)
	}
	w.all[watch] = struct{}{}
	return true, nil
}

// settle says that a watch of a place begins anew at a position. It reports false
// if changes behind it were handed on already.
func (w *watches) settle(at *place, position uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at.unsettle(position, w.taken)
	return position >= w.taken
}

func (at *place) unsettle(position, taken uint64) {
	if position > taken {
		at.unsettled = max(at.unsettled, position)
	}
}

// began reports whether a watch began behind a position, which the dispatcher has
// not gone beyond yet.
func (w *watches) began(at *place, position uint64) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return at.unsettled > position
}

// leave undoes join. It may be called more than once.
func (w *watches) leave(watch *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.all[watch]; !ok {
		return
	}
	delete(w.all, watch)
	w.count.Add(-1)
	for _, p := range watch.reads {
		w.rests.Remove(p, watch)
	}
	watch.subscription.Close()
	if at := watch.place; at.topic.Subscriptions() == 0 && w.places[at.placeKey] == at {
		delete(w.places, at.placeKey)
		w.by.Remove(at.path, at)
	}
}

// restOn changes what the permission of a watch rests on.
func (w *watches) restOn(watch *Watch, reads []tree.Path) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.all[watch]; !ok {
		return
	}
	for _, p := range watch.reads {
		w.rests.Remove(p, watch)
	}
	watch.reads = reads
	for _, p := range reads {
		w.rests.Add(p, watch)
	}
}

// everybody returns all watches.
func (w *watches) everybody() []*Watch {
	w.mu.RLock()
	defer w.mu.RUnlock()
	list := make([]*Watch, 0, len(w.all))
	for watch := range w.all {
		list = append(list, watch)
	}
	return list
}

// close ends all watches, and returns when nothing is handed on any more.
func (w *watches) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	for _, watch := range w.everybody() {
		watch.subscription.Finish(&Event{Kind: End})
	}
	w.queue.close()
	w.done.Wait()
}

// close drops what is queued, and all that would be.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.open.release()
	q.open = delivery{}
	if q.ready != nil {
		q.ready.release()
		q.ready = nil
	}
}
