package rest

import (
	"errors"
	"net/http"
	"strings"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/watch"
)

const streamType = "text/event-stream; charset=utf-8"

// WantsStream reports whether a client asks for a stream.
func WantsStream(header http.Header) bool {
	for _, line := range header.Values("Accept") {
		for item := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(name), "text/event-stream") {
				return true
			}
		}
	}
	return false
}

// watch answers GET with a stream.
func (c *call) watch() error {
	if _, err := c.condition(); err != nil {
		return err
	}
	if err := c.params.checkStream(); err != nil {
		return err
	}
	if err := c.create(); err != nil {
		return err
	}
	s := c.newStream()
	s.resume, s.epoch = c.params.resume, c.database.Epoch()
	request := watch.Request{
		Path: c.path(), Form: c.params.form, Priority: c.target.kind == ofPriority, Query: c.params.filter(),
		Who: c.who, Wake: s.client.Wake, Done: waiting(c.r), Client: budget.Client{Network: addressOf(c.r)},
	}
	if epoch, position, ok := parseID(c.r.Header.Get("Last-Event-ID")); ok && s.resume && epoch == s.epoch {
		request.Resume, request.Behind = true, position
	}
	watch, trace, err := c.database.Watches().Open(request)
	c.reply.showTrace(trace)
	if err != nil {
		return err
	}
	s.watch = watch
	if err := c.opts.Streams.Admit(&s.client, outbox.Stream, s); err != nil {
		watch.Close()
		return err
	}
	return c.open(s)
}

// open begins to tell.
func (c *call) open(s *stream) error {
	note(c.w, RouteStream, c.name)
	header := c.w.Header()
	header.Set("Content-Type", streamType)
	c.showPosition()
	header.Set("X-Accel-Buffering", "no") // for nginx, which would gather events
	if c.r.ProtoMajor == 1 {
		return c.takeOver(s)
	}
	// HTTP/2 cannot be taken over: the handler stays.
	forgetHead(c)
	way := &responseWay{w: c.w, control: http.NewResponseController(c.w), Patience: c.opts.Streams.Patience()}
	s.client.Serve(way, c.r.Context().Done())
	return nil
}

// checkStream refuses parameters that do not go with a stream.
func (p *params) checkStream() error {
	for name, given := range map[string]bool{
		"shallow":      p.shallow,
		"callback":     p.callback != "",
		"download":     p.download != "",
		"explain":      p.explain,
		"print=silent": p.print == silent,
	} {
		if given {
			return fault.New(fault.Invalid, "%s cannot be used with a stream", name)
		}
	}
	return nil
}

// A stream is what one client is told of changes, as an outbox.Teller.
type stream struct {
	client  outbox.Client
	watch   source
	handler *Handler
	dialect *dialect
	// payer is whose memory large events take, and whose turns, until gone is closed.
	payer  budget.Client
	gone   <-chan struct{}
	resume bool
	epoch  uint64
}

// newStream returns a stream of the call without what it tells of.
func (c *call) newStream() *stream {
	s := &stream{handler: c.Handler, dialect: c.reply.dialect, payer: c.usage.client(), gone: waiting(c.r)}
	if !c.who.Admin { // administrators share nothing: the backend of many users has one address
		s.client.Network = addressOf(c.r)
	}
	return s
}

// A source is what a stream tells of, such as an watch.Watch.
type source interface {
	// Next returns the next event; false if there is none now.
	Next() (*watch.Event, bool)
	// Drained reports whether the event that Next has just returned was the last for now: the
	// stream is woken when there may be another. False is always right.
	Drained() bool
	// Recheck is called now and then. It reports whether the source goes on.
	Recheck() bool
	// Later gives up the event that Next has just returned, for which there is no memory now.
	// What is there is told in a while.
	Later()
	Close()
}

// Release implements outbox.Teller.
func (s *stream) Release() { s.watch.Close() }

