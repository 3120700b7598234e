package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// recordTypeHandshake is the first byte of every TLS connection. No HTTP request
// begins with it.
const recordTypeHandshake = 0x16

// portOptions configure a port. All are set.
type portOptions struct {
	tls    *tls.Config
	logger *slog.Logger
	// secure and plain serve a connection of HTTP/1.1.
	secure, plain func(net.Conn)
	// opening is the time a connection has from being accepted to the end of its
	// handshake, or for plain HTTP to its first byte.
	opening time.Duration
	// maxOpening is how many connections may be in that time at once. It bounds
	// what a flood takes: 6 KiB for a client that is silent, and 40 KiB for one
	// that stops in the middle of its handshake.
	maxOpening int
}

// A port accepts the connections of one TCP port that serves both HTTPS and
// plain HTTP, and sorts them by their first byte into two listeners.
//
// Accepting never waits for a client: each connection is opened in a goroutine
// of its own, and is handed on when its handshake is done. Those of HTTP/1.1 go to
// a lane first, and to a listener when that lets go of them. What the secure
// listener accepts of a client that has chosen HTTP/2 is a *tls.Conn, which is how
// net/http finds out.
type port struct {
	options portOptions
	tcp     net.Listener
	secure  *inbox
	plain   *inbox
	// turns holds a token for each handshake that is computing: a storm of
	// clients must not starve the requests of those who are in.
	turns chan struct{}

	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	goroutines sync.WaitGroup
	opens      atomic.Int64 // connections that were accepted and not yet handed on

	mu      sync.Mutex
	closed  bool
	opening *list.List // of net.Conn, the oldest first
}

