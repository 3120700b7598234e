package engine

import (
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/tree"
)

// A dispatcher is what belongs to the dispatcher's goroutine.
type dispatcher struct {
	settings *settings // of the last delivery
	// The rest is used again.
	woken    []*hub.Subscription[*Event]
	messages []hub.Message[*Event]
}

// dispatch hands a delivery on: first it ends the watches that may not see it, then
// it publishes the events.
func (w *watches) dispatch(del *delivery) {
	w.take(del)
	w.judge(del)
	if del.lost {
		for _, at := range w.everywhere() {
			w.renew(at, del)
		}
		return
	}
	for at, effects := range w.concerned(del) {
		w.tell(at, effects, del)
	}
}

// take says that a delivery is being handed on. Watches that are opened from now on
// begin behind it.
func (w *watches) take(del *delivery) {
	w.gate.Lock()
	defer w.gate.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = del.published.position
}

// everywhere returns all places.
func (w *watches) everywhere() []*place {
	w.mu.RLock()
	defer w.mu.RUnlock()
	list := make([]*place, 0, len(w.places))
	for _, at := range w.places {
		list = append(list, at)
	}
	return list
}

// concerned returns the places that a delivery has something for.
func (w *watches) concerned(del *delivery) map[*place][]*effect {
	w.mu.RLock()
	defer w.mu.RUnlock()
	work := make(map[*place][]*effect)
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

// judge judges the watches again whose permission may have changed with a delivery.
func (w *watches) judge(del *delivery) {
	if del.lost || w.dispatcher.settings != del.published.settings {
		w.dispatcher.settings = del.published.settings
		for _, watch := range w.everybody() {
			if del.lost || !watch.judged.judgesLike(del.published.settings) {
				w.rejudge(watch, del, true)
			}
		}
	}
	for watch := range w.resting(del) {
		w.rejudge(watch, del, false)
	}
}

// resting returns the watches whose permission rests on what a delivery changed.
func (w *watches) resting(del *delivery) map[*Watch]struct{} {
	w.mu.RLock()
	defer w.mu.RUnlock()
	found := make(map[*Watch]struct{})
	for _, e := range del.effects {
		for i := range e.parts {
			if !e.parts[i].same {
				w.rests.Concerned(e.parts[i].Path, func(watch *Watch) { found[watch] = struct{}{} })
			}
		}
	}
	return found
}

// rejudge ends a watch that may not go on behind a delivery.
func (w *watches) rejudge(watch *Watch, del *delivery, settings bool) {
	if settings && !w.holds(watch.who, del.published) {
		watch.subscription.Finish(&Event{Kind: Revoked})
		return
	}
	s := &Snapshot{database: w.database, view: del.after, published: del.published}
	decision, err := s.judgeRead(watch.who, watch.key.path, watch.key.filter())
	if err == nil && settings && watch.key.filtered {
		_, err = s.settings.indexFor(watch.key.query, watch.key.path.String(), s.settings.indexes.At(watch.key.path))
	}
	if err != nil {
		watch.subscription.Finish(ending(err))
		return
	}
	watch.judged = del.published.settings
	w.restOn(watch, decision.Reads)
	watch.timed.Store(decision.UsedNow)
	if len(del.effects) != 1 {
		// Between two of the changes it might not have been allowed what it is
		// allowed at the end.
		watch.subscription.Skip()
	}
}

// holds reports whether an identity is still good.
func (w *watches) holds(who auth.Identity, p *published) bool {
	d := w.database
	return d.opts.Verifier.Holds(who, p.settings.credentials(d.opts.Name))
}

// tell publishes what changes are at a place.
func (w *watches) tell(at *place, effects []*effect, del *delivery) {
	switch {
	case at.priority && at.filtered: // a priority has no children to select
		return
	case at.priority:
		w.tellPriority(at, del)
		return
	case at.filtered:
		w.tellWindow(at, effects, del)
		return
	}
	messages := w.dispatcher.messages[:0]
	for _, e := range effects {
		fragments, ok := e.cut(at.path, at.form)
		if ok {
			messages, ok = w.appendEvents(messages, fragments, at.form, stamp{position: e.Position, millis: e.Millis})
		}
		if !ok {
			at.topic.Skip()
			return
		}
	}
	w.publish(at, messages)
}

// A stamp is where in the order of commits an event belongs.
type stamp struct {
	position uint64
	millis   int64
	from, to uint64 // of a window that was moved
}

// message returns an event to be published.
func (s stamp) message(kind EventKind, text []byte, last bool) hub.Message[*Event] {
	e := &Event{Kind: kind, Text: text, Position: s.position, Last: last, Millis: s.millis, from: s.from, to: s.to}
	return hub.Message[*Event]{Message: e, Bytes: e.bytes()}
}

// appendEvents encodes the events of one change; false if they are too large to
// be kept.
func (w *watches) appendEvents(messages []hub.Message[*Event], fragments []fragment, form tree.Form, s stamp) ([]hub.Message[*Event], bool) {
	limit := int(w.budget.Limit() / 2)
	for i := range fragments {
		f := &fragments[i]
		text, ok := f.encode(form, limit)
		if !ok {
			return nil, false
		}
		messages = append(messages, s.message(f.kind(), text, i == len(fragments)-1))
	}
	return messages, true
}

// publish publishes events and wakes those who wait for them.
func (w *watches) publish(at *place, messages []hub.Message[*Event]) {
	if len(messages) > 0 {
		at.topic.Publish(messages...)
		w.dispatcher.woken = at.topic.Wake(w.dispatcher.woken)
		clear(w.dispatcher.woken)
	}
	clear(messages)
	w.dispatcher.messages = messages[:0]
}

// tellPriority publishes the priority of a node if it changed.
func (w *watches) tellPriority(at *place, del *delivery) {
	_, priority, err := del.after.Tree(w.database.id).Look(at.path)
	if err != nil {
		at.topic.Skip()
		return
	}
	s := stamp{position: del.published.position, from: del.from()}
	messages := w.dispatcher.messages[:0]
	if priority == at.window.priority {
		w.publish(at, w.appendSilent(messages, at, s))
		return
	}
	at.window.priority = priority
	text := append(tree.AppendLeaf([]byte(`{"path":"/","data":`), priority), '}')
	w.publish(at, append(messages, s.message(Put, text, true)))
}

// appendSilent adds an event that makes watches look again that began in the
// middle of a delivery, of which there is nothing to tell to others: what they saw
// then may have been taken back since.
func (w *watches) appendSilent(messages []hub.Message[*Event], at *place, s stamp) []hub.Message[*Event] {
	if len(messages) > 0 || !w.began(at, s.from) {
		return messages
	}
	s.to = s.position
	return append(messages, s.message(silent, nil, true))
}

// renew has all watches of a place read it again, as of a delivery or later.
func (w *watches) renew(at *place, del *delivery) {
	s := &Snapshot{database: w.database, view: del.after, published: del.published}
	window, err := s.newWindow(at.placeKey)
	at.window, at.unknown = window, err != nil
	at.topic.Skip() // whoever cannot read it is told so then
}
