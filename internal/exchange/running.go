package exchange

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Running counts the requests that are being answered, so that nothing is closed
// which one of them uses.
type Running struct {
	count atomic.Int64 // with those that are being turned away
	shut  atomic.Bool
	left  chan struct{} // has a value when the last one has left after Shut
}

// NewRunning returns a count of 0.
func NewRunning() *Running { return &Running{left: make(chan struct{}, 1)} }

// Around returns a handler whose requests count. Nothing that belongs to a request
// may be done outside it.
func (r *Running) Around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.count.Add(1)
		defer r.leave()
		if r.shut.Load() {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, request)
	})
}

func (r *Running) leave() {
	if r.count.Add(-1) == 0 && r.shut.Load() {
		select {
		case r.left <- struct{}{}:
		default: // it was said already
		}
	}
}

// Count returns how many there are.
func (r *Running) Count() int64 { return r.count.Load() }

// Shut lets no request begin from now on: its connection is cut.
//
// A request that begins counts first and looks at shut then; Shut and Wait do it
// the other way round. So one of the two always sees the other.
func (r *Running) Shut() { r.shut.Store(true) }

// Wait waits until no request is left, after Shut. It returns how many still are
// when the time is up.
func (r *Running) Wait(most time.Duration) int64 {
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	for r.count.Load() > 0 {
		select {
		case <-r.left:
		case <-timeout.C:
			return r.count.Load()
		}
	}
	return 0
}
