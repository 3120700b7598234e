package watch

import (
	"errors"

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

// revocation returns why the watch tells nothing; nil if it does.
func (w *Watch) revocation() *revocation {
	if r := w.revoked.Load(); r != nil && r.of == w.who.Load() {
		return r
	}
	return nil
}

// suspend has the watch tell nothing more, because the credential of an identity was taken away.
// It reports false if the watch is for another identity by now.
func (w *Watch) suspend(who *auth.Identity, position uint64) bool {
	w.revoked.Store(&revocation{who, position})
	if w.who.Load() != who {
		return false
	}
	w.wake()
	return true
}

// stays reports whether an error only suspends the watch. The watch has lost its place among the
// events then: it is left unjudged, so that it begins again with whom it is for next.
func (w *Watch) stays(err error) bool {
	if !w.lasts || !errors.Is(err, errRevoked) {
		return false
	}
	w.drop()
	w.set.mu.Lock()
	w.unjudged = true
	w.set.mu.Unlock()
	w.subscription.Skip()
	w.suspend(w.who.Load(), w.since)
	return true
}

// tellRevoked returns the event that says that the watch is suspended; false if that was told.
func (w *Watch) tellRevoked(r *revocation) (*Event, bool) {
	if w.toldRevoked == r {
		return nil, false
	}
	w.toldRevoked = r
	return &Event{Kind: Revoked}, true
}
