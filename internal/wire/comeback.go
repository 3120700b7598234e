package wire

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
)

// This file is about clients that come back. The old session ends first, and with it what the client
// has left is written. If that is not possible, because the disk is full for example, the client is
// let in, and may read. But it writes nothing before its old session has: otherwise the end of
// that could undo what the new one does. Decision 9 says why.

const (
	// endWait is how long a client that comes back waits for the end of its old session.
	endWait = 5 * time.Second
	// oldWait is how long the first write of a client that came back waits for what it has left
	// before. Then it is refused, as are others for againWait.
	oldWait   = 10 * time.Second
	againWait = time.Second
)

// An old is the session that a client had before.
type old struct {
	connection string        // under which it has left something, perhaps
	over       chan struct{} // closed when it has ended
	again      time.Time     // when it is looked at again
	err        error         // why it could not write what was left
}

// endOld ends the session that a client had before, and returns when it is over, or after a
// while. It returns nil if there was none.
func (f *Front) endOld(database, id string) *old {
	if len(id) != idLength {
		return nil
	}
	o := &old{connection: connectionOf(id)}
	was := f.find(database, id)
	if was == nil {
		return o // it is over, or of a former process
	}
	o.over = was.over
	was.close(frame.CodeNormal, outbox.ByClient, "the client came back")
	timer := time.NewTimer(endWait)
	defer timer.Stop()
	select {
	case <-was.over:
	case <-timer.C:
		f.opts.Logger.Warn("a session does not end though its client came back")
	}
	return o
}

// precede has a session come after the old one of its client; nil for none. It fails if what the
// old one has left cannot be kept in mind: the client stays outside, and names the old one again.
func (o *old) precede(s *session) error {
	if o == nil || s.db == nil {
		return nil
	}
	s.old = o
	if o.isOver() { // one that is not may still leave more
		if err := s.front.opts.Postponed.Recall(s.db, o.connection); err != nil {
			return err
		}
	}
	s.front.opts.Postponed.Follow(s.db, o.connection, connectionOf(s.id))
	return nil
}

// isOver reports whether the session has ended.
func (o *old) isOver() bool {
	if o.over == nil {
		return true
	}
	select {
	case <-o.over:
		return true
	default:
		return false
	}
}

// connectionOf returns the name under which the store has what a session leaves. It is the same in
// a later process, and does not tell the id, which is a secret.
func connectionOf(id string) string {
	const bytes = 15 // which are 20 in base64
	sum := sha256.Sum256([]byte("connection of " + id))
	return base64.RawURLEncoding.EncodeToString(sum[:bytes])
}

// await returns when the old session has written all that was left, before a new one that it
// precedes does something. If that takes too long, or is not possible now, the error is what
// the client is told. It belongs to receive. With nil there is nothing to wait for.
func (o *old) await(s *session, a message.Action) error {
	if o == nil || !a.Writes() {
		return nil
	}
	if s.front.opts.Now().Before(o.again) {
		return o.err
	}
	ctx, cancel := context.WithTimeout(s.ctx, oldWait)
	defer cancel()
	if o.err = o.end(ctx, s); o.err == nil {
		s.old = nil
		return nil
	}
	o.again = s.front.opts.Now().Add(againWait)
	return o.err
}

// errOld refuses a write that may be undone by what its client has left before.
var errOld = fault.New(fault.Unavailable, "what this client has left to be written before is not written yet, try again")

// end has the old session of a client end, and what was left written.
func (o *old) end(ctx context.Context, s *session) error {
	if o.over != nil {
		select {
		case <-o.over:
		case <-ctx.Done():
			return errOld
		}
	}
	err := s.front.opts.Postponed.RunNow(ctx, s.db, o.connection)
	if err != nil && fault.KindOf(err) != fault.ReadOnly {
		return errOld // the write of this client is known not to be made
	}
	return err
}
