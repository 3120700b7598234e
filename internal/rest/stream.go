package rest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/watch"
)

const (
	streamType = "text/event-stream; charset=utf-8"
	// gatherBytes is how much of what is ready goes out in one write.
	gatherBytes = 16 << 10
)

// wantsStream reports whether a client asks for a stream.
func wantsStream(header http.Header) bool {
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
	s := &stream{streams: c.opts.Streams, now: c.opts.Now, dialect: c.reply.dialect, resume: c.params.resume, epoch: c.database.Epoch()}
	request := watch.Request{
		Path: c.path(), Form: c.params.form, Priority: c.target.kind == ofPriority, Query: c.params.filter(),
		Who: c.who, Wake: s.wake, Done: waiting(c.r),
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
	if err := s.streams.admit(s); err != nil {
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
	header.Set("X-Accel-Buffering", "no") // for nginx, which would gather events
	if c.r.ProtoMajor == 1 {
		return s.takeOver(c.w)
	}
	s.serve(c.w, c.r)
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

// A stream is one client that is told of changes. It has a goroutine only while
// there is something to tell, unless its protocol demands one.
type stream struct {
	streams *Streams
	watch   source
	out     streamWriter
	now     func() time.Time
	dialect *dialect
	resume  bool
	epoch   uint64

	begun bool // something was sent
	slot  int  // of the keep-alive
	state atomic.Int32
	start func()      // starts the goroutine that calls run
	beat  atomic.Bool // a keep-alive is due
	// ending is set when the stream is to end, to the reason.
	ending atomic.Pointer[string]
}

// A source is what a stream tells of, such as an watch.Watch.
type source interface {
	// Next returns the next event; false if there is none now.
	Next() (*watch.Event, bool)
	// Recheck is called now and then.
	Recheck()
	Close()
}

// A streamWriter is the way to a client. It must not be used concurrently, but
// for cut.
type streamWriter interface {
	// write sends bytes. It fails when the client takes none of them for too long.
	write(p []byte) error
	// gone reports whether the client has left, as far as that can be known
	// without a write.
	gone() bool
	// close ends the stream when all was said, cut at once.
	close()
	cut()
}

// The states of a stream.
const (
	streamOpening int32 = iota // start is not set yet
	streamIdle
	streamRunning
	streamAgain // it is running, and there is more
	streamEnded
)

// wake has the stream look for something to tell. It does not block.
func (s *stream) wake() {
	for {
		switch state := s.state.Load(); state {
		case streamIdle:
			if s.state.CompareAndSwap(state, streamRunning) {
				s.start()
				return
			}
		case streamRunning:
			if s.state.CompareAndSwap(state, streamAgain) {
				return
			}
		default:
			return
		}
	}
}

// end has the stream end for a reason.
func (s *stream) end(reason string) {
	s.ending.CompareAndSwap(nil, &reason)
	s.wake()
}

// run tells the client what there is. It reports whether the stream goes on.
func (s *stream) run() bool {
	for {
		reason := s.tell()
		if reason != "" {
			s.state.Store(streamEnded)
			s.watch.Close()
			s.streams.remove(s, reason) // before the client can know: it may come back at once
			s.out.close()
			return false
		}
		if s.state.CompareAndSwap(streamRunning, streamIdle) {
			return true
		}
		s.state.Store(streamRunning)
	}
}

// Why a stream ends, as the metrics count it.
const (
	endedByClient  = "client"
	endedSlow      = "slow"
	endedCancelled = "cancelled"
	endedRevoked   = "revoked"
	endedBehind    = "behind"
	endedDamaged   = "damaged"
	endedDraining  = "draining"
)

// tell sends what is ready, and returns why the stream has ended; empty if it
// has not.
func (s *stream) tell() (ended string) {
	buffer := gatherBuffers.Get().(*[]byte)
	defer gatherBuffers.Put(buffer)
	out := (*buffer)[:0]
	for ended == "" {
		if reason := s.ending.Load(); reason != nil {
			_ = s.flush(nil) // even one that ends at once was heard
			return *reason
		}
		e, ok := s.watch.Next()
		switch {
		case !ok && s.beat.CompareAndSwap(true, false):
			if s.out.gone() {
				return endedByClient
			}
			s.watch.Recheck()
			out = append(out, keepAliveFrame...)
		case !ok:
			return s.flush(out)
		case e.Kind >= watch.Cancel:
			_ = s.flush(append(out, s.dialect.lastFrame(e.Kind)...))
			return endings[e.Kind]
		default:
			out, ended = s.tellEvent(out, e)
		}
	}
	return ended
}

// tellEvent sends an event behind what was gathered, or gathers it, too.
func (s *stream) tellEvent(out []byte, e *watch.Event) (gathered []byte, ended string) {
	s.streams.sent(e, s.now)
	if e.Content != nil {
		if len(out) > 0 {
			ended = s.flush(out)
		}
		if ended != "" {
			_ = e.Content.Close()
			return nil, ended
		}
		s.begun = true
		return out[:0], s.print(e)
	}
	frame := e.Frame(encodeFrame)
	if s.resume && e.Last {
		out = appendID(out, s.epoch, e.Position)
	}
	if len(out)+len(frame) <= gatherBytes {
		return append(out, frame...), ""
	}
	if ended = s.flush(out); ended == "" {
		ended = s.flush(frame)
	}
	return out[:0], ended
}

var endings = map[watch.EventKind]string{
	watch.Cancel: endedCancelled, watch.Revoked: endedRevoked, watch.End: endedBehind,
}

var gatherBuffers = sync.Pool{New: func() any {
	buffer := make([]byte, 0, gatherBytes+64)
	return &buffer
}}

// flush sends bytes.
func (s *stream) flush(p []byte) (ended string) {
	if len(p) == 0 && s.begun {
		return ""
	}
	s.begun = true // with nothing to tell, the client still learns that it is heard
	return whyEnded(s.out.write(p))
}

func whyEnded(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errSlowReader), errors.As(err, &timeout) && timeout.Timeout():
		return endedSlow
	default:
		return endedByClient
	}
}

// print sends an event whose data is read from the store on the way.
func (s *stream) print(e *watch.Event) (ended string) {
	w := &frameWriter{stream: s}
	buffer := gatherBuffers.Get().(*[]byte)
	defer gatherBuffers.Put(buffer)
	w.buf = (*buffer)[:0]
	if s.resume {
		w.buf = appendID(w.buf, s.epoch, e.Position)
	}
	w.buf = append(w.buf, putHead...)
	err := e.Content.PrintTo(w)
	_ = e.Content.Close()
	if errors.Is(err, state.ErrUnwanted) {
		return endedByClient
	}
	if err != nil && w.failed == nil {
		// The data cannot be read. The client must not take what it has for an
		// event: if a part of the frame is out, it stays without its end.
		s.streams.opts.Logger.Error("a stream was cut off", "error", err)
		if !w.sent {
			_ = s.out.write(s.dialect.lastFrame(watch.Cancel))
		}
		return endedDamaged
	}
	if err == nil {
		_, err = w.Write([]byte(putTail))
	}
	if err == nil {
		err = w.flush()
	}
	return whyEnded(err)
}

// A frameWriter gathers the text of one event and sends it, within the limits for
// slow clients.
type frameWriter struct {
	*stream
	buf    []byte
	failed error
	rate   rate // at which the client takes it
	sent   bool // a part of the event
}

func (w *frameWriter) Write(p []byte) (int, error) {
	if len(w.buf)+len(p) > gatherBytes {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) >= gatherBytes {
		return len(p), w.send(p)
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

func (w *frameWriter) flush() error {
	err := w.send(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *frameWriter) send(p []byte) error {
	if w.failed = w.rate.check(); w.failed != nil {
		return w.failed
	}
	w.sent = true
	begun := w.now()
	w.failed = w.out.write(p)
	w.rate.count(len(p), w.now().Sub(begun))
	return w.failed
}

var _ io.Writer = (*frameWriter)(nil)
