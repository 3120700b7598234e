package watch

import (
	"errors"
	"sync/atomic"

	"github.com/livetree/livetree/internal/auth"
)

// This file is about watches that outlive their credential. A client of an SDK has many watches
// and one login. If the secret behind that is removed, the client is nobody, and may still
// watch what everybody may read. So such a watch (Request.Lasts) does not end. It tells
// Revoked once, and then nothing until Identify has judged it for somebody else.

// A revocation says that the credential of an identity was taken away. It concerns a watch
// as long as that is for the same identity: Identify makes an older one void.
type revocation struct {
	of       *auth.Identity
	position uint64 // of the state that shows it
}

// A suspension is how a watch tells nothing because its credential was taken away, if it lasts.
type suspension struct {
	lasts bool
	told  *revocation // of who calls Next
	newer atomic.Pointer[revocation]
}

// of returns why a watch of an identity tells nothing; nil if it does.
func (s *suspension) of(who *auth.Identity) *revocation {
	if r := s.newer.Load(); r != nil && r.of == who {
		return r
	}
	return nil
}

// tell returns the event that says that a watch is suspended; false if that was told.
func (s *suspension) tell(r *revocation) (*Event, bool) {
	if s.told == r {
		return nil, false
	}
	s.told = r
	return &Event{Kind: Revoked}, true
}

// suspend has a watch tell nothing more, because the credential of an identity was taken away. It
// reports false if the watch is for another identity by now.
func suspend(w *Watch, who *auth.Identity, position uint64) bool {
	w.suspension.newer.Store(&revocation{who, position})
	if w.who.Load() != who {
		return false
	}
	w.wake()
	return true
}

// stays reports whether an error only suspends the watch. The watch has lost its place among the
// events then: it is left unjudged, so that it begins again with whom it is for next.
func (w *Watch) stays(err error) bool {
	if !w.suspension.lasts || !errors.Is(err, errRevoked) {
		return false
	}
	w.drop()
	w.set.mu.Lock()
	w.unjudged = true
	w.set.mu.Unlock()
	w.subscription.Skip()
	suspend(w, w.who.Load(), w.since)
	return true
}
