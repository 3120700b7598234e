package watch

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// Limits of what waits to be told to watches.
const (
	// streamBytes and topicBytes are what all watches of all databases, and those of
	// one location, may keep that is not taken, by default.
	streamBytes = 256 << 20
	topicBytes  = 8 << 20
	// maxStreamBytes is enough for any server.
	maxStreamBytes = 16 << 30
)

// NewBudget returns a budget for what watches keep that is not taken.
func NewBudget(bytes int64) *hub.Budget {
	return hub.NewBudget(min(bytes, maxStreamBytes), topicBytes)
}

// A Set is the watches of one database. The package's comment says how its parts play
// together.
type Set struct {
	database Database
	source   *state.Source
	limits   *Limits // shared
	budget   *hub.Budget
	count    atomic.Int64 // of watches, also of those that are just being opened
	done     sync.WaitGroup

	queue queue
	order atomic.Pointer[Order] // nil while there was no Party

	// gate is held while a delivery is taken, and by a watch that could not begin, or
	// go on, between two deliveries. line is held by a watch that wants it.
	gate, line sync.Mutex
	aside      atomic.Pointer[aside] // both are nil in most databases
	scans      atomic.Pointer[scans]

	mu     sync.RWMutex
	closed bool
	made   uint32 // how many places were made so far
	taken  uint64 // the position up to which changes were taken to be handed on
	places map[placeKey]*place
	by     hub.Register[*place] // by the path that is watched
	rests  hub.Register[*Watch] // by the paths that their permission rests on
	all    map[*Watch]struct{}
	// fresh holds the views of windows that were measured while changes waited to
	// be handed on: the next delivery may begin before them and end after them.
	fresh map[*place]*state.View

	dispatcher dispatcher
}

// A placeKey is what watches must have in common to get the same events.
type placeKey struct {
	path     tree.Path
	form     tree.Form
	priority bool
	whole    bool // one event for each change
	filtered bool
	query    query.Shared
	scan     bool // without its index, the window is found by a scan
}

// A place is a location that is watched in one way.
type place struct {
	placeKey
	topic  *hub.Topic[*Event]
	since  uint64 // changes at or below this position are not for it
	number uint32 // of all that were made; it tells their age
	first  *Watch // of a list of its watches; guarded by the lock of watches
	// window belongs to the dispatcher once the place is registered. It may be
	// unknown because it could not be read.
	window  window
	unknown bool
	// touched is the position of the last delivery that changed something here.
	touched atomic.Uint64
	hashes  atomic.Pointer[hashes] // nil until somebody asks
	// wanted says that the window is to be measured by a watch, measuring that one
	// does, and offer is what it found. They are guarded by the lock of watches, as
	// unsettled is.
	wanted, measuring bool
	offer             *offer
	// unsettled is where the last watch began that began before all changes up to
	// there were handed on.
	unsettled uint64
}

// A Database is whose watches they are.
type Database interface {
	// View returns the newest view.
	View() *state.View
	// Published returns what belongs to the newest view, or to one that is about to be.
	Published() *state.Published
	// Standing returns nil while the database is open.
	Standing() error
}

// Init makes the set that of a database. The budget may be nil.
func (w *Set) Init(d Database, source *state.Source, limits *Limits, budget *hub.Budget) {
	if budget == nil {
		budget = NewBudget(streamBytes)
	}
	published := d.Published()
	w.database, w.source, w.limits, w.budget = d, source, limits, budget
	w.taken = published.Position
	w.queue.set, w.queue.newest = w, published
	w.dispatcher.set, w.dispatcher.settings = w, published.Settings
}

// lazily returns what a pointer leads to, which is made for the first who asks. Of most
// databases nobody watches anything.
func lazily[T any](p *atomic.Pointer[T]) *T {
	if p.Load() == nil {
		p.CompareAndSwap(nil, new(T))
	}
	return p.Load()
}

// Any reports whether there are watches, or one is just being opened.
func (w *Set) Any() bool { return w.count.Load() > 0 }

// Observe works out the effect of a change on the tree, as it is before, for Visible or
// Abandon. It is called by the writer at the turn of the change, and returns nil if
// nobody watches.
func (w *Set) Observe(t store.Tree, c tree.Change) *Effect {
	switch {
	case !w.Any():
		return nil
	case w.queue.isFull():
		return tooMuch
	}
	e := w.observe(t, c)
	w.queue.count(e)
	return e
}

