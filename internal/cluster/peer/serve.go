package peer

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"sync"
	"time"
)

// inbound is a connection that a peer has made, to be answered.
type inbound struct {
	*conn
	front  *Front
	stream bool
	life   context.Context // ends with the connection
	all    sync.WaitGroup

	mu     sync.Mutex
	calls  map[uint64]*incoming
	bodies int64 // the bytes of their bodies
}

// incoming is a call from its first part until its answer is sent.
type incoming struct {
	body
	kind string
	// dropped is set if no handler is to see it: what comes of it is thrown away.
	dropped bool
	cancel  context.CancelFunc // once a handler runs
}

// serve greets a peer and answers its calls until the connection ends.
func (f *Front) serve(t *tls.Conn, c *conn, hello frame) error {
	a := c.arrived
	if hello.purpose == forStream {
		c.quiet = quietStreamPings
	}
	if _, err := t.Write(frame{kind: greet, purpose: hello.purpose, name: f.o.Addr}.encode()); err != nil {
		return err
	}
	_ = a.SetDeadline(time.Time{})
	limitUnanswered(a.Conn, 2*c.silence())
	c.peer = hello.name

	life, end := context.WithCancel(f.life)
	in := &inbound{conn: c, front: f, stream: hello.purpose == forStream, life: life, calls: map[uint64]*incoming{}}
	stop := context.AfterFunc(f.life, func() { c.close(ErrClosed) })
	defer stop()
	err := c.run(in.take)
	end()
	in.all.Wait()
	in.giveBack()
	return err
}

// giveBack gives back what calls have taken of which not all has come.
func (in *inbound) giveBack() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, call := range in.calls {
		if !call.dropped {
			in.give(call)
		}
	}
	in.calls = nil
}

// claim takes room for the body of a call: of what all connections have, and of what this one gets of it.
func (in *inbound) claim(c *incoming) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	o, n := in.front.o, int64(c.total)
	if in.bodies+n > max(o.MaxBodies/bodiesShare, int64(o.MaxBody)) || !in.front.bodies.take(n) {
		return false
	}
	in.bodies += n
	return true
}

// give gives that back. It is called with the lock held.
func (in *inbound) give(c *incoming) {
	in.bodies -= int64(c.total)
	in.front.bodies.give(int64(c.total))
}

// release gives it back when the body is not needed any more.
func (in *inbound) release(c *incoming) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.give(c)
}

// take takes a frame of the peer. An error ends the connection.
func (in *inbound) take(f frame) error {
	switch f.kind {
	case call:
		return in.begin(f)
	case part:
		in.mu.Lock()
		c := in.calls[f.id]
		in.mu.Unlock()
		if c == nil || c.cancel != nil {
			return fmt.Errorf("%w: a part of no call", errFrame)
		}
		return in.add(f.id, c, f.body)
	case cancel:
		in.cancelCall(f.id)
		return nil
	}
	return fmt.Errorf("%w: a frame of type %d from a caller", errFrame, f.kind)
}

// begin takes the first part of a call.
func (in *inbound) begin(f frame) error {
	c := &incoming{body: body{total: int(f.total)}, kind: f.name, dropped: true}
	in.mu.Lock()
	_, twice := in.calls[f.id]
	under := len(in.calls)
	if !twice {
		in.calls[f.id] = c
	}
	in.mu.Unlock()
	most := in.front.o.MaxCalls
	switch {
	case twice:
		return fmt.Errorf("%w: a call with the number of another", errFrame)
	case under >= 4*most || in.stream && under > 0:
		return fmt.Errorf("%w: %d calls under way", errFrame, under+1)
	}
	why := ""
	switch {
	case c.total > in.front.o.MaxBody:
		why = fmt.Sprintf("it has %d bytes, more than the %d that this node takes", c.total, in.front.o.MaxBody)
	case !in.front.knows(c.kind, in.stream):
		why = noHandler(c.kind).Error()
	case under >= 2*most || !in.claim(c):
		why = "this node has too much under way"
	}
	if c.dropped = why != ""; c.dropped {
		if err := in.send(in.life, frame{kind: unseen, id: f.id, body: []byte(why)}); err != nil {
			return err
		}
	}
	return in.add(f.id, c, f.body)
}

