package audience

import "github.com/livetree/livetree/internal/watch"

// This file counts the next events of listens that a client has not taken. They have left the
// topics of package watch, whose memory is bounded, and are held until they were sent.

// freeHeads is how many bytes of them a client may hold in any case.
const freeHeads = 64 << 10

// charge counts an event that is to be the next one of a listen. It reports false if there is no
// memory for it. One event is held in any case, so that a client goes on, and so is the last
// one of a listen, and what tells all that is there: as long as that is the next event, the listen
// is not answered, and without it the answer would say that what the client has is right. It
// takes next to nothing: it is read as it is sent, or the watch counts what it holds. The lock is held.
func (a *Audience) charge(l *Listen, e *watch.Event) bool {
	s := &a.sequence
	need := int64(s.bytes + e.Part())
	if e.Kind < watch.Cancel && !isRenewal(e) && len(s.heads) > 0 && need > freeHeads && need > s.claim.Size() {
		if s.claim == nil {
			c := clientOf(a.opts.Client, a.who)
			c.Keeps = true
			s.claim = a.opts.Memory.Claim(c, true)
		}
		if !s.claim.Grow(need) {
			return false
		}
	}
	l.bytesHeld = e.Part()
	s.bytes += l.bytesHeld
	return true
}

// letGo no longer counts the next event of a listen, which was taken out.
func (s *sequence) letGo(l *Listen) {
	s.bytes -= l.bytesHeld
	l.bytesHeld = 0
	if s.claim != nil && s.bytes <= freeHeads {
		s.claim.Release()
		s.claim = nil
	}
}
