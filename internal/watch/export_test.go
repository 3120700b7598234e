package watch

import (
	"fmt"
	"math"
	"net/netip"
	"runtime"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/tree"
)

// WatchCounts returns how many watches there are, and at how many places.
func (w *Set) WatchCounts() (watches, places int) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return int(w.count.Load()), len(w.places)
}

// WatchTroubles returns how often a watch was too far behind, and how often one
// was told anew what is there.
func (w *Set) WatchTroubles() (missed, renewed uint64) {
	return w.source.Metrics.Overflows.Load(), w.source.Metrics.Resyncs.Load()
}

// LoseChanges is a bug: the next changes are not for the places that there are. The
// dispatcher must be at rest.
func (w *Set) LoseChanges(n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.places {
		at.since = w.taken + n
	}
}

// BoundResume bounds what is looked through for a watch that goes on: the rows of
// the change log, their bytes, how many changes are told, and how many bytes of events
// are kept at a time. Zero stands for the default.
func (w *Set) BoundResume(rows uint64, bytes int64, told, kept int) {
	b := DefaultLimits().Resume
	if rows > 0 {
		b.Rows = rows
	}
	if bytes > 0 {
		b.Bytes = bytes
	}
	if told > 0 {
		b.Told = told
	}
	if kept > 0 {
		b.Kept = kept
	}
	w.changeLimits(func(l *Limits) { l.Resume = b })
}

// BoundRejudging bounds the steps of rules for watches that the dispatcher judges again:
// for one, for one when many were taken, how many that is, and for all of a delivery.
func (w *Set) BoundRejudging(watch, cheap, expensive, all int) {
	gate := w.limits.Rejudge.Gate
	w.changeLimits(func(l *Limits) { l.Rejudge = RejudgeBound{watch, cheap, expensive, all, gate} })
}

// LeavesUnjudged reports whether the dispatcher has less steps for rules than usual. A watch
// may go on then that was denied for a while.
func (w *Set) LeavesUnjudged() bool { return w.limits.Rejudge != DefaultLimits().Rejudge }

// Aside returns a function that waits until a watch of somebody may be judged at length, or
// until done, and one that has nobody wait any longer. What the first returns ends the
// judging.
func Aside(done <-chan struct{}) (enter func(auth.Identity, netip.Addr) (leave func(), err error), end func()) {
	a := &aside{}
	return func(who auth.Identity, from netip.Addr) (func(), error) {
		user, err := a.enter(who, from, done)
		return func() { a.leave(user) }, err
	}, a.close
}

// Nobodies is how many of those without a uid are judged at length at a time.
const Nobodies = nobodies

// BoundMoving bounds what the dispatcher does for the windows of a delivery. It must be
// called before anybody watches.
func (w *Set) BoundMoving(most int) { w.changeLimits(func(l *Limits) { l.MaxMoving = most }) }

// RetryWait is how long a watch waits that cannot go on.
const RetryWait = retryWait

// Moving returns what the dispatcher did for the windows of its last delivery.
func (w *Set) Moving() int { return w.dispatcher.moving }

// HoldAside has no watch of somebody judged at length until release is called. It returns
// how many wait for that.
func (w *Set) HoldAside(who auth.Identity) (waiting func() int, release func()) {
	user, err := lazily(&w.aside).enter(who, netip.Addr{}, nil)
	if err != nil {
		panic(err)
	}
	waiting = func() int {
		w.aside.Load().mu.Lock()
		defer w.aside.Load().mu.Unlock()
		return user.watches - 1
	}
	return waiting, func() { w.aside.Load().leave(user) }
}

// DeniedReads returns how many reads were denied.
func (w *Set) DeniedReads() uint64 { return w.source.Metrics.DeniedReads.Load() }

// RejudgeSteps returns the steps of rules that the dispatcher took for its last delivery.
func (w *Set) RejudgeSteps() int { return w.dispatcher.judging }

// BeginBetween has watches begin only while no delivery is taken.
func (w *Set) BeginBetween() { w.changeLimits(func(l *Limits) { l.Tries = 0 }) }

// WhileLooking calls look for each change that is looked at for a watch that goes on.
// It tells whether deliveries can be taken then.
func (w *Set) WhileLooking(look func(free bool)) {
	gate := &w.gate
	looking := func() {
		free := gate.TryLock()
		if free {
			gate.Unlock()
		}
		look(free)
	}
	w.changeLimits(func(l *Limits) { l.Resume.looking = looking })
}