// Abandon forgets the effect of a change that is not made.
func (w *Set) Abandon(e *Effect) { w.queue.forget(e) }

// Durable is called by the syncer for the commits of a group, before the view that
// shows them is there.
func (w *Set) Durable() {
	if w.Any() {
		w.queue.durable()
	}
}

// Visible is called by the syncer for each commit when the view that shows the whole
// group is there, with its effect and with what is published with it.
func (w *Set) Visible(c tree.Change, e *Effect, next *state.Published) { w.queue.visible(c, e, next) }

// concerns reports whether anybody watches the path, something above it or below.
func (w *Set) concerns(p tree.Path) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.by.Concerns(p)
}

// join registers a watch with its permission, and with the measure of its window in
// the view that it was judged on. It reports false if changes that the view
// does not show were taken already: then the view is too old. It fails with
// errNewPlace if the place is new and the measure is nil.
func (w *Set) join(watch *Watch, allowed permission, first *measure) (joined bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	position := allowed.position
	if w.closed {
		return false, w.database.Standing()
	}
	if position < w.taken {
		return false, nil
	}
	at := w.places[watch.key]
	if at != nil && position < at.since {
		return false, nil // somebody with a newer view was faster
	}
	if at == nil && first == nil {
		return false, errNewPlace
	}
	if w.all == nil {
		w.places, w.all = make(map[placeKey]*place), make(map[*Watch]struct{})
	}
	if at == nil {
		at = &place{placeKey: watch.key, topic: hub.NewTopic[*Event](w.budget), since: position, window: first.window}
		w.made++
		at.number = w.made
		at.unknown = first.view == nil
		at.wanted = at.unknown
		w.places[watch.key] = at
		w.by.Add(at.path, at)
		if !at.unknown {
			w.keepFresh(at, first.view)
		}
	}
	at.unsettle(position, w.taken)
	watch.place = at
	at.add(watch)
	watch.subscription = at.topic.Subscribe(watch.wake)
	w.allow(watch, allowed)
	w.all[watch] = struct{}{}
	return true, nil
}

// settle says that a watch begins again at the position of a new permission, and
// offers a measure of the window as of then, unless it is nil. It reports false if
// changes after the position were taken already.
func (w *Set) settle(watch *Watch, allowed permission, found *measure) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := watch.place
	at.unsettle(allowed.position, w.taken)
	if allowed.position < w.taken {
		return false
	}
	if _, ok := w.all[watch]; !ok {
		return true
	}
	w.allow(watch, allowed)
	watch.unjudged = false
	if found != nil && at.wanted {
		at.wanted, at.offer = false, &offer{found.window, allowed.position}
		w.keepFresh(at, found.view)
	}
	return true
}

func (at *place) unsettle(position, taken uint64) {
	if position > taken {
		at.unsettled = max(at.unsettled, position)
	}
}

// began reports whether a watch began behind a position, which the dispatcher has
// not gone beyond yet.
func (w *Set) began(at *place, position uint64) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return at.unsettled > position
}

// leave undoes join. It may be called more than once.
func (w *Set) leave(watch *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.all[watch]; !ok {
		return
	}
	delete(w.all, watch)
	w.count.Add(-1)
	w.restOn(watch, nil)
	watch.subscription.Close()
	w.scans.Load().leave(watch)
	at := watch.place
	at.remove(watch)
	if at.topic.Subscriptions() == 0 && w.places[at.placeKey] == at {
		delete(w.places, at.placeKey)
		w.by.Remove(at.path, at)
		w.dropFresh(at)
	}
	if len(w.all) == 0 { // maps keep the room that they had
		w.places, w.all, w.fresh = nil, nil, nil
		w.by, w.rests = hub.Register[*place]{}, hub.Register[*Watch]{}
	}
}

// everybody returns all watches.
func (w *Set) everybody() []*Watch {
	w.mu.RLock()
	defer w.mu.RUnlock()
	list := make([]*Watch, 0, len(w.all))
	for watch := range w.all {
		list = append(list, watch)
	}
	return list
}

// Close ends all watches, and returns when nothing is handed on any more.
func (w *Set) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	for _, watch := range w.everybody() {
		watch.subscription.Finish(&Event{Kind: End})
	}
	w.queue.close()
	lazily(&w.aside).close()
	w.done.Wait()
	w.order.Load().reach(math.MaxUint64) // nothing more is told
	w.dropAllFresh()
}
