package engine

import (
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// backlogBytes is how much of the change log is read at a time.
const backlogBytes = 256 << 10

// catchUp continues a watch that missed something: with what the change log has,
// or with all that is there now.
func (w *Watch) catchUp() {
	settled := false
	var err error
	for tries := 0; tries < maxTries && !settled && err == nil; tries++ {
		settled, err = w.tryCatchUp()
	}
	if !settled && err == nil {
		w.database.watches.gate.Lock()
		_, err = w.tryCatchUp()
		w.database.watches.gate.Unlock()
	}
	if err != nil {
		// What was published meanwhile must not be told behind a gap.
		w.subscription.Cut(ending(err))
	}
}

// tryCatchUp is catchUp on the newest snapshot. It reports false if that is too
// old already.
func (w *Watch) tryCatchUp() (settled bool, err error) {
	s := w.database.Snapshot()
	defer s.Close()
	decision, err := s.judgeRead(w.who, w.key.path, w.key.filter())
	if err != nil {
		return false, err
	}
	if w.resumeBy(s, decision.Reads) {
		return true, nil
	}
	if !w.database.watches.settle(w.place, s.position) {
		return false, nil
	}
	w.database.opts.Metrics.Resyncs.Add(1)
	return true, w.renew(s)
}

// resumeBy continues behind w.since with what the change log has up to a
// snapshot. It reports false if it does not have enough: the changes are no longer
// there, or some are too large to be kept; or if they do not tell enough: where a
// priority changed, or a window; or if not all may be told: where the permission
// of the watch, which rests on the reads, may have been another in between.
func (w *Watch) resumeBy(s *Snapshot, reads []tree.Path) bool {
	if w.key.filtered || w.key.priority || w.since > s.position {
		return false
	}
	reaches := true
	err := s.Changes(w.since, func(c tree.Change) bool {
		reaches = !c.Settings && w.follows(c, reads)
		return reaches
	})
	if err != nil || !reaches {
		return false
	}
	w.behind, w.until = w.since, s.position
	w.since = s.position
	return true
}

// follows reports whether the log tells enough of a change.
func (w *Watch) follows(c tree.Change, reads []tree.Path) bool {
	p := w.key.path
	if c.Truncated {
		return !c.At.Contains(p) && !p.Contains(c.At) && !slices.ContainsFunc(reads, overlaps(c.At))
	}
	for _, a := range c.Assignments {
		if (a.Priority || a.Leaf > 0 && w.key.form == tree.Export) && p.Contains(a.Path) || slices.ContainsFunc(reads, overlaps(a.Path)) {
			return false
		}
	}
	return true
}

// overlaps returns a test for paths at, above or below p.
func overlaps(p tree.Path) func(tree.Path) bool {
	return func(q tree.Path) bool { return p.Contains(q) || q.Contains(p) }
}

// readLog fills the backlog with what is next in the change log.
func (w *Watch) readLog() {
	s := w.database.Snapshot()
	defer s.Close()
	bytes, behind := 0, w.behind
	w.backlog = nil
	err := s.Changes(w.behind, func(c tree.Change) bool {
		if c.Position > w.until {
			return false
		}
		w.behind = c.Position
		bytes += w.addLogged(c)
		return bytes < backlogBytes
	})
	if err != nil {
		// It was trimmed meanwhile.
		w.since, w.behind, w.until, w.backlog = behind, 0, 0, nil
		w.catchUp()
	}
}

// addLogged appends the events of a change to the backlog, and returns their size.
func (w *Watch) addLogged(c tree.Change) int {
	fragments, _ := unobserved(c).cut(w.key.path, w.key.form) // follows has seen to the rest
	bytes := 0
	for i := range fragments {
		f := &fragments[i]
		text, _ := f.encode(w.key.form, 1<<30) // what is in the log is small
		e := &Event{Kind: f.kind(), Text: text, Position: c.Position, Last: i == len(fragments)-1}
		w.backlog = append(w.backlog, e)
		bytes += e.bytes()
	}
	return bytes
}
