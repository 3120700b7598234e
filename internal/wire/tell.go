package wire

import (
	"errors"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/watch"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
)

// Release implements outbox.Teller.
func (s *socket) Release() {
	s.session.release()
	s.visit.over(s.now(), s.client.Sent())
}

// Tell implements outbox.Teller: it sends what there is to say. When a beat is due, it first
// looks what the client may still be told: one that takes its time always has something to be
// told.
func (s *socket) Tell() (reason outbox.Reason) {
	defer func() { s.visit.ends(reason) }()
	defer s.survive(func() { reason = outbox.Damaged })
	batch := s.client.NewBatch()
	defer batch.Free()
	beat := false
	for said := false; ; said = true {
		if e := s.ending(); e != nil {
			return s.farewell(&batch, e)
		}
		if err := s.answerPings(&batch); err != nil {
			return outbox.Why(err)
		}
		if s.client.TakeBeat() {
			beat = true
			s.session.check()
		}
		say, ok := s.session.next()
		if !ok {
			return s.pause(&batch, said, beat)
		}
		if reason := s.say(&batch, &say); reason != outbox.GoesOn {
			return reason
		}
	}
}

// ending returns how the connection is to end now; nil if it goes on. When the server
// stops, what was asked before is answered first.
func (s *socket) ending() *ending {
	reason := s.client.Ending()
	if reason == outbox.GoesOn {
		return nil
	}
	s.mu.Lock()
	leaving := s.leaving
	s.mu.Unlock()
	switch {
	case leaving != nil:
		return leaving
	case reason == outbox.Draining && !s.session.stop():
		return nil
	case reason == outbox.Draining:
		return &ending{code: frame.CodeAway, reason: reason, text: "the server stops"}
	case reason == outbox.Crowded:
		return &ending{code: frame.CodePolicy, reason: reason, text: "others need the place of a client that has not logged in"}
	}
	return &ending{reason: reason}
}

// farewell ends the connection: with what was gathered, the last message, and a close
// frame, if the client is there to be told. It is told once: if it does not take it, it
// does not.
func (s *socket) farewell(batch *outbox.Batch, e *ending) outbox.Reason {
	if e.code == 0 {
		return e.reason
	}
	var last []byte
	if e.last != nil {
		last = frame.Append(nil, e.last)
	}
	if batch.Add(frame.AppendClose(last, e.code, e.text)) == nil && batch.Flush() == nil {
		s.visit.closes(e.code)
	}
	return e.reason
}

// answerPings answers the pings of the websocket.
func (s *socket) answerPings(batch *outbox.Batch) error {
	s.mu.Lock()
	pongs := s.pongs
	s.pongs = nil
	s.mu.Unlock()
	if pongs == nil {
		return nil
	}
	return batch.Add(pongs)
}

// pause sends what was gathered, when there is nothing more to say now. At a beat it looks
// whether the client is still there.
func (s *socket) pause(batch *outbox.Batch, said, beat bool) outbox.Reason {
	if said || len(batch.Bytes) > 0 {
		s.touch()
	}
	if beat && s.isSilent() {
		return outbox.ByClient
	}
	return outbox.Why(batch.Flush())
}

// say sends a message, or gathers it.
func (s *socket) say(batch *outbox.Batch, say *saying) outbox.Reason {
	switch {
	case say.ending != nil:
		return s.farewell(batch, say.ending)
	case say.content != nil:
		return s.print(batch, say)
	case say.event != nil:
		return outbox.Why(s.tellEvent(batch, say.listen, say.event))
	}
	return outbox.Why(batch.Add(frame.Append(nil, say.text)))
}

