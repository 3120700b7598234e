package watch

import (
	"slices"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// Identify makes somebody else the one whom the watch is for. If they may not watch, it
// ends, and false is returned. Otherwise it goes on, and is told nothing. Only if what
// their permission rests on is among the changes that are being handed on just now, nobody
// knows whether they might see all of those: then what is there is told again.
//
// As Next, it belongs to the goroutine that takes events. The expiry of the identity is
// left to who calls it.
func (w *Watch) Identify(who auth.Identity) (goesOn bool) {
	handedOn := w.set.order.Load().Told() // all up to there was for the one before
	before := w.who.Swap(&who)
	revoked := w.suspension.of(before)
	suspended := revoked != nil
	alike := before.Admin && who.Admin || before.Admin == who.Admin && tree.Equal(before.Auth, who.Auth)
	if w.finished {
		return false
	}
	// Who is alike by a credential that was revoked meanwhile must not stay: the watch was judged for the one before.
	if alike && !suspended && w.set.source.Holds(who, w.set.database.Published()) {
		return true
	}
	if suspended { // what came after it was for nobody
		handedOn = revoked.position
	}
	again := false
	err := w.persist(func(p pass) (settled bool, err error) {
		v := w.set.database.View()
		defer v.Close()
		v.Until(w.done)
		allowed, _, err := w.judge(v, true, p)
		if err != nil || !again && w.passOn(v, allowed, handedOn, suspended) {
			return err == nil, err
		}
		again = true // what was to be told next is given up
		w.drop()
		return w.beginAgain(v, allowed, nil, p.gated)
	})
	switch {
	case isBusy(err):
		w.Later()
		return true
	case err != nil && !w.stays(err):
		w.drop()
		w.subscription.Cut(ending(err))
	}
	return err == nil
}

// passOn sets the permission of a watch that is for somebody else now. It reports false
// if they might not have seen all that a view shows and that was not handed on before
// they came. Of a watch that was suspended, what was handed on since was judged for nobody else
// either.
func (w *Watch) passOn(v *state.View, allowed permission, handedOn uint64, suspended bool) bool {
	return !suspended && w.set.passOn(w, allowed, false) || w.stood(v, allowed, handedOn) && w.set.passOn(w, allowed, true)
}

// stood reports whether a permission, which is that of a view, was the same in all states
// after a position. It is if nothing has changed that it rests on.
func (w *Watch) stood(v *state.View, allowed permission, behind uint64) bool {
	bound := &w.set.limits.Resume
	switch {
	case behind >= v.Position:
		return true
	case allowed.timed, v.Position-behind > bound.Rows, v.Exists() != nil:
		return false
	}
	stood := true
	err := v.Tree().ChangesAt(behind, v.Position, allowed.reads, bound.Bytes, func(c tree.Change) bool {
		stood = !c.Settings && !touchesAny(c, allowed.reads)
		return stood
	})
	return err == nil && stood
}

// touchesAny reports whether a change is at, above or below one of some paths.
func touchesAny(c tree.Change, paths []tree.Path) bool {
	if c.Truncated {
		return slices.ContainsFunc(paths, c.At.Overlaps)
	}
	return slices.ContainsFunc(c.Assignments, func(a tree.Assignment) bool { return slices.ContainsFunc(paths, a.Path.Overlaps) })
}

// passOn sets the permission of a watch that is for somebody else now. It reports false
// if changes were taken since, or wait to be handed on, unless it is sure that those may
// be seen.
func (w *Set) passOn(watch *Watch, allowed permission, sure bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watch.unjudged || allowed.position < w.taken || !sure && w.queue.isBusy() {
		return false
	}
	if _, ok := w.all[watch]; ok {
		w.allow(watch, allowed)
	}
	return true
}

// Position returns how far the watch was told when it began.
func (w *Watch) Position() uint64 { return w.since }
