package wire

import (
	"bytes"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
	"github.com/livetree/livetree/internal/wire/message"
)

// receive takes a message of the client. It waits while too much is not answered, and while
// the client has asked too often. The
// text may be changed when it has returned. Its error is message.ErrUnreadable.
func (s *session) receive(text []byte) error {
	m, err := message.Parse(text)
	switch {
	case err != nil:
		return err
	case m.Control == message.Ping:
		s.pong()
	case m.Control == message.NoControl:
		if s.awaitTurn(&m.Request) {
			s.serve(&m.Request)
		}
	}
	return nil
}

// maxPongs bounds the pings that are not answered: the answer to one is as good as that
// to another.
const maxPongs = 16

// pong has a ping answered.
func (s *session) pong() {
	s.mu.Lock()
	s.pongs = min(s.pongs+1, maxPongs)
	s.isAhead.Store(true)
	s.mu.Unlock()
	s.wake()
}

// maxQueryText is the longest query, which is kept with its listen.
const maxQueryText = 64 << 10

// serve has a request done.
func (s *session) serve(q *message.Request) {
	if !s.joined.Load() && !s.front.found(s) {
		return
	}
	a := asked{id: q.ID, action: q.Action, deed: deedOf(q), operation: s.ledger.expect(q)}
	s.effort.note(q.Action, s.front.opts.Now())
	if q.Err == nil && len(q.QueryText) > maxQueryText {
		q.QueryText, q.Err = nil, fault.New(fault.Invalid, "a query of more than %d bytes", maxQueryText)
	}
	if q.Action == message.Listen {
		a.listen = &listen{Tagged: message.Tagged{Tag: q.Tag, QueryText: bytes.Clone(q.QueryText)}}
	}
	if !s.admit() {
		return // the client will ask again, elsewhere
	}
	var ok bool
	if q.ID, ok = s.ask(a); !ok { // the number is its name from here on
		return
	}
	if q.Err == nil {
		q.Err = s.old.await(s, q.Action)
	}
	if q.Err != nil {
		s.audience.Reply(q.ID, nil, q.Err)
		return
	}
	switch q.Action {
	case message.Listen:
		s.listen(q, a.listen)
	case message.Unlisten:
		s.audience.Unlisten(q.ID, q.Path, q.Query)
	case message.Get:
		s.audience.Get(q.ID, q.Path, q.Query)
	case message.Put, message.Merge:
		s.write(q)
	case message.OnDisconnectPut, message.OnDisconnectMerge:
		s.leave(q)
	case message.OnDisconnectCancel:
		s.audience.Write(q.ID, s.leaving.Cancel(q.Path, q.Priority))
	case message.Login:
		s.login(q)
	case message.Logout:
		s.logOut(q.ID)
	case message.Stats:
		for _, name := range q.SDKs() {
			s.front.sdks.count(name)
		}
		s.audience.Reply(q.ID, message.NoData, nil)
	default: // App Check is accepted, and not checked
		s.audience.Reply(q.ID, message.NoData, nil)
	}
}

// listen begins to tell the client of a location.
func (s *session) listen(q *message.Request, l *listen) {
	req := audience.ListenRequest{Path: q.Path, Query: q.Query, Cookie: l, CookieBytes: len(l.QueryText)}
	if q.Hash != nil {
		req.Known = &watch.Known{Hash: *q.Hash, Compound: compound(q)}
	}
	s.audience.Listen(q.ID, req)
}

// compound returns what the client says about ranges of what it has, nil for nothing that
// can be used.
func compound(q *message.Request) *sdkhash.Compound {
	hashes, posts, ok := q.CompoundHash()
	if !ok {
		return nil
	}
	c, ok := sdkhash.NewCompound(hashes, posts)
	if !ok {
		return nil
	}
	return &c
}

// write has data written.
func (s *session) write(q *message.Request) {
	w, claim, err := s.decode(q)
	if err != nil {
		s.audience.Reply(q.ID, nil, err)
		return
	}
	s.charged(claim, 0)
	s.audience.Write(q.ID, engine.Request{Write: w, IfHash: q.Hash})
}

// decode reads the data of a write, within the limits of all writes. What it claims is to
// be released when the write is answered.
func (s *session) decode(q *message.Request) (tree.Write, *budget.Claim, error) {
	if most := s.front.opts.MaxBody; int64(len(q.Data)) > most {
		return tree.Write{}, nil, fault.New(fault.TooLarge,
			"Data to write exceeds the maximum size that can be modified with a single request: %d bytes", most)
	}
	w, claim, err := s.decodeWithin(q)
	if err != nil {
		return tree.Write{}, nil, state.DecodeError(err, q.Action.Merges())
	}
	return w, claim, nil
}
