package wire

import (
	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/watch"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
)

// This file sends the pushes that all who listen to a place share. A large one is in memory
// until the last of them has taken it, so it counts in the memory for what is read, and must be
// taken at a certain rate.

// tellEvent sends a push, or gathers it.
func (s *socket) tellEvent(batch *outbox.Batch, say *saying) outbox.Reason {
	l, e := say.listen, say.event
	if len(e.Value) > freeBytes {
		return s.tellLarge(batch, say)
	}
	shared := s.frames(l, e)
	if !cookie(l).HasTag() {
		return outbox.Why(batch.Add(shared))
	}
	var end [message.TagUnits]byte
	return outbox.Why(batch.Add(frame.Prepared(shared).Append(nil, message.AppendPushTail(end[:0], cookie(l).Tagged))))
}

// tellLarge sends a large push. If there is no memory for it, the listen is told later what is
// there, which is then read as it is sent. One that is longer than a message may be ends the
// listen.
func (s *socket) tellLarge(batch *outbox.Batch, say *saying) outbox.Reason {
	l, e := say.listen, say.event
	if isTooBig(l, e, s.session.front.opts.MaxContent) {
		return s.refuse(batch, say, errTooBig)
	}
	part := int64(e.Part())
	claim := s.session.front.opts.Memory.Reads.Claim(s.session.budgetClient(), part <= freeBytes)
	defer claim.Release()
	if !claim.Grow(part) {
		s.session.audience.Later(l)
		return outbox.GoesOn
	}
	shared := s.frames(l, e)
	if !cookie(l).HasTag() {
		return s.long(batch, shared)
	}
	var end [message.TagUnits]byte
	first, last := frame.Prepared(shared).Cut(message.AppendPushTail(end[:0], cookie(l).Tagged))
	if reason := s.long(batch, first); reason != outbox.GoesOn {
		return reason
	}
	return outbox.Why(batch.Add(last))
}

// frames returns the frames of a push that is about to be sent, and counts it.
func (s *socket) frames(l *audience.Listen, e *watch.Event) []byte {
	s.client.CountEvent(e.Millis)
	s.session.ledger.did(broadcast, l.Path, len(e.Value))
	return e.Frame(func(e *watch.Event) []byte { return encode(l, e) })
}

// isTooBig reports whether a push is longer than a message may be.
func isTooBig(l *audience.Listen, e *watch.Event, longest int64) bool {
	around := len(message.AppendPushHead(nil, message.Replace, l.Path.Join(e.Path))) + frame.EndUnits
	length := around + len(e.Value)
	return int64(length) > longest || length > frame.MaxUnits && around+frame.Units(e.Value) > frame.MaxUnits
}

// encode returns the frames of a push: all of them for a plain listen, those without the
// end for a query, whose clients have tags of their own.
func encode(l *audience.Listen, e *watch.Event) []byte {
	text := appendPush(nil, l, e)
	tagged := cookie(l).Tagged
	if tagged.HasTag() {
		return frame.Prepare(text)
	}
	return frame.Append(nil, message.AppendPushTail(text, tagged))
}

// appendPush appends a push up to its end. A window that shows nothing any more is null.
func appendPush(dst []byte, l *audience.Listen, e *watch.Event) []byte {
	kind, value := message.Replace, e.Value
	switch {
	case e.Kind == watch.Patch:
		kind = message.Update
	case string(value) == emptyWindow:
		value = []byte("null")
	}
	return append(message.AppendPushHead(dst, kind, l.Path.Join(e.Path)), value...)
}
