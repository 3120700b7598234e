package server

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/exchange"
)

// connections bounds how many connections are open at a time, on all ports
// together, and shares them between addresses as room says.
//
// One that is refused is cut at once, and not left waiting: its client learns that
// it has to come back, and a health check that the server is full.
type connections struct {
	logger  *slog.Logger
	opened  time.Time
	proxies clientaddr.Proxies // which are exempt from the shares: many clients come through one

	mu   sync.Mutex
	room *room

	// For the operator: how many were refused because all were in use, or because
	// their address had its share, and how many were closed for others.
	full, overShare, shed             atomic.Uint64
	warnFull, warnOverShare, warnShed exchange.Seldom
}

func newConnections(limits servingLimits, proxies clientaddr.Proxies, logger *slog.Logger) *connections {
	return &connections{logger: logger, opened: time.Now(), proxies: proxies, room: newRoom(limits.maxConnections, limits.perAddress)}
}

// bound returns a listener whose connections count.
func (c *connections) bound(tcp net.Listener) net.Listener {
	return &boundListener{tcp, c}
}

// now returns the time of the room.
func (c *connections) now() time.Duration { return time.Since(c.opened) }

// admit lets a connection in, or cuts it and returns nil.
func (c *connections) admit(conn net.Conn) net.Conn {
	n := &boundConn{Conn: conn, connections: c}
	n.seat.conn = conn
	network := c.networkOf(conn)
	c.mu.Lock()
	verdict, shed := c.room.take(&n.seat, network, c.now())
	c.mu.Unlock()
	if verdict != admitted {
		c.refuse(conn, verdict, network)
		return nil
	}
	if shed != nil {
		c.close(shed)
	}
	return n
}

// networkOf returns the address that a connection counts by. It is not valid if it
// counts by none.
func (c *connections) networkOf(conn net.Conn) netip.Addr {
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || c.proxies.Contain(remote.AddrPort().Addr()) {
		return netip.Addr{}
	}
	return clientaddr.Network(remote.AddrPort().Addr())
}

// refuse cuts a connection. It counts and logs first: who sees the cut finds
// the reason in the log.
func (c *connections) refuse(conn net.Conn, verdict verdict, network netip.Addr) {
	defer conn.Close()
	if verdict == refusedFull {
		c.full.Add(1)
		if n, ok := c.warnFull.Count(time.Now()); ok {
			c.logger.Warn("connections are refused: as many as may be are open; see --max-connections", "open", c.room.most, "refused", n)
		}
		return
	}
	c.overShare.Add(1)
	if n, ok := c.warnOverShare.Count(time.Now()); ok {
		c.logger.Warn("connections are refused: their address has its share, and more than half of all are in use; if it is a proxy's, name it by --trusted-proxy; else see --max-connections-per-address",
			"from", network, "share", c.room.share, "refused", n)
	}
}

// close closes an idle connection in favour of another. Its goroutine notices. The
// TLS above it does not say goodbye: the client could hold that up.
func (c *connections) close(shed *seat) {
	defer shed.conn.Close()
	c.shed.Add(1)
	if n, ok := c.warnShed.Count(time.Now()); ok {
		c.logger.Warn("idle connections are closed to let other addresses in: as many as may be are open, and theirs has more than its share; if it is a proxy's, name it by --trusted-proxy; else see --max-connections",
			"from", c.networkOf(shed.conn), "share", c.room.share, "closed", n)
	}
}

// note is told by lanes and by net/http when a request begins and when the connection
// has none any more. It takes no lock: every request comes by here twice. A connection
// that was handed over, which net/http calls new, stays what it was.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	n := boundBelow(conn)
	if n == nil {
		return
	}
	switch state {
	case http.StateActive, http.StateHijacked: // a stream is a request, too
		n.seat.idleSince.Store(busy)
	case http.StateIdle:
		n.seat.idleSince.Store(int64(c.now()))
		n.tails.Idle()
	case http.StateClosed:
		n.tails.Close()
	}
}

// boundBelow returns the connection of ours below one of net/http or a lane.
func boundBelow(conn net.Conn) *boundConn {
	for {
		switch outer := conn.(type) {
		case *boundConn:
			return outer
		case *tls.Conn: // this and the next are found faster by their type
			conn = outer.NetConn()
		case *sniffedConn:
			conn = outer.Conn
		case interface{ NetConn() net.Conn }:
			conn = outer.NetConn()
		default:
			return nil
		}
	}
}

type boundListener struct {
	net.Listener
	connections *connections
}

func (l *boundListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if bound := l.connections.admit(conn); bound != nil {
			return bound, nil
		}
	}
}

// A boundConn counts until it is closed.
type boundConn struct {
	net.Conn
	connections *connections
	seat        seat
	tails       *exchange.Tails // of HTTP/2; nil for none
}

// NetConn returns the connection below.
func (c *boundConn) NetConn() net.Conn { return c.Conn }

func (c *boundConn) Close() error {
	c.connections.mu.Lock()
	c.connections.room.leave(&c.seat)
	c.connections.mu.Unlock()
	return c.Conn.Close()
}

// socketOf returns what a connection that counts reads and writes by. One that does not is
// that itself.
func socketOf(conn net.Conn) net.Conn {
	if bound, ok := conn.(*boundConn); ok {
		return bound.Conn
	}
	return conn
}

// CloseWrite lets net/http end an answer properly while the client still sends.
func (c *boundConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite closes one half of a connection that has two.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
