package server

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// connections bounds how many connections are open at a time, on all ports
// together.
//
// One too many is cut at once, and not left waiting: its client learns that it
// has to come back, and a health check that the server is full.
type connections struct {
	most   int64
	open   atomic.Int64
	logger *slog.Logger
	// refused, if set, counts for the operator.
	refused *atomic.Uint64
	warn    seldom
}

// bound returns a listener whose connections count.
func (c *connections) bound(tcp net.Listener) net.Listener {
	return &boundListener{tcp, c}
}

// refuse cuts a connection. It counts and logs first: who sees the cut finds
// the reason in the log.
func (c *connections) refuse(conn net.Conn) {
	defer conn.Close()
	if c.refused != nil {
		c.refused.Add(1)
	}
	if n, ok := c.warn.count(time.Now()); ok {
		c.logger.Warn("connections are refused: as many as may be are open; see --max-connections", "open", c.most, "refused", n)
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
		c := l.connections
		if c.open.Add(1) <= c.most {
			return &boundConn{Conn: conn, connections: c}, nil
		}
		c.open.Add(-1)
		c.refuse(conn)
	}
}

// A boundConn counts until it is closed.
type boundConn struct {
	net.Conn
	connections *connections
	once        sync.Once
}

// NetConn returns the connection below.
func (c *boundConn) NetConn() net.Conn { return c.Conn }

func (c *boundConn) Close() error {
	c.once.Do(func() { c.connections.open.Add(-1) })
	return c.Conn.Close()
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
