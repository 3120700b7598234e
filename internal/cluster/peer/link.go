package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// A link keeps a connection to one peer.
type link struct {
	addr string
	stop context.CancelFunc

	// What follows is guarded by links.mu.
	conn   *outbound     // nil while there is none
	trying chan struct{} // closed when the try under way has ended; nil between tries
	err    error         // why there is none
	since  time.Time     // when the connection was made, or lost
	times  samples
}

// links are those to all peers that are kept.
type links struct {
	mu      sync.Mutex
	byAddr  map[string]*link
	changed chan struct{} // closed when a peer comes or goes
	closed  bool
}

func (l *links) init() {
	l.byAddr, l.changed = map[string]*link{}, make(chan struct{})
}

// tell wakes those that wait for peers to come or go. It is called with the lock held.
func (l *links) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Keep says which peers this node stays connected with; this one among them is left out. It lasts until the next call.
func (f *Front) Keep(peers []string) {
	l := &f.links
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.life.Err() != nil {
		peers, l.closed = nil, true
	}
	wanted := map[string]bool{}
	for _, addr := range peers {
		if addr != f.o.Addr && len(wanted) < maxPeers && !l.closed {
			wanted[addr] = true
		}
	}
	for addr, k := range l.byAddr {
		if !wanted[addr] {
			k.stop()
			delete(l.byAddr, addr)
			l.tell()
		}
	}
	for addr := range wanted {
		if l.byAddr[addr] == nil {
			ctx, cancel := context.WithCancel(f.life)
			k := &link{addr: addr, stop: cancel, trying: make(chan struct{}), since: f.o.Now()}
			l.byAddr[addr] = k
			f.all.Go(func() { f.keep(ctx, k) })
		}
	}
}

// Up returns the nodes that answer, this one included, in order of their addresses, and a channel that is closed
// when that changes.
func (f *Front) Up() (addrs []string, changed <-chan struct{}) {
	l := &f.links
	l.mu.Lock()
	defer l.mu.Unlock()
	addrs = []string{f.o.Addr}
	for addr, k := range l.byAddr {
		if k.conn != nil {
			addrs = append(addrs, addr)
		}
	}
	slices.Sort(addrs)
	return addrs, l.changed
}

// connected returns the connection to a peer. It waits for a try that is under way.
func (f *Front) connected(ctx context.Context, to string) (*outbound, error) {
	for {
		f.links.mu.Lock()
		k := f.links.byAddr[to]
		if k == nil {
			f.links.mu.Unlock()
			return nil, fmt.Errorf("%w: %s is none of the nodes that this one keeps a connection to", ErrNotSent, to)
		}
		c, trying, err := k.conn, k.trying, k.err
		f.links.mu.Unlock()
		switch {
		case c != nil:
			return c, nil
		case trying == nil:
			return nil, fmt.Errorf("%w: %s is not reached: %w", ErrNotSent, to, err)
		}
		select {
		case <-trying:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
		case <-f.life.Done():
			return nil, fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
		}
	}
}

// The pauses between tries to connect: the first after a good connection has none.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = time.Second
)

// keep connects to a peer, again and again.
func (f *Front) keep(ctx context.Context, k *link) {
	defer func() {
		f.links.mu.Lock()
		defer f.links.mu.Unlock()
		if k.trying != nil {
			close(k.trying) // nobody is to wait for it
		}
	}()
	wait := time.Duration(0)
	for ctx.Err() == nil {
		c, err := f.dial(ctx, k.addr, forCalls)
		if err == nil {
			began := f.o.Now()
			err = f.use(ctx, k, c)
			if f.o.Now().Sub(began) >= mostPause {
				wait = 0
			}
		}
		if ctx.Err() != nil {
			return
		}
		f.noteDown(k, err, wait > 0)
		if wait > 0 && pause.For(ctx, wait) != nil {
			return
		}
		wait = min(max(firstPause, 2*wait), mostPause)
		f.links.mu.Lock()
		if k.trying == nil {
			k.trying = make(chan struct{})
		}
		f.links.mu.Unlock()
	}
}

// use makes a connection the one of its link until it ends.
func (f *Front) use(ctx context.Context, k *link, c *conn) error {
	out := newOutbound(f, c)
	f.doors.know(hostOf(c)) // strangers must not keep it out: after a start nobody has come yet
	c.heard = func(sent, now time.Time, clock int64) {
		f.links.mu.Lock()
		k.times.add(sent, now, clock)
		f.links.mu.Unlock()
	}
	stop := context.AfterFunc(ctx, func() { c.close(ErrClosed) })
	defer stop()
	f.links.mu.Lock()
	if ctx.Err() == nil {
		k.conn, k.since = out, f.o.Now()
		close(k.trying)
		k.trying = nil
		f.links.tell()
	}
	f.links.mu.Unlock()
	f.o.Logger.Info("a node is connected", "node", k.addr)
	return c.run(out.take)
}

// noteDown says that a link has no connection, and whether calls are to wait for the next try.
func (f *Front) noteDown(k *link, err error, pauses bool) {
	f.links.mu.Lock()
	fresh := k.err == nil || k.conn != nil || k.err.Error() != err.Error()
	if k.conn != nil {
		k.conn, k.since, k.times = nil, f.o.Now(), samples{}
		f.links.tell()
		f.pipes.cut(k.addr)
	}
	k.err = err
	switch {
	case pauses && k.trying != nil:
		close(k.trying)
		k.trying = nil
	case !pauses && k.trying == nil:
		k.trying = make(chan struct{})
	}
	f.links.mu.Unlock()
	if fresh {
		f.o.Logger.Warn("a node is not reached", "node", k.addr, "error", err)
	}
}

// dial makes a connection and greets the peer.
func (f *Front) dial(ctx context.Context, to string, purpose byte) (*conn, error) {
	patience := 2 * quietPings * f.o.Ping
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	a := &arrivals{Conn: raw}
	t := tls.Client(a, f.clientTLS())
	c := newConn(t, a, f.o, quietPings)
	c.asks = true
	if purpose == forStream {
		c.quiet = quietStreamPings
	}
	if err = f.greet(ctx, t, c, to, purpose); err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	limitUnanswered(raw, 2*c.silence())
	return c, nil
}

// greet says who this node is, and hears who the other is.
func (f *Front) greet(ctx context.Context, t *tls.Conn, c *conn, to string, purpose byte) error {
	if err := t.HandshakeContext(ctx); err != nil {
		return explain(err)
	}
	if p := t.ConnectionState().NegotiatedProtocol; p != Protocol {
		return fmt.Errorf("it speaks %q, not %q", p, Protocol)
	}
	if _, err := t.Write(frame{kind: greet, purpose: purpose, name: f.o.Addr}.encode()); err != nil {
		return explain(err)
	}
	hello, err := c.frames.next()
	switch {
	case err != nil:
		return explain(err)
	case hello.kind != greet || hello.purpose != purpose:
		return fmt.Errorf("%w: it does not begin with a greeting", errFrame)
	case hello.name != to:
		return fmt.Errorf("the node that is reached there goes by the address %q: --cluster-addr of that node and --cluster of this one must name it alike", hello.name)
	}
	c.peer = to
	return nil
}

// explain names the most likely reason for which a handshake fails.
func explain(err error) error {
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) || strings.Contains(err.Error(), "unknown certificate authority") {
		return fmt.Errorf("it has another cluster key: %w", err)
	}
	return err
}
