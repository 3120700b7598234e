package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// A ConnHandler takes a pipe that another node has made. The connection is its own, and stays open when it returns. It
// must not wait for anything.
type ConnHandler func(from string, body []byte, c net.Conn)

const (
	// maxPipeBody is how long what is said before a pipe may be.
	maxPipeBody = 4 << 10
	// pipeUnanswered is how long a peer may not confirm what was sent over a pipe. It is longer than for calls, because a
	// client that reads slowly stops its pipe for as long. A node that is gone is noticed by the connection for calls.
	pipeUnanswered = 45 * time.Second
	// maxDialing is how many pipes are made at a time, far below what the other end takes of one host.
	maxDialing = maxStrangersOfHost / 4
)

// pipes are those that are open.
type pipes struct {
	dialing chan struct{} // one for each that is being made

	mu     sync.Mutex
	most   int
	open   map[*pipe]bool
	dialed int // how many of them this node has made
	closed bool
}

func (p *pipes) init(most int) {
	p.most, p.open, p.dialing = most, map[*pipe]bool{}, make(chan struct{}, maxDialing)
}

// enter counts a pipe until it is closed.
func (p *pipes) enter(one *pipe) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := len(p.open) - p.dialed
	if one.dialed {
		count = p.dialed
	}
	switch {
	case p.closed:
		return ErrClosed
	case count >= p.most:
		return errCrowded
	}
	p.open[one] = true
	if one.dialed {
		p.dialed++
	}
	return nil
}

func (p *pipes) leave(one *pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[one] && one.dialed {
		p.dialed--
	}
	delete(p.open, one)
}

// cut closes all pipes with a node that is not reached any more. It does not wait.
func (p *pipes) cut(peer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for one := range p.open {
		if one.peer == peer {
			_ = one.raw.Close() // its user closes the rest
		}
	}
}

// close closes all pipes, and lets none be opened.
func (p *pipes) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for one := range p.open {
		_ = one.raw.Close()
	}
}

// A pipe is a connection that carries bytes both ways.
type pipe struct {
	net.Conn
	raw    net.Conn
	peer   string
	dialed bool
	of     *pipes
}

// newPipe makes a pipe of a connection, of which some bytes may have been read already.
func (f *Front) newPipe(c *conn, dialed bool) (*pipe, error) {
	first, _ := c.frames.r.Peek(c.frames.r.Buffered())
	p := &pipe{Conn: c.Conn, raw: c.arrived.Conn, peer: c.peer, dialed: dialed, of: &f.pipes}
	if len(first) > 0 {
		p.Conn = &replay{Conn: c.Conn, first: append([]byte(nil), first...)}
	}
	if err := f.pipes.enter(p); err != nil {
		return nil, err
	}
	limitUnanswered(p.raw, pipeUnanswered)
	return p, nil
}

// Close implements [net.Conn]. TLS would say good-bye first, and wait for the peer to take it.
func (p *pipe) Close() error {
	p.of.leave(p)
	return p.raw.Close()
}

// HandleConn has pipes of a kind taken. Those that come before, or after a handler of nil, are refused.
func (f *Front) HandleConn(kind string, h ConnHandler) {
	f.kinds.Lock()
	defer f.kinds.Unlock()
	f.kinds.conns[kind] = h
}

// Dial makes a pipe to another node. Its handler is told the body, which is short, and takes the connection. Closing it is the
// caller's. An error says that no handler has seen it, unless ctx has ended.
func (f *Front) Dial(ctx context.Context, to, kind string, body []byte) (net.Conn, error) {
	if kind == "" || len(kind) > maxKind || len(body) > maxPipeBody {
		return nil, fmt.Errorf("%w: a connection of kind %q with %d bytes", ErrNotSent, kind, len(body))
	}
	select {
	case f.pipes.dialing <- struct{}{}:
		defer func() { <-f.pipes.dialing }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
	case <-f.life.Done():
		return nil, fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
	}
	c, err := f.dial(ctx, to, forPipe)
	if err != nil {
		return nil, fmt.Errorf("%w: %s is not reached: %w", ErrNotSent, to, err)
	}
	if err = c.ask(ctx, kind, body); err == nil {
		var p *pipe
		if p, err = f.newPipe(c, true); err == nil {
			return p, nil
		}
	}
	_ = c.arrived.Close()
	return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
}

// ask says what a pipe is for, and hears whether the peer takes it.
func (c *conn) ask(ctx context.Context, kind string, body []byte) error {
	limit := time.Now().Add(10 * c.silence()) //nolint:forbidigo // a deadline of the kernel's
	if err := c.SetDeadline(limit); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.arrived.Close() })
	defer stop()
	if _, err := c.Write(frame{kind: call, id: 1, total: uint32(len(body)), name: kind, body: body}.encode()); err != nil {
		return err
	}
	said, err := c.frames.next()
	switch {
	case err != nil:
		return err
	case said.kind == unseen:
		return errors.New(string(short(string(said.body))))
	case said.kind != answer || said.id != 1 || said.total != 0:
		return fmt.Errorf("%w: a frame of type %d before a pipe", errFrame, said.kind)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return c.SetDeadline(time.Time{})
}

// servePipe greets a node that makes a pipe, and hands that to its handler. The deadline of the handshake bounds what is said before.
func (f *Front) servePipe(t *tls.Conn, c *conn, hello frame) (err error) {
	defer func() {
		if err != nil {
			_ = c.arrived.Close()
		}
	}()
	c.peer = hello.name
	if _, err := t.Write(frame{kind: greet, purpose: forPipe, name: f.o.Addr}.encode()); err != nil {
		return err
	}
	asked, err := c.frames.next()
	switch {
	case err != nil:
		return err
	case asked.kind != call || int(asked.total) != len(asked.body) || len(asked.body) > maxPipeBody:
		return fmt.Errorf("%w: a frame of type %d before a pipe", errFrame, asked.kind)
	}
	f.kinds.RLock()
	h := f.kinds.conns[asked.name]
	f.kinds.RUnlock()
	body := append([]byte(nil), asked.body...)
	if h == nil {
		return c.decline(t, asked.id, fmt.Sprintf("this node takes no connections of kind %q now", asked.name))
	}
	p, err := f.newPipe(c, false)
	if err != nil {
		return c.decline(t, asked.id, err.Error())
	}
	if _, err = t.Write(frame{kind: answer, id: asked.id}.encode()); err == nil {
		err = c.arrived.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = p.Close()
		return err
	}
	h(hello.name, body, p)
	return nil
}

// decline says why a pipe is not taken.
func (c *conn) decline(t *tls.Conn, id uint64, why string) error {
	if _, err := t.Write(frame{kind: unseen, id: id, body: short(why)}.encode()); err != nil {
		return err
	}
	return fmt.Errorf("a connection was not taken: %s", why)
}
