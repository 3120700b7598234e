package peer

import (
	"context"
	"fmt"
	"io"
)

// A stream is the reading end of what a peer's handler writes.
type stream struct {
	*conn
	stop  func()
	parts chan []byte
	rest  []byte
	ended chan struct{}
	end   error // what Read says in the end; set before ended is closed
}

// Open asks a peer for a stream, over a connection of its own. It lasts until ctx ends or the reader is closed. Read fails with the
// errors of Call; it returns [io.EOF] only when the handler has ended well.
func (f *Front) Open(ctx context.Context, to, kind string, body []byte) (io.ReadCloser, error) {
	if len(body) > f.o.MaxBody || kind == "" || len(kind) > maxKind {
		return nil, fmt.Errorf("%w: a stream of kind %q with %d bytes", ErrNotSent, kind, len(body))
	}
	c, err := f.dial(ctx, to, forStream)
	if err != nil {
		return nil, fmt.Errorf("%w: %s is not reached: %w", ErrNotSent, to, err)
	}
	s := &stream{conn: c, parts: make(chan []byte), ended: make(chan struct{})}
	if !f.goes(func() { _ = c.run(s.take) }) {
		c.close(ErrClosed)
		return nil, fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
	}
	stopCaller := context.AfterFunc(ctx, func() { c.close(context.Cause(ctx)) })
	stopFront := context.AfterFunc(f.life, func() { c.close(ErrClosed) })
	s.stop = func() { stopCaller(); stopFront() }
	if err := c.sendBody(ctx, frame{kind: call, id: 1, name: kind}, body); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return s, nil
}

// goes runs something that Close waits for, unless the front is closed.
func (f *Front) goes(run func()) bool {
	f.links.mu.Lock()
	defer f.links.mu.Unlock()
	if f.links.closed || f.life.Err() != nil {
		return false
	}
	f.all.Go(run)
	return true
}

func (s *stream) take(f frame) error {
	select {
	case <-s.ended:
		return fmt.Errorf("%w: a frame after the end of a stream", errFrame)
	default:
	}
	if f.id != 1 {
		return fmt.Errorf("%w: an answer to no call", errFrame)
	}
	switch f.kind {
	case part:
		s.held.Store(true)
		defer s.held.Store(false)
		select {
		case s.parts <- append([]byte(nil), f.body...):
		case <-s.done:
		}
		return nil
	case answer:
		s.end = io.EOF
	case refused:
		s.end = &Refused{Text: string(f.body)}
	case unseen:
		s.end = fmt.Errorf("%w: %s: %s", ErrNotSent, s.peer, f.body)
	default:
		return fmt.Errorf("%w: a frame of type %d in a stream", errFrame, f.kind)
	}
	close(s.ended)
	return nil
}

// Read implements [io.Reader].
func (s *stream) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		select {
		case s.rest = <-s.parts:
			continue
		case <-s.ended:
			return 0, s.end
		case <-s.done:
		}
		select {
		case <-s.ended:
			return 0, s.end
		default:
			return 0, fmt.Errorf("%w: %w", ErrLost, s.err)
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close ends the stream, wherever it is.
func (s *stream) Close() error {
	s.stop()
	s.close(ErrClosed)
	return nil
}
