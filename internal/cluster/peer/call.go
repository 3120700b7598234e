package peer

import (
	"context"
	"fmt"
	"sync"
)

// outbound is the connection over which this node makes its calls to a peer.
type outbound struct {
	*conn
	front *Front
	slots chan struct{} // one for each call under way

	mu      sync.Mutex
	last    uint64 // the newest id
	waiting map[uint64]*waiter
}

// waiter is a call that waits for its answer.
type waiter struct {
	body
	begun   bool
	outcome chan outcome // of one
}

type outcome struct {
	body []byte
	err  error
}

func newOutbound(f *Front, c *conn) *outbound {
	return &outbound{conn: c, front: f, slots: make(chan struct{}, f.o.MaxCalls), waiting: map[uint64]*waiter{}}
}

// Call asks a peer, which must be one of those that are kept, or this node itself. It fails at once if the peer is not
// connected. See the package comment for its errors; the context's own is wrapped in them.
func (f *Front) Call(ctx context.Context, to, kind string, body []byte) ([]byte, error) {
	switch {
	case len(body) > f.o.MaxBody:
		return nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrNotSent, len(body), f.o.MaxBody)
	case kind == "" || len(kind) > maxKind:
		return nil, fmt.Errorf("%w: a call of kind %q", ErrNotSent, kind)
	case to == f.o.Addr:
		return f.callSelf(ctx, kind, body)
	}
	c, err := f.connected(ctx, to)
	if err != nil {
		return nil, err
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-c.done:
		return nil, fmt.Errorf("%w: %w", ErrNotSent, c.err)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
	}
	return c.call(ctx, kind, body)
}

// callSelf is a call without a wire.
func (f *Front) callSelf(ctx context.Context, kind string, body []byte) ([]byte, error) {
	result, seen, err := f.run(ctx, kind, f.o.Addr, body)
	switch {
	case !seen:
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	case err != nil:
		return nil, &Refused{Text: string(short(err.Error()))}
	}
	return result, nil
}

// call sends a call and waits for its answer.
func (c *outbound) call(ctx context.Context, kind string, body []byte) ([]byte, error) {
	w := &waiter{outcome: make(chan outcome, 1)}
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = w
	c.mu.Unlock()
	defer c.forget(id, w)
	if err := c.sendBody(ctx, frame{kind: call, id: id, name: kind}, body); err != nil {
		// Its last part is not queued, so no handler runs.
		c.urgently(func(s *soon) { s.cancels = append(s.cancels, id) })
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	select {
	case o := <-w.outcome:
		return o.body, o.err
	case <-ctx.Done():
		c.urgently(func(s *soon) { s.cancels = append(s.cancels, id) })
		return nil, fmt.Errorf("%w: %w", ErrLost, context.Cause(ctx))
	case <-c.done:
	}
	select {
	case o := <-w.outcome: // it came with the end
		return o.body, o.err
	default:
		return nil, fmt.Errorf("%w: %w", ErrLost, c.err)
	}
}

// forget ends a call at this end. What still comes of its answer is thrown away.
func (c *outbound) forget(id uint64, w *waiter) {
	c.mu.Lock()
	delete(c.waiting, id)
	begun := w.begun
	c.mu.Unlock()
	if begun {
		c.front.answers.give(int64(w.total))
	}
}

// take takes a frame of the peer: answers. An error ends the connection.
func (c *outbound) take(f frame) error {
	c.mu.Lock()
	w, known := c.waiting[f.id], f.id <= c.last
	c.mu.Unlock()
	switch {
	case !known:
		return fmt.Errorf("%w: an answer to no call", errFrame)
	case w == nil:
		return nil // given up
	}
	switch f.kind {
	case answer:
		return c.begin(f, w)
	case part:
		if !w.begun {
			return fmt.Errorf("%w: a part of no answer", errFrame)
		}
		return c.add(f.id, w, f.body)
	case refused:
		c.finish(f.id, outcome{err: &Refused{Text: string(f.body)}})
		return nil
	case unseen:
		c.finish(f.id, outcome{err: fmt.Errorf("%w: %s: %s", ErrNotSent, c.peer, f.body)})
		return nil
	}
	return fmt.Errorf("%w: a frame of type %d in an answer", errFrame, f.kind)
}

// begin takes the first part of an answer.
func (c *outbound) begin(f frame, w *waiter) error {
	if w.begun {
		return fmt.Errorf("%w: two answers to a call", errFrame)
	}
	w.total = int(f.total)
	if w.total > c.front.o.MaxBody || !c.front.answers.take(int64(w.total)) {
		c.finish(f.id, outcome{err: fmt.Errorf("%w: there is no room for an answer of %d bytes", ErrLost, w.total)})
		return nil
	}
	c.mu.Lock()
	if c.waiting[f.id] == w {
		w.begun = true
	}
	c.mu.Unlock()
	if !w.begun { // given up meanwhile
		c.front.answers.give(int64(w.total))
		return nil
	}
	return c.add(f.id, w, f.body)
}

func (c *outbound) add(id uint64, w *waiter, part []byte) error {
	whole, err := w.add(part)
	if err == nil && whole {
		c.finish(id, outcome{body: w.bytes})
	}
	return err
}

// finish hands a call its outcome. What comes after it is thrown away.
func (c *outbound) finish(id uint64, o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[id]; w != nil {
		delete(c.waiting, id)
		w.outcome <- o
	}
}
