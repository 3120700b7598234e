package admin

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// Bounds of the connections to the listener. The operator's tools need a handful; a
// program that opens more, by mistake or on purpose, must not take the files that the
// store needs, nor keep a health check from being answered.
const (
	// MaxConnections is how many are open at a time.
	MaxConnections = 64
	// maxStreams is how many of them have an answer that goes on.
	maxStreams = 40
)

// connections are those of a listener. When there are too many, the one goes that has
// been idle for longest; when none is idle the oldest that has shown no credential; then a
// stream, and then the oldest of all. So a new one is always let in, and a stranger who is busy never
// has one of those cut who were recognised.
//
// Of too many streams, the holders of databases' secrets have half. If they have more, the one
// with the most loses its oldest; else the operator's oldest goes. So none of them can have the
// operator's streams cut by opening more.
type connections struct {
	net.Listener

	mu    sync.Mutex
	open  []*connection // in the order of their coming
	turns uint64        // counts what happens to them
}

// A connection counts until it is closed.
type connection struct {
	net.Conn
	of *connections

	// Guarded by the lock of connections.
	idleSince uint64 // the turn when its last request ended; 0 while it has one
	known     bool   // a request of it had a good credential
	streams   bool   // its request has an answer that goes on
	owner     string // of that: the database of who asks, empty for the operator
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := &connection{Conn: conn, of: c}
	c.mu.Lock()
	n.idleSince = c.turn()
	var goes *connection
	if len(c.open) >= MaxConnections {
		goes = c.dispensable()
	}
	c.open = append(c.open, n)
	c.mu.Unlock()
	goes.cut()
	return n, nil
}

// turn returns a number that is greater than all before. The lock is held.
func (c *connections) turn() uint64 {
	c.turns++
	return c.turns
}

// dispensable returns the connection that goes for another. The lock is held.
func (c *connections) dispensable() *connection {
	var idle *connection
	for _, n := range c.open {
		if n.idleSince > 0 && (idle == nil || n.idleSince < idle.idleSince) {
			idle = n
		}
	}
	if idle != nil {
		return idle
	}
	if i := slices.IndexFunc(c.open, func(n *connection) bool { return !n.known }); i >= 0 {
		return c.open[i]
	}
	if stream := c.dispensableStream(); stream != nil {
		return stream
	}
	return c.open[0]
}

// dispensableStream returns the stream that goes for another, nil if there is none. The lock
// is held.
func (c *connections) dispensableStream() *connection {
	counts, others, most := map[string]int{}, 0, ""
	for _, n := range c.open {
		if !n.streams {
			continue
		}
		counts[n.owner]++
		if n.owner == "" {
			continue
		}
		if others++; counts[n.owner] > counts[most] || most == "" {
			most = n.owner
		}
	}
	if others <= maxStreams/2 && counts[""] > 0 {
		most = ""
	}
	i := slices.IndexFunc(c.open, func(n *connection) bool { return n.streams && n.owner == most })
	if i < 0 {
		return nil
	}
	return c.open[i]
}

// Close implements net.Conn.
func (n *connection) Close() error {
	n.of.mu.Lock()
	n.of.open = slices.DeleteFunc(n.of.open, func(other *connection) bool { return other == n })
	n.of.mu.Unlock()
	return n.Conn.Close()
}

// cut closes a connection from outside, if there is one. net/http notices.
func (n *connection) cut() {
	if n != nil {
		_ = n.Close() // whoever reads from it is told
	}
}

// note is http.Server.ConnState. With TLS the connection is below another.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	n := below(conn)
	if n == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateIdle:
		n.idleSince, n.streams = c.turn(), false
	case http.StateActive:
		n.idleSince = 0
	}
}

// below returns the connection of ours below one of net/http.
func below(conn net.Conn) *connection {
	for {
		switch outer := conn.(type) {
		case *connection:
			return outer
		case interface{ NetConn() net.Conn }:
			conn = outer.NetConn()
		default:
			return nil
		}
	}
}

// connKey is where a request's context has its connection.
type connKey struct{}

// noteKnown says that the request of a context has a good credential.
func noteKnown(ctx context.Context) {
	if n, ok := ctx.Value(connKey{}).(*connection); ok {
		n.of.mu.Lock()
		defer n.of.mu.Unlock()
		n.known = true
	}
}

// noteStream says that the answer to the request of a context goes on for as long as its
// client likes, who is the operator, or holds the secret of a database. If there are too many
// such, one goes.
func noteStream(ctx context.Context, owner string) {
	if n, ok := ctx.Value(connKey{}).(*connection); ok {
		n.of.stream(n, owner)
	}
}

func (c *connections) stream(n *connection, owner string) {
	c.mu.Lock()
	n.streams, n.owner = true, owner
	streams := 0
	for _, other := range c.open {
		if other.streams {
			streams++
		}
	}
	var goes *connection
	if streams > maxStreams {
		goes = c.dispensableStream()
	}
	c.mu.Unlock()
	goes.cut()
}
