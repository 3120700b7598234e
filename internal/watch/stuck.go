package watch

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/scan"
)

// retryWait is how long a watch waits that cannot go on for lack of something that all
// share. Each wait is twice as long as the one before, up to longestWait, until something was
// told: what is told then may take long to read.
const (
	retryWait   = 2 * time.Second
	longestWait = time.Minute
)

// A stuck is how a watch waits until it can go on. It is told nothing meanwhile, and then
// what is there.
type stuck struct {
	timer *time.Timer
	due   atomic.Bool
	// owes says that Refresh has given up what there was: without it, what the client is answered next would be wrong.
	owes bool
}

// isBusy reports whether an error is of a time in which too many look for windows.
func isBusy(err error) bool { return errors.Is(err, scan.ErrFull) || errors.Is(err, scan.ErrBusy) }

// Later gives up what was told last, or was to be told next, which could not be sent. In a
// while the watch tells again what is there.
func (w *Watch) Later() {
	if w.finished {
		return
	}
	w.drop()
	w.stuck.end()
	s := &stuck{}
	w.patience = min(max(retryWait, 2*w.patience), longestWait)
	s.timer = time.AfterFunc(w.patience, func() {
		s.due.Store(true)
		w.wake()
	})
	w.stuck = s
}

// Refresh gives up what there was to tell, if that is all that is there: it holds a view. What is there then is told
// when the event is taken. The front says whether it has such an event of the watch, and gives that up itself. If that takes
// a scan for which there is no room then, the watch ends.
func (w *Watch) Refresh(given bool) {
	given = given || w.opening != nil && w.opening.Content != nil
	if w.finished || w.stuck != nil || !given {
		return
	}
	w.drop()
	w.stuck = &stuck{timer: time.NewTimer(0), owes: true}
	w.stuck.end()
	w.stuck.due.Store(true)
}

// goOn has a watch that was stuck go on if it is time, or over: that it waits must not keep a client from being
// told that it may not watch any more. It reports false if not.
func (w *Watch) goOn() bool {
	if !w.stuck.due.Load() && !w.subscription.IsEnding() {
		return false
	}
	w.subscription.Skip() // what was published so far is in what is told now
	if _, state := w.subscription.Next(); state == hub.Finished {
		w.stuck.end()
		w.stuck = nil // which is told next, again
		return true
	}
	w.catchUp()
	return w.stuck == nil
}

// end stops the timer; nil is allowed.
func (s *stuck) end() {
	if s != nil {
		s.timer.Stop()
	}
}
