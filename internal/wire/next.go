package wire

import (
	"errors"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/watch"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
)

// A saying is one message to the client, or the end of all. It is one of these forms.
type saying struct {
	// text is the whole message, if it is for this client alone.
	text []byte
	// event is a push to all that listen to a place; listen says to which.
	event  *watch.Event
	listen *audience.Listen
	// content is printed between head and tail. It must be closed. If it is that of an
	// event, so is listen.
	content    watch.Content
	head, tail []byte
	id         int64  // of the request that it is the answer to, if there is no listen
	answers    *asked // that request, if it is over with this
	// ending, if not nil, is why nothing more is said.
	ending *ending
}

// An ending is how a connection ends, perhaps after a last message.
type ending struct {
	code   int
	reason outbox.Reason
	text   string
	last   []byte
}

// cookie returns what the session keeps of a listen.
func cookie(l *audience.Listen) *listen { return l.Cookie.(*listen) }

// next returns what the client is told next; false if there is nothing now.
func (s *session) next() (saying, bool) {
	if say, ok := s.ready(); ok {
		return say, true
	}
	for s.joined.Load() {
		item, ok := s.audience.Next()
		switch {
		case !ok:
			return saying{}, false
		case item.Logout != nil:
			return saying{text: message.AppendRevoked(nil, item.Logout)}, true
		case item.Answer != nil:
			return s.afterTrace(item.Answer.Trace, s.reply(item.Answer)), true
		case item.Event != nil:
			return s.push(item.Listen, item.Event), true
		}
	}
	return saying{}, false
}

// ready returns what the client is told before all that the audience has; false if there is
// nothing.
func (s *session) ready() (saying, bool) {
	if !s.isAhead.Load() {
		return saying{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if say := s.queued; say != nil {
		s.queued = nil
		return *say, true
	}
	if s.pongs > 0 {
		s.pongs--
		return saying{text: message.AppendPong(nil)}, true
	}
	s.isAhead.Store(false)
	return saying{}, false
}

// push returns what an event is to the client.
func (s *session) push(l *audience.Listen, e *watch.Event) saying {
	switch {
	case e.Kind == watch.Cancel:
		s.audience.Over(l)
		return saying{text: message.AppendCancel(nil, l.Path, cookie(l).Tagged)}
	case e.Kind >= watch.Revoked:
		s.audience.Over(l)
		return saying{ending: s.ended()}
	case e.Kind == watch.Ranges:
		text := message.AppendPushHead(nil, message.MergeRanges, l.Path)
		return saying{text: message.AppendPushTail(appendMerges(text, e.Merges), cookie(l).Tagged)}
	case e.Content != nil:
		return saying{
			listen: l, content: e.Content,
			head: message.AppendPushHead(nil, message.Replace, l.Path),
			tail: message.AppendPushTail(nil, cookie(l).Tagged),
		}
	}
	return saying{event: e, listen: l}
}

// appendMerges appends the ranges that a client lacks.
func appendMerges(dst []byte, merges []sdkhash.Merge) []byte {
	dst = append(dst, '[')
	for i, m := range merges {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = message.AppendRange(dst, m)
	}
	return append(dst, ']')
}

// ended returns how the connection ends when the database tells nothing more.
func (s *session) ended() *ending {
	if fault.KindOf(s.db.Standing()) == fault.NotFound {
		return dropped()
	}
	return &ending{code: frame.CodeInternal, reason: outbox.Behind, text: "try again"}
}

// dropped returns how the connection ends when the database is gone: for good.
func dropped() *ending {
	const text = "the database does not exist any more"
	return &ending{code: frame.CodeNormal, reason: outbox.Cancelled, text: text, last: message.AppendShutdown(nil, text)}
}

// reply returns what an answer is to the client.
func (s *session) reply(a *audience.Answer) saying {
	was := s.answered(a.ID)
	a.ID = was.id
	err := a.Err
	if l := was.listen; l != nil {
		l.answered = true
		if err == nil {
			err = l.failed
		}
	}
	if err != nil {
		s.ledger.finish(&was, 0, err)
		return s.refuse(a, err)
	}
	if !s.met && grants(was.action) {
		s.met = true
		s.way().meet()
	}
	if a.Content == nil { // otherwise it is finished when that is printed
		s.ledger.finish(&was, was.sent(), nil)
	}
	switch note := a.Note.(type) {
	case string:
		return saying{text: message.AppendOK(nil, a.ID, note)}
	case loggedIn:
		return saying{text: message.AppendLogin(nil, a.ID, auth.Identity(note))}
	}
	switch {
	case a.Content != nil:
		head, tail := message.AppendContent(nil, a.ID)
		return saying{content: a.Content, head: head, tail: []byte(tail), id: a.ID, answers: &was}
	case was.action == message.Listen && a.Unindexed:
		return saying{text: message.AppendOK(nil, a.ID, message.ListenedUnindexed)}
	case was.action == message.Listen:
		return saying{text: message.AppendOK(nil, a.ID, message.Listened)}
	}
	return saying{text: message.AppendOK(nil, a.ID, message.NoData)}
}

// grants reports whether a client that was not refused this is no stranger: it has logged
// in, or the rules let it read or write something.
func grants(a message.Action) bool {
	switch a {
	case message.Login, message.Listen, message.Get, message.Put, message.Merge:
		return true
	}
	return false
}

// refuse returns what a failure is to the client.
func (s *session) refuse(a *audience.Answer, err error) saying {
	switch kind := fault.KindOf(err); {
	case kind == fault.Unknown:
		// The client must not take any answer for an outcome.
		s.front.opts.Logger.Warn("a write is not confirmed", "session", s.logID(), "error", err)
		return saying{ending: &ending{code: frame.CodeInternal, reason: outbox.Behind, text: "a write is not confirmed"}}
	case kind == fault.NotFound && fault.KindOf(s.db.Standing()) == fault.NotFound:
		return saying{ending: dropped()}
	case kind == fault.Internal && !errors.Is(err, s.ctx.Err()), kind == fault.Corrupt:
		s.front.opts.Logger.Error("a request of an SDK failed", "session", s.logID(), "error", err)
	}
	return saying{text: message.AppendFailure(nil, a.ID, err)}
}

// logID returns what the log shows of the id, which is a secret: its beginning.
func (s *session) logID() string { return s.id[:8] }

// afterTrace returns an answer, after the trace of rules if there is one: it is for the
// log of a client whose token asks for it.
func (s *session) afterTrace(trace string, answer saying) saying {
	if trace == "" {
		return answer
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued = &answer
	s.isAhead.Store(true)
	return saying{text: message.AppendDebug(nil, trace)}
}