// changeLimits gives the set limits of its own.
func (w *Set) changeLimits(change func(*Limits)) {
	l := *w.limits
	change(&l)
	w.limits = &l
}

// A HeldDispatcher is a dispatcher whose steps a test takes.
type HeldDispatcher struct{ watches *Set }

// HoldDispatcher waits until everything is handed on, and then holds the
// dispatcher. No write may run meanwhile.
func (w *Set) HoldDispatcher() HeldDispatcher {
	for !w.HandedOn() {
		runtime.Gosched()
	}
	q := &w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = true
	return HeldDispatcher{w}
}

// Take takes what is queued as one delivery. The function that it returns hands it on.
func (h HeldDispatcher) Take() (handOn func()) {
	q := &h.watches.queue
	q.mu.Lock()
	del := q.ready
	q.ready = nil
	q.mu.Unlock()
	h.watches.take(del)
	return func() {
		h.watches.dispatcher.handOn(del)
		h.watches.queue.drop(del)
	}
}

// Release lets the dispatcher go.
func (h HeldDispatcher) Release() { h.watches.done.Go(h.watches.dispatcher.run) }

// Skip has the watch catch up.
func (w *Watch) Skip() { w.subscription.Skip() }

// ForgetPosition is a bug: older states than that of its beginning are judged for
// the watch.
func (w *Watch) ForgetPosition() {
	w.set.mu.Lock()
	defer w.set.mu.Unlock()
	w.permission.position = 0
}

// ForgetReads is a bug: the watch is not judged again when data changes.
func (w *Watch) ForgetReads() {
	w.set.mu.Lock()
	defer w.set.mu.Unlock()
	w.set.restOn(w, nil)
}

// NeverJudge is a bug: the watch is not judged again.
func (w *Watch) NeverJudge() {
	w.set.mu.Lock()
	defer w.set.mu.Unlock()
	w.permission.position = math.MaxUint64
}

// MaxPendingBytes bounds PendingBytes.
var MaxPendingBytes = DefaultLimits().MaxPendingBytes

// PendingBytes returns how much is counted of what was not handed on.
func (w *Set) PendingBytes() int { return int(w.queue.waiting.Load()) }

// DropPending drops what was not taken by the dispatcher.
func (w *Set) DropPending() {
	q := &w.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(q.ready)
	q.ready = nil
}

// BoundWindows sets how many children of a window are moved, and how many are counted
// by the dispatcher. It must be called before anybody watches.
func (w *Set) BoundWindows(moved, counted int) {
	w.changeLimits(func(l *Limits) { l.MaxMoved, l.MaxCounted = moved, counted })
}

// UnknownWindows returns how many places have a window that is still to be measured.
func (w *Set) UnknownWindows() int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	n := 0
	for _, at := range w.places {
		if at.wanted {
			n++
		}
	}
	return n
}

// KeptSnapshots returns how many snapshots are kept for windows.
func (w *Set) KeptSnapshots() int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return len(w.fresh)
}

// PartsLookedAt returns how many parts of a change are looked at to tell it at all of
// some paths.
func PartsLookedAt(c tree.Change, paths []tree.Path) int {
	e := unobserved(c)
	looked := 0
	for _, p := range paths {
		if e.around(p, func(*part) bool { return true }); e.at == nil {
			looked += len(e.parts)
		} else {
			looked += len(e.find(p))
		}
	}
	return looked
}

// CutTwice returns what a change is at a path to the first place that asks for it, and
// to a later one.
func CutTwice(c tree.Change, p tree.Path, form tree.Form) (first, later string) {
	text := func(asked int) string {
		e := unobserved(c)
		e.asked = asked
		fragments, ok := e.cut(p, form, nil)
		keys, whole := touched(p, []*Effect{e})
		lines := fmt.Sprintln(ok, keys, whole)
		for i := range fragments {
			event, _ := fragments[i].encode(form, 1<<20)
			lines += fmt.Sprintln(fragments[i].kind(), string(event))
		}
		return lines
	}
	return text(0), text(100)
}

// HoldHashes has nobody work out the hashes of the watch's place until release is called.
func (w *Watch) HoldHashes() (release func()) {
	turn := w.place.known().turn
	turn <- struct{}{}
	return func() { <-turn }
}

// Reads returns on how many paths the permission of the watch rests.
func (w *Watch) Reads() int {
	w.set.mu.RLock()
	defer w.set.mu.RUnlock()
	return len(w.permission.reads)
}

// Ready reports whether there is something to take.
func (h HeldDispatcher) Ready() bool {
	q := &h.watches.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready != nil
}