// add takes a part of a call's body, and has the call handled if it was the last.
func (in *inbound) add(id uint64, c *incoming, part []byte) error {
	if c.dropped {
		if c.total -= len(part); c.total <= 0 {
			in.forget(id)
		}
		return nil
	}
	whole, err := c.add(part)
	if err != nil || !whole {
		return err
	}
	ctx, cancel := context.WithCancel(in.life)
	in.mu.Lock()
	c.cancel = cancel
	in.mu.Unlock()
	in.all.Go(func() {
		defer cancel()
		defer in.forget(id)
		in.handle(ctx, id, c)
	})
	return nil
}

func (in *inbound) forget(id uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.calls, id)
}

// cancelCall ends a call that the caller has given up: one that is handled, or one of which not all has come.
func (in *inbound) cancelCall(id uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	c := in.calls[id]
	switch {
	case c == nil:
	case c.cancel != nil:
		c.cancel()
	default:
		delete(in.calls, id)
		if !c.dropped {
			in.give(c)
		}
	}
}

// handle runs the handler of a call and sends its answer.
func (in *inbound) handle(ctx context.Context, id uint64, c *incoming) {
	room, most := &in.front.calls, "calls"
	if in.stream {
		room, most = &in.front.streams, "streams"
	}
	if !room.take(1) {
		in.release(c)
		_ = in.send(in.life, frame{kind: unseen, id: id, body: []byte("this node has too many " + most + " under way")})
		return
	}
	defer room.give(1)
	var result []byte
	var seen bool
	var err error
	body := c.bytes
	c.bytes = nil // it is the handler's, which may need it for a part of its time only
	if in.stream {
		seen, err = in.front.runStream(ctx, c.kind, in.peer, body, streamWriter{in, id, ctx})
	} else {
		result, seen, err = in.front.run(ctx, c.kind, in.peer, body)
	}
	in.release(c)
	switch {
	case ctx.Err() != nil:
		// Nobody waits for it.
	case !seen:
		_ = in.send(in.life, frame{kind: unseen, id: id, body: short(err.Error())})
	case err != nil:
		_ = in.send(in.life, frame{kind: refused, id: id, body: short(err.Error())})
	default:
		_ = in.sendBody(in.life, frame{kind: answer, id: id}, result)
	}
}

// short bounds the text of an error.
func short(text string) []byte { return []byte(text[:min(len(text), maxText)]) }

// knows says whether there is a handler.
func (f *Front) knows(kind string, stream bool) bool {
	f.kinds.RLock()
	defer f.kinds.RUnlock()
	if stream {
		return f.kinds.streams[kind] != nil
	}
	return f.kinds.calls[kind] != nil
}

// run has a call handled. It says whether a handler has seen it: what a handler returns does not, since that may be the
// error of a call of its own.
func (f *Front) run(ctx context.Context, kind, from string, body []byte) (result []byte, seen bool, err error) {
	f.kinds.RLock()
	h := f.kinds.calls[kind]
	f.kinds.RUnlock()
	if h == nil {
		return nil, false, noHandler(kind)
	}
	result, err = h(ctx, from, body)
	if err == nil && len(result) > f.o.MaxBody {
		err = fmt.Errorf("the answer to %q has %d bytes, more than %d", kind, len(result), f.o.MaxBody)
	}
	return result, true, err
}

func noHandler(kind string) error { return fmt.Errorf("this node does not answer %q now", kind) }

func (f *Front) runStream(ctx context.Context, kind, from string, body []byte, w io.Writer) (seen bool, err error) {
	f.kinds.RLock()
	h := f.kinds.streams[kind]
	f.kinds.RUnlock()
	if h == nil {
		return false, noHandler(kind)
	}
	return true, h(ctx, from, body, w)
}

// streamWriter sends what a handler writes, part by part. It waits while the reader is slow.
type streamWriter struct {
	in  *inbound
	id  uint64
	ctx context.Context // io.Writer has none
}

func (w streamWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		size := min(len(b), partBytes)
		if err := w.in.send(w.ctx, frame{kind: part, id: w.id, body: b[:size]}); err != nil {
			return n, err
		}
		n, b = n+size, b[size:]
	}
	return n, nil
}
