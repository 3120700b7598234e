package watch

import (
	"errors"
	"slices"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// A permission is what a watch was last allowed by.
type permission struct {
	position uint64          // of the state that the watch was judged on
	settings *state.Settings // of that state
	reads    []tree.Path     // what the rules read of it
	timed    bool            // the rules asked for the time
	who      *auth.Identity  // whom it was given to
}

// judge judges whether the watch may go on in the state that a view shows. Under
// settings that may be new to the watch, its credential is judged too.
func (w *Watch) judge(v *state.View, settings bool, p pass) (allowed permission, trace string, err error) {
	who := w.who.Load()
	if settings && !w.set.source.Holds(*who, v.Published) {
		return permission{}, "", errRevoked
	}
	decision, err := p.judge(w, v)
	return permissionOf(v, who, decision), decision.Trace, err
}

// permissionOf returns what a decision on a view that allows is to a watch of somebody.
func permissionOf(v *state.View, who *auth.Identity, d rules.Decision) permission {
	return permission{position: v.Position, settings: v.Settings, reads: d.Reads, timed: d.UsedNow, who: who}
}

var errRevoked = fault.New(fault.Unauthenticated, "credential is no longer valid")

// ending returns the last event of a watch that cannot go on. It is cancelled if the
// rules do not allow it any more, or lack its index. What only cannot be read now,
// because an index is being built perhaps, its client may ask for again.
func ending(err error) *Event {
	switch fault.KindOf(err) {
	case fault.Denied, fault.Invalid:
		return &Event{Kind: Cancel}
	case fault.Unauthenticated:
		return &Event{Kind: Revoked}
	}
	return &Event{Kind: End}
}

// allow sets the permission of a watch. The lock is held, as it is for restOn.
func (w *Set) allow(watch *Watch, allowed permission) {
	w.restOn(watch, allowed.reads)
	watch.permission = allowed
	watch.timed.Store(allowed.timed)
}

// restOn changes what the permission of a watch rests on.
func (w *Set) restOn(watch *Watch, reads []tree.Path) {
	for _, p := range watch.permission.reads {
		w.rests.Remove(p, watch)
	}
	for _, p := range reads {
		w.rests.Add(p, watch)
	}
	watch.permission.reads = reads
}

// judge judges again the watches whose permission may have changed with a delivery.
func (d *dispatcher) judge(del *delivery) {
	d.judging = 0
	defer d.forgetVerdicts()
	if del.lost || del.turns > 1 || d.settings != del.published.Settings {
		d.settings = del.published.Settings
		for _, watch := range d.set.allowedOtherwise(del) {
			d.rejudge(watch, del, true)
		}
	}
	for watch := range d.set.resting(del) {
		d.rejudge(watch, del, false)
	}
}

// concerns reports whether a delivery may change a permission: not if that was judged
// on the delivery's state or a newer one.
func (del *delivery) concerns(p permission) bool { return del.published.Position > p.position }

// allowedOtherwise returns the watches that were allowed by other settings than
// a delivery's, or than those in between, but for those that are to judge themselves.
func (w *Set) allowedOtherwise(del *delivery) []*Watch {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var list []*Watch
	for watch := range w.all {
		if p := watch.permission; !watch.unjudged && del.concerns(p) && (del.lost || del.turns > 1 || !p.settings.JudgesLike(del.published.Settings)) {
			list = append(list, watch)
		}
	}
	return list
}

// resting returns the watches whose permission rests on what a delivery changed, but for
// those that are to judge themselves.
func (w *Set) resting(del *delivery) map[*Watch]struct{} {
	w.mu.RLock()
	defer w.mu.RUnlock()
	found := make(map[*Watch]struct{})
	add := func(watch *Watch) {
		if !watch.unjudged && del.concerns(watch.permission) {
			found[watch] = struct{}{}
		}
	}
	for _, e := range del.effects {
		for i := range e.parts {
			if !e.parts[i].same {
				w.rests.Concerned(e.parts[i].Path, add)
			}
		}
	}
	return found
}

// rejudge ends a watch that may not go on after a delivery, or leaves that to the watch.
func (d *dispatcher) rejudge(watch *Watch, del *delivery, settings bool) {
	who := watch.who.Load()
	if watch.suspension.of(who) != nil {
		return // Identify judges it, on this state or a newer one
	}
	v := d.set.source.View(del.after, del.published)
	var decision rules.Decision
	err := errRevoked
	if !settings || d.set.source.Holds(*who, v.Published) {
		decision, err = d.judgeShared(watch, who, v)
	}
	if errors.Is(err, state.ErrHeavy) {
		d.set.leaveUnjudged(watch, del)
		return
	}
	if k := watch.key; err == nil && settings && k.filtered && !k.priority && !k.scan {
		_, err = v.Settings.IndexFor(k.query.Query(), k.path)
	}
	after := permissionOf(v, who, decision)
	before, ok := d.set.decided(watch, del, after, err)
	if !ok {
		return
	}
	lasts := watch.suspension.lasts && errors.Is(err, errRevoked)
	if err != nil && !lasts {
		watch.subscription.Finish(ending(err))
		return
	}
	if len(del.effects) != 1 && (lasts || !d.allowedBetween(del, before, after)) {
		watch.subscription.Skip()
	}
	if lasts && !suspend(watch, who, del.published.Position) {
		d.rejudge(watch, del, settings) // it is for another identity by now
	}
}

// maxBetween is how many paths are compared with others to find out that a watch was allowed all of a delivery.
const maxBetween = 256

// allowedBetween reports whether a watch that one permission allowed before a delivery, and another one allows after it, was
// allowed all states in between: it was for the same identity, the settings turned once at most, and nothing changed that the rules
// read before or after that, nor did they ask for the time. It reports false if that takes too long to find out, too. A
// watch that was perhaps not allowed something must not be told it.
func (d *dispatcher) allowedBetween(del *delivery, before, after permission) bool {
	if del.lost || del.turns > 1 || before.who != after.who || before.timed || after.timed {
		return false
	}
	reads := len(before.reads) + len(after.reads)
	if reads == 0 {
		return true
	}
	comparisons := 0
	for _, e := range del.effects {
		comparisons += (1 + len(e.parts)) * reads
		if comparisons > maxBetween || d.judging+comparisons > d.set.limits.Rejudge.All {
			return false
		}
		if e.touches(before.reads) || e.touches(after.reads) {
			return false
		}
	}
	d.judging += comparisons
	return true
}

// decided sets the permission that a delivery gave a watch, unless it gave none, and returns the one that it had before. It
// reports false if the watch has a newer one, or is gone: then the delivery does not
// concern it.
func (w *Set) decided(watch *Watch, del *delivery, allowed permission, err error) (before permission, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before = watch.permission
	if _, ok := w.all[watch]; !ok || !del.concerns(before) {
		return before, false
	}
	if err == nil {
		w.allow(watch, allowed)
	}
	return before, true
}

// Recheck judges again a watch whose permission rests on the time, and reports whether it
// goes on. If not, what was to be told next is not told. It is called now and then.
func (w *Watch) Recheck() (goesOn bool) {
	if !w.timed.Load() || w.finished || w.suspension.of(w.who.Load()) != nil {
		return true
	}
	err := w.persist(w.tryRecheck)
	if err != nil {
		w.drop()
		w.subscription.Cut(ending(err))
	}
	return err == nil
}

// tryRecheck is Recheck on the newest view. It reports false if that is too old
// already.
func (w *Watch) tryRecheck(p pass) (checked bool, err error) {
	v := w.set.database.View()
	defer v.Close()
	v.Until(w.done)
	allowed, _, err := w.judge(v, false, p)
	if err != nil {
		return false, err
	}
	return w.set.restAlsoOn(w, allowed), nil
}

// restAlsoOn adds what a watch rests on because time has passed. What it rested on before
// counts only for changes that were not handed on yet: rules may read something else each minute. It
// reports false if changes that the permission does not know of were taken already.
func (w *Set) restAlsoOn(watch *Watch, allowed permission) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if allowed.position < w.taken {
		return false
	}
	if _, ok := w.all[watch]; !ok {
		return true
	}
	before := watch.permission.reads
	if slices.Equal(before, allowed.reads) {
		return true
	}
	reads := slices.Clone(allowed.reads)
	if w.queue.isBusy() {
		for _, p := range before {
			if !slices.Contains(reads, p) {
				reads = append(reads, p)
			}
		}
	}
	w.restOn(watch, reads)
	return true
}
