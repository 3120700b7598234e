package outbox

import (
	"net"
	"time"
)

// PieceBytes is how much is written at a time. A client must take so much within
// Options.Blocked, or it takes nothing worth waiting for.
const PieceBytes = 64 << 10

// A Patience is how long writes may wait for a client.
type Patience struct {
	now   func() time.Time
	limit time.Duration
	until time.Time // the deadline that is set
}

// Patience returns the patience with one client.
func (c *Clients) Patience() Patience { return Patience{now: c.opts.Now, limit: c.opts.Blocked} }

// Extend sets a deadline that is at least the limit away, and at most half more.
// Setting one for each write would take longer than the rest of what a frame
// takes here.
func (p *Patience) Extend(set func(time.Time) error) error {
	now := p.now()
	if p.until.Sub(now) >= p.limit {
		return nil
	}
	p.until = now.Add(p.limit + p.limit/2)
	return set(p.until)
}

// Lift takes the deadline away that was set.
func (p *Patience) Lift(set func(time.Time) error) error {
	p.until = time.Time{}
	return set(p.until)
}

// A Conn is the Way to a client over a connection of its own.
type Conn struct {
	conn net.Conn
	head []byte // not sent yet
	peer peer   // none if the front reads
	Patience
}

// ConnOptions configure a Conn.
type ConnOptions struct {
	// Head is sent in front of the first bytes, and with the first Send even if that
	// is of none.
	Head []byte
	// Heard says that the front reads what the client sends. It then learns from
	// reading that the client has gone, and calls Client.End. Otherwise what the client
	// sends is thrown away.
	Heard bool
}

// NewConn returns the way over a connection. It takes the deadlines away that are set.
func (c *Clients) NewConn(conn net.Conn, opts ConnOptions) *Conn {
	_ = conn.SetDeadline(time.Time{}) // a write sets its own
	way := &Conn{conn: conn, head: opts.Head, Patience: c.Patience()}
	if peer := peerOf(conn); !opts.Heard {
		way.peer = peer
	}
	return way
}

// Send implements Way.
func (w *Conn) Send(p []byte) error {
	if w.head != nil {
		p = append(w.head, p...)
		w.head = nil
	}
	for len(p) > 0 {
		if err := w.Extend(w.conn.SetWriteDeadline); err != nil {
			return err
		}
		n := min(len(p), PieceBytes)
		if _, err := w.conn.Write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// Gone implements Way.
func (w *Conn) Gone() bool { return w.peer.gone() }

// Close implements Way.
func (w *Conn) Close() { _ = w.conn.Close() }

// Cut implements Way.
func (w *Conn) Cut() { _ = w.conn.Close() }

// A peer is the other end of a connection that nobody reads from.
type peer struct {
	conn rawConn
}

// A rawConn is a connection as the system knows it.
type rawConn interface {
	Read(f func(fd uintptr) (done bool)) error
	Control(f func(fd uintptr)) error
}

// EndWithPeer has the system end a connection when its peer vanishes, as NewConn does: for a
// connection that carries what another server has for a client.
func EndWithPeer(conn net.Conn) { peerOf(conn) }

// peerOf returns the peer of a connection, however wrapped that is, and has the
// system end the connection when the peer vanishes. Of one that the system does not
// know, it is never known that it has gone.
func peerOf(conn net.Conn) peer {
	for {
		switch c := conn.(type) {
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		case *net.TCPConn:
			raw, err := c.SyscallConn()
			if err != nil {
				return peer{}
			}
			p := peer{raw}
			p.watch()
			return p
		default:
			return peer{}
		}
	}
}