func newPort(tcp net.Listener, options portOptions) *port {
	p := &port{
		options: options,
		tcp:     tcp,
		secure:  newInbox(tcp.Addr()),
		plain:   newInbox(tcp.Addr()),
		turns:   make(chan struct{}, 4*runtime.GOMAXPROCS(0)),
		opening: list.New(),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// start begins to accept. It is called once, and not after Close.
func (p *port) start() {
	p.goroutines.Go(p.accept)
}

// stop ends accepting. Connections that are being opened go on, and so do the
// two listeners, which get them.
func (p *port) stop() {
	_ = p.tcp.Close() // a second time fails, and does no harm
}

// Close also cuts the connections that are being opened. It returns when all
// goroutines are gone.
func (p *port) Close() {
	p.stop()
	p.cancel()
	p.mu.Lock()
	p.closed = true
	var opening []net.Conn
	for e := p.opening.Front(); e != nil; e = e.Next() {
		opening = append(opening, e.Value.(net.Conn))
	}
	p.mu.Unlock()
	for _, conn := range opening {
		conn.Close()
	}
	p.secure.close()
	p.plain.close()
	p.goroutines.Wait()
}

// accept is the loop of the port.
func (p *port) accept() { acceptAll(p.ctx, p.tcp, p.options.logger, p.admit) }

// acceptAll hands on what a listener accepts until that is closed. Another error does
// not end it: the process may be out of file descriptors, and have some again in a
// moment.
func acceptAll(ctx context.Context, tcp net.Listener, logger *slog.Logger, admit func(net.Conn)) {
	const shortest, longest = 5 * time.Millisecond, time.Second
	wait := shortest
	for {
		conn, err := tcp.Accept()
		if err == nil {
			wait = shortest
			admit(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		logger.Warn("no connection can be accepted", "error", err, "retry_in", wait.String())
		_ = pause.For(ctx, wait)
		wait = min(2*wait, longest)
	}
}

// admit starts to open a connection. If too many are being opened, the oldest
// has to go: whoever speaks at once gets through even while silent clients come
// in numbers, which refusing the newest would not allow.
func (p *port) admit(conn net.Conn) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		conn.Close()
		return
	}
	var oldest net.Conn
	if p.opening.Len() >= p.options.maxOpening {
		oldest = p.opening.Remove(p.opening.Front()).(net.Conn)
	}
	place := p.opening.PushBack(conn)
	p.mu.Unlock()
	if oldest != nil {
		oldest.Close()
	}
	p.opens.Add(1)
	p.goroutines.Go(func() {
		defer p.opens.Add(-1)
		p.open(conn, place)
	})
}

// open finds out what a connection speaks, and hands it on or closes it.
func (p *port) open(conn net.Conn, place *list.Element) {
	ctx, cancel := context.WithTimeout(p.ctx, p.options.opening)
	defer cancel()
	opened, serve, err := p.greet(ctx, conn)
	p.mu.Lock()
	p.opening.Remove(place) // does nothing if it had to go
	p.mu.Unlock()
	if err != nil {
		p.options.logger.Debug("a connection was not opened", "from", conn.RemoteAddr(), "error", err)
		conn.Close()
		return
	}
	serve(opened)
}

// greet reads the first byte and, if it is that of TLS, does the handshake. It
// returns the connection, and who is to serve it.
func (p *port) greet(ctx context.Context, conn net.Conn) (net.Conn, func(net.Conn), error) {
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, nil, err
	}
	var first [1]byte
	if _, err := conn.Read(first[:]); err != nil {
		return nil, nil, err
	}
	sniffed := &sniffedConn{Conn: conn, socket: socketOf(conn), first: first[0], unread: true}
	if first[0] != recordTypeHandshake {
		return sniffed, p.options.plain, conn.SetDeadline(time.Time{})
	}
	secure := tls.Server(sniffed, p.options.tls)
	sniffed.turn = &turn{turns: p.turns, over: ctx.Done()}
	err := sniffed.turn.take()
	if err == nil {
		err = secure.HandshakeContext(ctx)
	}
	sniffed.turn.give()
	sniffed.turn = nil // from here on, reads and writes are nobody's business
	if err != nil {
		return nil, nil, err
	}
	if secure.ConnectionState().NegotiatedProtocol == "h2" {
		return secure, p.secure.put, conn.SetDeadline(time.Time{})
	}
	return secure, p.options.secure, conn.SetDeadline(time.Time{})
}

// A turn is the right of one handshake to compute. It is given back while the
// client is waited for. Otherwise a handful of clients that send half a
// handshake would hold all turns until their time is up.
type turn struct {
	turns chan struct{}
	over  <-chan struct{} // the handshake has no time left
	taken bool
}

// take waits for the turn. It fails when the time is over.
func (t *turn) take() error {
	select {
	case t.turns <- struct{}{}:
		t.taken = true
		return nil
	case <-t.over:
		return os.ErrDeadlineExceeded
	}
}

// give returns the turn, if there is one.
func (t *turn) give() {
	if t.taken {
		<-t.turns
		t.taken = false
	}
}

// without calls f, which waits for the client, without the turn.
func (t *turn) without(f func([]byte) (int, error), b []byte) (int, error) {
	t.give()
	n, err := f(b)
	if late := t.take(); err == nil {
		err = late
	}
	return n, err
}

// A sniffedConn is a connection of which one byte was read to see what it
// speaks. The first Read returns that byte with those behind it: by itself it is no
// use to anybody, and a request that comes in two pieces is not ordinary to a lane.
type sniffedConn struct {
	net.Conn
	socket net.Conn // below Conn, which has no part in reading and writing
	first  byte
	unread bool
	turn   *turn // during the handshake
}

// NetConn returns the connection below.
func (c *sniffedConn) NetConn() net.Conn { return c.Conn }

func (c *sniffedConn) Read(b []byte) (int, error) {
	if c.unread && len(b) > 0 {
		b[0], c.unread = c.first, false
		if len(b) == 1 {
			return 1, nil
		}
		n, err := c.Read(b[1:])
		return 1 + n, err
	}
	if c.turn != nil {
		return c.turn.without(c.socket.Read, b)
	}
	return c.socket.Read(b)
}

func (c *sniffedConn) Write(b []byte) (int, error) {
	if c.turn != nil {
		return c.turn.without(c.socket.Write, b)
	}
	return c.socket.Write(b)
}

// CloseWrite lets net/http end an answer properly while the client still sends.
func (c *sniffedConn) CloseWrite() error { return closeWrite(c.Conn) }

// An inbox is a net.Listener for connections that somebody else has accepted.
type inbox struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newInbox(addr net.Addr) *inbox {
	return &inbox{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// put hands a connection to whoever accepts next. If the inbox is closed, the
// connection is.
func (i *inbox) put(conn net.Conn) {
	select {
	case i.conns <- conn:
	case <-i.done:
		conn.Close()
	}
}

// Accept implements net.Listener.
func (i *inbox) Accept() (net.Conn, error) {
	select {
	case conn := <-i.conns:
		return conn, nil
	case <-i.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It does not stop the port.
func (i *inbox) Close() error {
	i.close()
	return nil
}

func (i *inbox) close() { i.once.Do(func() { close(i.done) }) }

// Addr implements net.Listener.
func (i *inbox) Addr() net.Addr { return i.addr }
