package watch

import (
	"errors"
	"math"
	"slices"

	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// catchUp continues a watch that missed something: with what the change log has,
// or with all that is there now.
func (w *Watch) catchUp() {
	// One that was left unjudged must settle, by which the dispatcher learns what its
	// permission rests on now.
	byLog := !w.set.isUnjudged(w) && w.stuck == nil // which has lost what it was told
	owes := w.stuck != nil && w.stuck.owes
	w.stuck = nil
	var m *measure
	defer func() {
		if m != nil {
			m.drop()
			w.set.unclaim(w.place)
		}
	}()
	err := w.persist(func(p pass) (settled bool, err error) {
		v := w.set.database.View()
		defer v.Close()
		v.Until(w.done)
		allowed, _, err := w.judge(v, true, p)
		if err != nil {
			return false, err
		}
		if byLog {
			// What the log does not tell enough of, it does not later either.
			byLog = false
			if settled, err = w.resumeBy(v, allowed); settled || err != nil {
				return settled, err
			}
		}
		if m == nil && w.set.claim(w.place) { // not before it is judged, which may take long
			m = &measure{}
		}
		return w.beginAgain(v, allowed, m, p.gated)
	})
	switch {
	case isBusy(err) && !owes:
		w.Later()
	case err != nil && !w.stays(err):
		// What was published meanwhile must not be told behind a gap.
		w.subscription.Cut(ending(err))
	}
}

// beginAgain has the watch tell what a view shows, under a new permission. It reports
// false if the view is too old already. Unless the measure is nil, it offers the window
// of the place.
func (w *Watch) beginAgain(v *state.View, allowed permission, m *measure, gated bool) (settled bool, err error) {
	if fresh, err := w.find(v, gated); !fresh {
		return false, err
	}
	if m != nil {
		err := m.move(w, v, gated)
		if errors.Is(err, store.ErrMany) {
			m, err = nil, nil // it is left to another time
		}
		if err != nil {
			return false, err
		}
	}
	if !w.set.settle(w, allowed, m) {
		return false, nil
	}
	w.set.source.Metrics.Resyncs.Add(1)
	return true, w.renew(v)
}

// resumeBy continues after w.since with what the change log has up to a view. It
// reports false if that is not enough: the changes are no longer there, or too many,
// or some are too large to be kept; or if they do not tell enough: where a priority
// changed, or a window; or if not all may be told: where the permission, which is
// that of the view, may have been another in between. It fails only if nobody
// waits for it any more.
//
// The position is the client's word. That nothing is told that the client could not
// have read at its position is argued in docs/reliability.md.
func (w *Watch) resumeBy(v *state.View, allowed permission) (bool, error) {
	bound := &w.set.limits.Resume
	if w.key.filtered || w.key.priority || w.since > v.Position || v.Position-w.since > bound.Rows {
		return false, nil
	}
	if err := v.Exists(); err != nil {
		return false, err
	}
	if allowed.timed && w.since < v.Position {
		return false, nil // what time it was in between decided, and is not known
	}
	reads := allowed.reads
	v.Until(w.done)
	found := backlog{watch: w, behind: w.since, room: bound.Kept}
	told, reaches := 0, true
	paths := append([]tree.Path{w.key.path}, reads...)
	err := v.Tree().ChangesAt(w.since, v.Position, paths, bound.Bytes, func(c tree.Change) bool {
		if bound.looking != nil {
			bound.looking()
		}
		told++
		reaches = told <= bound.Told && !c.Settings && w.follows(c, reads)
		if reaches {
			found.add(c)
		}
		return reaches
	})
	if errors.Is(err, store.ErrUnwanted) {
		return false, state.Classify(err)
	}
	if err != nil || !reaches {
		return false, nil
	}
	if !w.take(found, v.Position) {
		return false, nil // what is there is printed as it is sent
	}
	w.since = v.Position
	return true, nil
}

// follows reports whether the log tells enough of a change.
func (w *Watch) follows(c tree.Change, reads []tree.Path) bool {
	p := w.key.path
	if c.Truncated {
		return !c.At.Overlaps(p) && !slices.ContainsFunc(reads, c.At.Overlaps)
	}
	for _, a := range c.Assignments {
		if (a.Priority || a.Leaf > 0 && w.key.form == tree.Export) && p.Contains(a.Path) || slices.ContainsFunc(reads, a.Path.Overlaps) {
			return false
		}
	}
	return true
}

// readLog fills the backlog with what is next in the change log. What it has to tell
// resumeBy has seen to.
func (w *Watch) readLog() {
	v := w.set.database.View()
	defer v.Close()
	v.Until(w.done)
	found := backlog{watch: w, behind: w.behind, room: w.set.limits.Resume.Kept}
	err := v.Exists()
	if err == nil {
		err = v.Tree().ChangesAt(w.behind, w.until, []tree.Path{w.key.path}, math.MaxInt64, func(c tree.Change) bool {
			found.add(c)
			return !found.isFull()
		})
	}
	if err != nil || !w.take(found, w.until) {
		// It was trimmed meanwhile, or the database was dropped, or there is no memory.
		w.since, w.behind, w.until = w.behind, 0, 0
		w.catchUp()
	}
}

// take makes what was found in the change log the next events. All up to a
// position was looked for. It reports false if there is no memory for them.
func (w *Watch) take(found backlog, until uint64) bool {
	if !found.hold() {
		return false
	}
	w.backlog, w.behind, w.until = found.events, until, until
	if found.isFull() {
		w.behind = found.behind
	}
	return true
}

// A backlog is what a watch is told next out of the change log.
type backlog struct {
	watch  *Watch
	events []*Event
	behind uint64 // the position of the last change in it
	room   int    // bytes that it may still take
	bytes  int    // that it takes
}

func (b *backlog) isFull() bool { return b.room <= 0 }

// hold claims the memory of the events; false if there is not enough.
func (b *backlog) hold() bool {
	w := b.watch
	w.letGo()
	if b.bytes == 0 {
		return true
	}
	c := w.client
	c.Keeps = true // until the client takes them
	claim := w.memory.Claim(c, true)
	if !claim.Grow(int64(b.bytes)) {
		return false
	}
	w.held = claim
	return true
}

// add appends the events of a change, unless it is full.
func (b *backlog) add(c tree.Change) {
	if b.isFull() {
		return
	}
	b.behind = c.Position
	form := b.watch.key.form
	fragments, _ := unobserved(c).cutFor(b.watch.key, nil) // follows has seen to the rest
	for i := range fragments {
		f := &fragments[i]
		value, _ := f.encode(form, 1<<30) // what is in the log is small
		e := &Event{Kind: f.kind(), Path: f.path, Value: value, Position: c.Position, Last: i == len(fragments)-1}
		b.events = append(b.events, e)
		b.room -= e.bytes()
		b.bytes += e.bytes()
	}
}
