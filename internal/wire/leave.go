package wire

import (
	"context"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/wire/message"
)

// This file is about what a client leaves to be written when it goes: onDisconnect.

// departTime is how long what a client has left may take to be written before it is postponed.
const departTime = 30 * time.Second

// leave has data written when the client goes.
func (s *session) leave(q *message.Request) {
	w, claim, err := s.decode(q)
	if err != nil {
		s.audience.Reply(q.ID, nil, err)
		return
	}
	left := claim.Size()
	if err := s.keep(left); err != nil {
		claim.Release()
		s.audience.Reply(q.ID, nil, err)
		return
	}
	s.charged(claim, left)
	s.leaves = true
	s.audience.Write(q.ID, s.leaving.Later(w))
}

// inherit makes somebody else the one for whom the rules judge what was left. A login that
// ends by its time does not: if the client is gone already, and that was not noticed
// yet, what it has left is judged by who it was when it was last heard. Nor does one whose
// credential is taken away: the database judges for nobody then.
func (s *session) inherit(who auth.Identity) error {
	req := s.leaving.Identify()
	req.Who, req.Here = who, true
	_, err := s.db.Write(s.ctx, req)
	return err
}

// depart writes what the client has left, now or as soon as that is possible. If another node is the home of the database by
// now, that one does.
func (s *session) depart() {
	if s.stay.IsOver() {
		return
	}
	ctx, cancel := context.WithTimeout(s.front.opts.Patience, departTime)
	defer cancel()
	ctx, stop := s.stay.Within(ctx)
	defer stop()
	made, err := s.leaving.Run(ctx)
	switch {
	case s.stay.IsOver():
	case err == nil || fault.KindOf(err) == fault.NotFound: // nothing is left in a database that is gone
	case engine.IsPostponed(err):
		s.front.opts.Postponed.Add(s.db, s.leaving.Connection())
	default:
		s.front.opts.Logger.Warn("not all that a client has left could be written: the rest is at the next start",
			"session", s.logID(), "kept", made.Kept, "error", err)
	}
}