// tellEvent sends a push that all who listen to a place share.
func (s *socket) tellEvent(batch *outbox.Batch, l *audience.Listen, e *watch.Event) error {
	s.client.CountEvent(e.Millis)
	tagged := cookie(l).Tagged
	shared := e.Frame(func(e *watch.Event) []byte { return encode(l, e) })
	s.session.ledger.did(broadcast, l.Path, len(e.Value))
	if !tagged.HasTag() {
		return batch.Add(shared)
	}
	var end [message.TagUnits]byte
	return batch.Add(frame.Prepared(shared).Append(nil, message.AppendPushTail(end[:0], tagged)))
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

// print sends a message whose content is read from the store.
func (s *socket) print(batch *outbox.Batch, say *saying) outbox.Reason {
	claim := s.session.front.opts.Memory.Reads.Claim(s.session.budgetClient(), true)
	defer claim.Release()
	p, err := s.gather(say, claim)
	s.session.ledger.printed(say, p.bytes, err)
	switch {
	case errors.Is(err, state.ErrUnwanted):
		return outbox.ByClient
	case errors.Is(err, errTooBig), fault.KindOf(err) == fault.Unavailable:
		return s.refuse(batch, say, err)
	case err != nil && say.isUnanswered():
		s.session.front.opts.Logger.Error("a request of an SDK failed", "session", s.session.logID(), "error", err)
		return s.refuse(batch, say, err)
	case err != nil:
		return s.damaged(batch, err)
	case p.again == nil:
		frames := frame.Append(nil, p.text)
		p.text = nil // both need not be held while the client takes them
		return s.long(batch, frames)
	}
	if reason := outbox.Why(batch.Flush()); reason != outbox.GoesOn {
		_ = p.again.Close()
		return reason
	}
	return s.stream(&p, say)
}

// gather is gather for the client: if there is no memory to send what turns out to be long, it
// waits for some with nothing in hand, and begins again.
func (s *socket) gather(say *saying, claim *budget.Claim) (printing, error) {
	longest, streams := s.session.front.opts.MaxContent, func() bool { return claim.Grow(streamBytes) }
	p, err := gather(say, claim, longest, streams)
	if !errors.Is(err, errBusy) {
		return p, err
	}
	if claim.Await(streamBytes, readWait, s.session.ctx.Done()) {
		say.content = p.again
		if p, err = gather(say, claim, longest, streams); !errors.Is(err, errBusy) {
			return p, err
		}
	}
	return printing{bytes: p.bytes}, errors.Join(err, p.again.Close())
}

// long sends frames that may be more than a client takes at once.
func (s *socket) long(batch *outbox.Batch, frames []byte) outbox.Reason {
	if len(frames) <= outbox.PieceBytes {
		return outbox.Why(batch.Add(frames))
	}
	if reason := outbox.Why(batch.Flush()); reason != outbox.GoesOn {
		return reason
	}
	w := s.client.NewLongWriter()
	defer w.Free()
	for len(frames) > 0 {
		piece := frames[:min(len(frames), outbox.PieceBytes)]
		if _, err := w.Write(piece); err != nil {
			return outbox.Why(err)
		}
		s.touch()
		frames = frames[len(piece):]
	}
	return outbox.Why(w.Flush())
}

// stream sends a message that is too long to be held, while it is printed again.
func (s *socket) stream(p *printing, say *saying) outbox.Reason {
	w := s.client.NewLongWriter()
	defer w.Free()
	frames, err := frame.NewStream(touching{w, s}, p.units)
	if err != nil {
		_ = p.again.Close()
		return s.damaged(nil, err)
	}
	if err = p.send(say, frames); err == nil {
		err = w.Flush()
	}
	switch {
	case err == nil, w.Failed() != nil:
		return outbox.Why(err)
	case errors.Is(err, state.ErrUnwanted):
		return outbox.ByClient
	}
	return s.damaged(nil, err)
}

// touching is a writer that notes that its client takes something.
type touching struct {
	*outbox.LongWriter
	socket *socket
}

// Write implements io.Writer.
func (t touching) Write(p []byte) (int, error) {
	t.socket.touch()
	return t.LongWriter.Write(p)
}

// isUnanswered reports whether a content is that of a request that was not answered. If it
// cannot be read, the answer is a failure: a client that had to come back would ask for it
// again, and lose all else that it listens to each time.
func (say *saying) isUnanswered() bool { return say.listen == nil || !cookie(say.listen).answered }

// refuse answers what cannot be sent. Of a listen that is its end: if it was not answered
// yet, its answer says why. One that is told again what is there, and for which there is
// no room now, is told so later.
func (s *socket) refuse(batch *outbox.Batch, say *saying, err error) outbox.Reason {
	l := say.listen
	if l == nil {
		return outbox.Why(batch.Add(frame.Append(nil, message.AppendFailure(nil, say.id, err))))
	}
	kept := cookie(l)
	if kept.answered && fault.KindOf(err) == fault.Unavailable {
		s.session.audience.Later(l)
		return outbox.GoesOn
	}
	s.session.audience.Over(l)
	if !kept.answered {
		kept.failed = err
		return outbox.GoesOn
	}
	return outbox.Why(batch.Add(frame.Append(nil, message.AppendCancel(nil, l.Path, kept.Tagged))))
}

// damaged ends a connection because something cannot be read. If a part of it is out, the
// client must not take that for the whole, so nothing more is sent; batch is nil then.
func (s *socket) damaged(batch *outbox.Batch, err error) outbox.Reason {
	s.session.front.opts.Logger.Error("a session of an SDK was cut off", "session", s.session.logID(), "error", err)
	if batch == nil {
		return outbox.Damaged
	}
	return s.farewell(batch, &ending{code: frame.CodeInternal, reason: outbox.Damaged, text: "the data cannot be read"})
}
