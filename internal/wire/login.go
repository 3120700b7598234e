package wire

import (
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
)

// login makes somebody else the client. A login that is refused changes nothing.
func (s *session) login(q *message.Request) {
	who, err := s.identify(q.Credential)
	if err == nil {
		who, err = override(who, q)
	}
	if err == nil {
		err = s.become(who)
	}
	if err == nil {
		s.pace.loggedIn(q.Credential)
	}
	s.audience.Reply(q.ID, loggedIn(who), err)
}

// become makes somebody else the client: for requests from now on, for its listens, and
// for what it has left to be written.
func (s *session) become(who auth.Identity) error {
	if s.leaves {
		s.audience.Settle() // what was left before was so by another
		if err := s.inherit(who); err != nil {
			return err
		}
	}
	s.audience.Identify(who)
	return nil
}

// logOut makes the client nobody, in any case. If what it has left cannot be nobody's, the
// connection ends: the client comes back as who it is then.
func (s *session) logOut(id int64) {
	s.pace.loggedOut()
	err := s.become(auth.Identity{})
	if err != nil {
		s.audience.Identify(auth.Identity{})
		s.close(frame.CodeInternal, outbox.Behind, "try again")
	}
	s.audience.Reply(id, message.LoggedOut, err)
}

// loggedIn is the note of an answer to a login.
type loggedIn auth.Identity

// identify returns who brings a credential.
func (s *session) identify(credential string) (auth.Identity, error) {
	switch {
	case s.allowsOwner && credential == dev.Owner:
		return dev.OwnerIdentity(), nil
	case s.allowsOwner && auth.IsUnsigned(credential):
		return auth.Unsigned(credential)
	}
	return s.db.Identify(s.ctx, credential)
}

// override lets an administrator ask as somebody else: as nobody, if the variable is null. To others
// that says nothing.
func override(who auth.Identity, q *message.Request) (auth.Identity, error) {
	switch {
	case !q.AsNobody && (q.Variable == nil || !who.Admin && string(q.Variable) == "null"):
		return who, nil
	case !who.Admin:
		return auth.Identity{}, fault.New(fault.Denied, "authvar and noauth need an administrator's credential")
	case q.AsNobody:
		return who.As(tree.Node{}), nil
	}
	variable, err := tree.DecodeClaims(q.Variable)
	if err != nil {
		return auth.Identity{}, fault.Wrap(fault.Invalid, err, "authvar must be a JSON value: %v", err)
	}
	return who.As(variable), nil
}
