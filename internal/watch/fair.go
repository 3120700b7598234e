package watch

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// This file says which windows the dispatcher moves when it has not the time for all that a
// delivery concerns (Limits.MaxMoving). The rest is found by its watches, and sent whole. A
// client with thousands of windows at a busy location must not use up the time of others. So
// each window has a rank: how much the older windows of its client take. Those of the lowest rank
// come first, in which a client with few windows is before all but a few of one with many.
//
// It costs as much as there are watches at the windows that are concerned, and only if there are too
// many of these.

// A shift is what a delivery has to do for one window.
type shift struct {
	at      *place
	effects []*Effect
	keys    []string // of the children that were touched
	whole   bool     // the keys are too many, or not known
	work    int      // in children that are read
	rank    int
}

// isWindow reports whether the place has a window to be moved: a priority has no children to
// select.
func (at *place) isWindow() bool { return at.filtered && !at.priority }

// shifts returns what a delivery has to do for windows, in the order in which it is done.
func (d *dispatcher) shifts(work map[*place][]*Effect) []shift {
	var list []shift
	var seen touchings
	total := 0
	for at, effects := range work {
		if !at.isWindow() {
			continue
		}
		s := shift{at: at, effects: effects}
		var ok bool
		s.keys, ok = seen.touched(at.path, effects)
		s.whole = !ok || len(s.keys) > d.set.limits.MaxMoved
		s.work = d.work(&s)
		total += s.work
		list = append(list, s)
	}
	if total > d.set.limits.MaxMoving {
		d.rank(list)
	}
	return list
}

// work returns what it takes to move a window.
func (d *dispatcher) work(s *shift) int {
	const perKnown = 64 // how many that are known are gone through while a child is read
	work := 1 + 2*len(s.keys)
	if s.whole {
		work = 1 + d.set.limits.MaxMoved/2
	}
	if known := s.at.window.known; known != nil {
		work += known.Len() / perKnown
	}
	return work
}

// touchings remember which children effects touch: the windows of one location share that.
type touchings map[touching]touchedKeys

// A touching is a location with those effects of a delivery that concern it: for a place that
// was made in the middle of it, only the later ones.
type touching struct {
	path  tree.Path
	first *Effect
	count int
}

type touchedKeys struct {
	keys []string
	ok   bool
}

func (t *touchings) touched(p tree.Path, effects []*Effect) (keys []string, ok bool) {
	key := touching{p, effects[0], len(effects)}
	found, seen := (*t)[key]
	if !seen {
		found.keys, found.ok = touched(p, effects)
		if *t == nil {
			*t = make(touchings)
		}
		(*t)[key] = found
	}
	return found.keys, found.ok
}

// networkRank is how much more the clients of one network may take together than one client.
// They may be many: an office, or all users of a carrier.
const networkRank = 16

// rank sorts shifts by their rank, and by the age of their places. A window that several clients
// watch has the rank of the one with the lowest.
func (d *dispatcher) rank(list []shift) {
	slices.SortFunc(list, func(a, b shift) int { return cmp.Compare(a.at.number, b.at.number) })
	clients, networks := make(takings), make(takings)
	d.set.mu.RLock()
	for i := range list {
		s := &list[i]
		s.rank = math.MaxInt
		for w := s.at.first; w != nil; w = w.after {
			own := clients.take(takerOf(w), s)
			all := networks.take(taker{network: w.client.Network}, s)
			s.rank = min(s.rank, max(own, all/networkRank))
		}
	}
	d.set.mu.RUnlock()
	slices.SortStableFunc(list, func(a, b shift) int { return cmp.Compare(a.rank, b.rank) })
}

// A taker is whose windows count together: those of a user or, without a uid, of a network.
type taker struct {
	uid     string
	network netip.Addr
}

func takerOf(w *Watch) taker {
	if uid := w.who.Load().Auth.Child("uid").Leaf().Text(); uid != "" {
		return taker{uid: uid}
	}
	return taker{network: w.client.Network}
}

// takings are what the windows of each taker take.
type takings map[taker]taking

type taking struct {
	work int
	last *place // that was counted
}

// take counts a shift for a taker, once, and returns what its older windows take.
func (t takings) take(of taker, s *shift) int {
	was := t[of]
	if was.last == s.at { // by another watch of the same taker
		return was.work - s.work
	}
	t[of] = taking{was.work + s.work, s.at}
	return was.work
}

// add has a place know a watch of its, remove undoes it. The lock of watches is held.
func (at *place) add(w *Watch) {
	if w.after = at.first; w.after != nil {
		w.after.before = w
	}
	at.first = w
}

func (at *place) remove(w *Watch) {
	if w.after != nil {
		w.after.before = w.before
	}
	if w.before != nil {
		w.before.after = w.after
	} else {
		at.first = w.after
	}
	w.before, w.after = nil, nil
}
