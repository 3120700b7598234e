package watch

import (
	"errors"
	"sync"

	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A dispatcher is what belongs to the dispatcher's goroutine.
type dispatcher struct {
	set      *Set
	settings *state.Settings // of the last delivery
	// judging is how many steps the rules have taken for this delivery, and verdicts
	// what was found.
	judging  int
	verdicts map[verdictKey]verdict
	// moving is how much was done for the windows of this delivery.
	moving   int
	*scratch // while a delivery is handed on
}

// A scratch is memory that is used again, by the dispatchers of all databases.
type scratch struct {
	woken    []*hub.Subscription[*Event]
	messages []hub.Message[*Event]
	unread   *unread // of the place that is told; see there for nil
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

// run is the dispatcher's goroutine: it hands on what is queued and ends.
func (d *dispatcher) run() {
	for {
		del := d.set.queue.next()
		if del == nil {
			return
		}
		d.dispatch(del)
		d.set.queue.drop(del)
	}
}

// dispatch takes a delivery and hands it on.
func (d *dispatcher) dispatch(del *delivery) {
	d.set.order.Load().hand()
	d.set.take(del)
	d.handOn(del)
	d.set.order.Load().reach(del.published.Position)
}

// handOn ends the watches that may not see a delivery, and then publishes its events.
func (d *dispatcher) handOn(del *delivery) {
	defer d.set.dropStale(del.published.Position)
	d.scratch = scratches.Get().(*scratch)
	defer func() {
		d.unread = nil
		scratches.Put(d.scratch)
		d.scratch = nil
	}()
	d.judge(del)
	if del.lost {
		for _, at := range d.set.everywhere() {
			d.renew(at, del)
		}
		return
	}
	d.moving = 0
	work := d.set.concerned(del)
	for at, effects := range work {
		if !at.isWindow() {
			d.tell(at, effects, del)
		}
	}
	for _, s := range d.shifts(work) { // windows take longer, and may take too long
		d.tellWindow(&s, del)
	}
}

// take says that a delivery is being handed on. Watches that are opened from now on
// begin behind it.
func (w *Set) take(del *delivery) {
	w.gate.Lock()
	defer w.gate.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = del.published.Position
}

// everywhere returns all places.
func (w *Set) everywhere() []*place {
	w.mu.RLock()
	defer w.mu.RUnlock()
	list := make([]*place, 0, len(w.places))
	for _, at := range w.places {
		list = append(list, at)
	}
	return list
}

// concerned returns the places that a delivery has something for.
func (w *Set) concerned(del *delivery) map[*place][]*Effect {
	w.mu.RLock()
	defer w.mu.RUnlock()
	work := make(map[*place][]*Effect)
	for _, e := range del.effects {
		for i := range e.parts {
			if e.parts[i].same {
				continue
			}
			w.by.Concerned(e.parts[i].Path, func(at *place) {
				list := work[at]
				if e.Position > at.since && (len(list) == 0 || list[len(list)-1] != e) {
					work[at] = append(list, e)
				}
			})
		}
	}
	return work
}

// tell publishes what changes are at a place without a window.
func (d *dispatcher) tell(at *place, effects []*Effect, del *delivery) {
	at.touched.Store(del.published.Position)
	switch {
	case at.priority && at.filtered: // a priority has no children to select
		return
	case at.priority:
		d.tellPriority(at, del)
		return
	}
	messages := d.messages[:0]
	d.unread = d.unreadAt(at, del)
	for i, e := range effects {
		fragments, ok := e.cutFor(at.placeKey, d.unread.same(e, effects[:i]))
		if ok {
			messages, ok = d.appendEvents(messages, fragments, at.form, moment{position: e.Position, millis: e.Millis})
		}
		if !ok {
			at.topic.Skip()
			return
		}
	}
	d.publish(at, messages)
}

// A moment is where in the order of commits an event belongs.
type moment struct {
	position uint64
	millis   int64
	from, to uint64 // of a window that was moved
}

// message returns an event to be published.
func (when moment) message(kind EventKind, at tree.Path, value []byte, last bool) hub.Message[*Event] {
	e := &Event{
		Kind: kind, Path: at, Value: value, Position: when.position, Last: last, Millis: when.millis, from: when.from, to: when.to,
	}
	return hub.Message[*Event]{Message: e, Bytes: e.bytes()}
}

// appendEvents encodes the events of one change; false if they are too large to
// be kept.
func (d *dispatcher) appendEvents(messages []hub.Message[*Event], fragments []fragment, form tree.Form, when moment) ([]hub.Message[*Event], bool) {
	limit := int(d.set.budget.Limit() / 2)
	for i := range fragments {
		f := &fragments[i]
		value, ok := f.encode(form, limit)
		if !ok {
			return nil, false
		}
		messages = append(messages, when.message(f.kind(), f.path, value, i == len(fragments)-1))
	}
	return messages, true
}

// publish publishes events and wakes those who wait for them.
func (d *dispatcher) publish(at *place, messages []hub.Message[*Event]) {
	if len(messages) > 0 {
		shared := at.topic.Subscriptions()
		for _, m := range messages {
			m.Message.shared = shared
		}
		at.topic.Publish(messages...)
		d.woken = at.topic.Wake(d.woken)
		clear(d.woken)
	}
	clear(messages)
	d.messages = messages[:0]
}

// tellPriority publishes the priority of a node if it changed.
func (d *dispatcher) tellPriority(at *place, del *delivery) {
	priority, err := del.after.Tree(d.set.source.ID).Priority(at.path)
	if err != nil {
		at.topic.Skip()
		return
	}
	when := moment{position: del.published.Position, from: del.from()}
	messages := d.messages[:0]
	if priority == at.window.priority {
		d.publish(at, d.appendSilent(messages, at, when))
		return
	}
	at.window.priority = priority
	d.publish(at, append(messages, when.message(Put, tree.Path{}, tree.AppendLeaf(nil, priority), true)))
}

// appendSilent adds an event that makes watches look again that began in the
// middle of a delivery, of which there is nothing to tell to others: what they saw
// then may have been taken back since.
func (d *dispatcher) appendSilent(messages []hub.Message[*Event], at *place, when moment) []hub.Message[*Event] {
	if len(messages) > 0 || !d.set.began(at, when.from) {
		return messages
	}
	when.to = when.position
	return append(messages, when.message(silent, tree.Path{}, nil, true))
}

// renew has all watches of a place read it again, as of a delivery or later. If the
// window is large, one of them is to measure it.
func (d *dispatcher) renew(at *place, del *delivery) {
	at.touched.Store(del.published.Position)
	if d.set.isWanted(at) {
		at.topic.Skip()
		return
	}
	v := d.set.source.View(del.after, del.published)
	window, err := at.newWindow(v, d.set.limits.MaxCounted)
	if errors.Is(err, store.ErrMany) {
		d.loseWindow(at)
		return
	}
	at.window, at.unknown = window, err != nil
	d.set.want(at, false)
	at.topic.Skip() // whoever cannot read it is told so then
}
