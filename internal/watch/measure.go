package watch

import (
	"errors"
	"math"

	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file decides who counts the children of a window. Counting takes about as
// long as printing them. The first watch of a place does it: the dispatcher would
// keep all other watches waiting, and further watches of the place need no count.

// A measure is a window with the view that shows it.
type measure struct {
	window window
	view   *state.View // nil if there is none
}

// drop gives the view back.
func (m *measure) drop() {
	if m.view != nil {
		m.view.Close()
	}
	*m = measure{}
}

// move makes the measure that of a later view. One that was made before is moved
// by what changed since. So it catches up with the writers of the database, however
// long counting took. While no delivery can be taken it does no more than the dispatcher
// would, and fails with store.ErrMany if that is not enough; the measure is empty then.
func (m *measure) move(w *Watch, v *state.View, gated bool) error {
	k, l := w.key, w.set.limits
	followable, countable := l.MaxFollowed, 0
	if gated {
		followable, countable = l.MaxMoved, l.MaxCounted
	}
	found := w.found(v)
	followed := found == nil && m.view != nil && m.follow(k, v, followable)
	moved := m.window
	m.drop()
	switch {
	case found != nil && k.counted():
		moved = window{known: found}
	case !followed:
		var err error
		if moved, err = k.newWindow(v, countable); err != nil {
			return err
		}
	}
	*m = measure{moved, v.Hold()}
	return nil
}

// follow moves the window by the change log. It reports false if that does not tell
// enough, after which the window means nothing.
func (m *measure) follow(k placeKey, v *state.View, most int) bool {
	if !k.counted() || v.Exists() != nil {
		return false // there is nothing to count, or nothing left
	}
	keys, ok := k.changed(m.view.Position, v, most)
	if !ok {
		return false
	}
	_, err := m.window.slide(k, m.view, v, keys, most)
	return err == nil
}

// changed returns the keys of the children that have changed after a position, up to a
// view, by the change log. It reports false if that does not tell, or if they are more
// than a number.
func (k placeKey) changed(position uint64, v *state.View, most int) (keys []string, ok bool) {
	seen := make(map[string]bool)
	known := true
	err := v.Tree().ChangesAt(position, v.Position, []tree.Path{k.path}, math.MaxInt64, func(c tree.Change) bool {
		if c.Truncated {
			known = !c.At.Overlaps(k.path)
			return known
		}
		var more []string
		more, known = touched(k.path, []*Effect{unobserved(c)})
		for _, key := range more {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
		known = known && len(keys) <= most
		return known
	})
	return keys, err == nil && known
}

// errNewPlace says that a watch is the first one of its place.
var errNewPlace = errors.New("the place is new")

// join joins the place of the watch as of a view, on which it was allowed. Only
// the first watch of a place has to measure its window. If that is too much while no
// delivery can be taken, it is done when there is something to tell.
func (w *Watch) join(v *state.View, allowed permission, m *measure, gated bool) (joined bool, err error) {
	all := w.set
	if fresh, err := w.find(v, gated); !fresh {
		return false, err
	}
	if joined, err = all.join(w, allowed, nil); !errors.Is(err, errNewPlace) {
		return joined, err
	}
	if err := m.move(w, v, gated); err != nil && !errors.Is(err, store.ErrMany) {
		return false, err
	}
	return all.join(w, allowed, m)
}

// An offer is what a watch has measured for a place whose window was not known.
type offer struct {
	window   window
	position uint64
}

// want sets whether a watch is to measure the window of a place. An earlier offer is
// dropped.
func (w *Set) want(at *place, wanted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at.wanted, at.offer = wanted, nil
	w.dropFresh(at)
}

func (w *Set) isWanted(at *place) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return at.wanted
}

// claim reports whether the caller is to measure the window of a place, until it
// calls unclaim.
func (w *Set) claim(at *place) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !at.wanted || at.measuring {
		return false
	}
	at.measuring = true
	return true
}

func (w *Set) unclaim(at *place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at.measuring = false
}

// adopt makes an offer the window of a place. It reports false if all watches are to
// read the place again instead of being told of the delivery.
func (d *dispatcher) adopt(at *place, effects []*Effect, del *delivery) bool {
	offered, shown := d.set.takeOffer(at, del.published.Position)
	if shown != nil {
		defer shown.Close()
	}
	switch {
	case offered == nil:
		d.renew(at, del)
		return false
	case offered.position > del.published.Position:
		at.topic.Skip() // it is for a later delivery
		return false
	case offered.position <= del.from():
		at.window, at.unknown = offered.window, false
		return true
	}
	// Some watches may have begun before the offer, within the delivery.
	defer at.topic.Skip()
	for len(effects) > 0 && effects[0].Position <= offered.position {
		effects = effects[1:]
	}
	keys, ok := touched(at.path, effects)
	if shown == nil || !ok || len(keys) > d.set.limits.MaxMoved {
		d.set.want(at, true)
		return false
	}
	after := d.set.source.View(del.after, del.published)
	_, err := offered.window.slide(at.placeKey, shown, after, keys, d.set.limits.MaxCounted)
	at.window, at.unknown = offered.window, err != nil
	d.set.want(at, err != nil)
	return false
}

// loseWindow has all watches of a place read it again, and one of them measure its
// window, if there is something to measure.
func (d *dispatcher) loseWindow(at *place) {
	if at.counted() {
		at.unknown = true
		d.set.want(at, true)
	}
	at.topic.Skip()
}

// takeOffer returns the offer for a place, nil if there is none. It removes the offer
// unless that is of a later position, and returns its view, too, if it was kept.
func (w *Set) takeOffer(at *place, position uint64) (*offer, *state.View) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := at.offer
	if found == nil || found.position > position {
		return found, nil
	}
	at.offer = nil
	return found, w.takeFresh(at)
}

// before returns the view that a place's window is to be moved from by a
// delivery: that before the delivery or, if the place was made in the middle of it,
// that of the place. It is nil if there is none any more, and must be closed.
func (d *dispatcher) before(at *place, del *delivery) *state.View {
	if del.before != nil && at.since <= del.from() {
		v := d.set.source.View(del.before, del.shown)
		return v.Hold()
	}
	d.set.mu.Lock()
	defer d.set.mu.Unlock()
	return d.set.takeFresh(at)
}

// keepFresh keeps the view of a place's window if changes wait to be handed on:
// the next delivery may begin before the view and end after it. Without such
// changes no delivery would come to drop it. The lock is held, as it is for takeFresh
// and dropFresh.
func (w *Set) keepFresh(at *place, v *state.View) {
	if at.filtered && w.queue.isBusy() {
		w.dropFresh(at)
		if w.fresh == nil {
			w.fresh = make(map[*place]*state.View)
		}
		w.fresh[at] = v.Hold()
	}
}

// takeFresh returns the view that was kept for a place, nil if there is none. The
// caller must close it.
func (w *Set) takeFresh(at *place) *state.View {
	s := w.fresh[at]
	delete(w.fresh, at)
	return s
}

func (w *Set) dropFresh(at *place) {
	if s := w.takeFresh(at); s != nil {
		s.Close()
	}
}

// dropStale drops the views up to a position that was handed on: all further
// deliveries begin after them.
func (w *Set) dropStale(position uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at, s := range w.fresh {
		if s.Position <= position {
			w.dropFresh(at)
		}
	}
}

func (w *Set) dropAllFresh() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at := range w.fresh {
		w.dropFresh(at)
	}
}