// Tell implements outbox.Teller: it sends what is ready. When a keep-alive is due, it first
// looks what the client may still be told: one that takes its time always has something to be
// told. The keep-alive itself is sent only if nothing else is.
func (s *stream) Tell() (ended outbox.Reason) {
	batch := s.client.NewBatch()
	defer batch.Free()
	for ended == outbox.GoesOn {
		if reason := s.client.Ending(); reason != outbox.GoesOn {
			_ = s.client.Greet() // even one that ends at once was heard
			return reason
		}
		beat := s.client.TakeBeat()
		if beat {
			if s.client.Gone() {
				return outbox.ByClient
			}
			s.watch.Recheck()
		}
		e, ok := s.watch.Next()
		switch {
		case !ok && beat:
			batch.Bytes = append(batch.Bytes, keepAliveFrame...)
		case !ok:
			return s.flush(&batch)
		case e.Kind >= watch.Cancel:
			batch.Bytes = append(batch.Bytes, s.dialect.lastFrame(e.Kind)...)
			_ = s.flush(&batch)
			return endings[e.Kind]
		default:
			if ended = s.tellEvent(&batch, e); ended == outbox.GoesOn && s.watch.Drained() {
				return s.flush(&batch) // if a keep-alive is due, there is another Tell
			}
		}
	}
	return ended
}

// tellEvent sends an event after what was gathered, or gathers it as well.
func (s *stream) tellEvent(batch *outbox.Batch, e *watch.Event) (ended outbox.Reason) {
	if len(e.Value) > smallBody {
		return s.tellLarge(batch, e)
	}
	s.client.CountEvent(e.Millis)
	if e.Content != nil {
		if ended = outbox.Why(batch.Flush()); ended != outbox.GoesOn {
			_ = e.Content.Close()
			return ended
		}
		return s.print(e)
	}
	frame := e.Frame(encodeFrame)
	batch.Bytes = s.appendID(batch.Bytes, e)
	return outbox.Why(batch.Add(frame))
}

// appendID appends the name of the position of an event, if the client wants it.
func (s *stream) appendID(dst []byte, e *watch.Event) []byte {
	if !s.resume || !e.Last {
		return dst
	}
	return appendID(dst, s.epoch, e.Position)
}

// tellLarge sends a large event, which all who are told it hold until the last of them has
// taken it. So it counts in the memory for answers, and must be taken at a certain rate. If
// there is no memory for it, what is there is told later, and read as it is sent.
func (s *stream) tellLarge(batch *outbox.Batch, e *watch.Event) (ended outbox.Reason) {
	part := int64(e.Part())
	claim := s.handler.answers.Claim(s.payer, part <= smallBody)
	defer claim.Release()
	if !claim.Grow(part) {
		s.watch.Later()
		return outbox.GoesOn
	}
	if ended = outbox.Why(batch.Flush()); ended != outbox.GoesOn {
		return ended
	}
	s.client.CountEvent(e.Millis)
	w := s.client.NewLongWriter()
	defer w.Free()
	w.Bytes = s.appendID(w.Bytes, e)
	if _, err := w.Write(e.Frame(encodeFrame)); err != nil {
		return outbox.Why(err)
	}
	return outbox.Why(w.Flush())
}

var endings = map[watch.EventKind]outbox.Reason{
	watch.Cancel: outbox.Cancelled, watch.Revoked: outbox.Revoked, watch.End: outbox.Behind,
}

// flush sends what was gathered. With nothing to tell, the client still learns that it
// is heard.
func (s *stream) flush(batch *outbox.Batch) (ended outbox.Reason) {
	if len(batch.Bytes) == 0 {
		return outbox.Why(s.client.Greet())
	}
	return outbox.Why(batch.Flush())
}

// print sends an event whose data is read from the store on the way. If that is long,
// it takes turns with other long reads.
func (s *stream) print(e *watch.Event) (ended outbox.Reason) {
	w := s.client.NewLongWriter()
	defer w.Free()
	turn := &turn{turns: s.handler.longReads, from: s.payer.Network, gone: s.gone}
	defer turn.end()
	w.Sending, w.Taken = turn.pause, turn.resume
	if s.resume {
		w.Bytes = appendID(w.Bytes, s.epoch, e.Position)
	}
	w.Bytes = append(w.Bytes, putHead...)
	if p, ok := e.Content.(paced); ok {
		p.Between(turn.between)
	}
	err := e.Content.PrintTo(&pacedWriter{w, turn})
	_ = e.Content.Close()
	turn.end() // nothing is left to print
	if errors.Is(err, state.ErrUnwanted) {
		return outbox.ByClient
	}
	if err != nil && w.Failed() == nil {
		// The data cannot be read. The client must not take what it has for an
		// event: if a part of the frame is out, it stays without its end.
		s.handler.opts.Logger.Error("a stream was cut off", "error", err)
		if !w.Sent() {
			_ = s.client.Send(s.dialect.lastFrame(watch.Cancel))
		}
		return outbox.Damaged
	}
	if err == nil {
		_, err = w.Write([]byte(putTail))
	}
	if err == nil {
		err = w.Flush()
	}
	return outbox.Why(err)
}
