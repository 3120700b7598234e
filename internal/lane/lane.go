// Package lane serves the ordinary requests of HTTP/1.1 connections by itself, and
// hands connections with anything else on them to net/http.
//
// Most of what a database is asked comes over few connections that stay open, in
// requests that look alike: one of five methods, a short head that arrives in one
// piece, perhaps a body of known length. For these net/http does much that is not
// needed: a goroutine that watches the connection, deadlines that are set and
// cleared, two buffers, and maps that are made again each time. A lane reads such a
// request into memory that the connection keeps, calls the same handler, and sends
// head and body with one write.
//
// A lane never refuses a request. What it does not know as ordinary, because it is
// rare, incomplete, or wrong, goes to net/http with all that was read, and net/http
// keeps the connection from then on: streams, polls, chunked bodies, other methods and
// versions, long heads, Connection: close, bad syntax. So there is one place that
// judges HTTP, and it is not this one; head.go accepts less than net/http does and
// reads what it accepts in the same way, which a fuzz test compares.
//
// A handler must not use the request or the writer after it has returned.
package lane

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a Lane. All are set.
type Options struct {
	Handler http.Handler
	// Context is that of all requests. It does not end when a client leaves.
	Context context.Context
	// HandOver takes a connection that the lane does not serve any more. It is a
	// Guest.
	HandOver func(net.Conn)
	// Held is the path of requests that are answered when something happens, perhaps in a minute. They go to net/http, by which
	// a handler learns that the client has left.
	Held string
	// ConnState is called as http.Server calls its own: when a connection has a request
	// whose head was read, and when it waits for another.
	ConnState func(net.Conn, http.ConnState)
	Logger    *slog.Logger
	Now       func() time.Time
	// First is how long a connection may take to send its first request, Idle the
	// time between requests, Write how long a client may take none of an answer.
	First, Idle, Write time.Duration
	// Fresh is how old a connection must be before Shutdown closes it without a
	// request: its first one may be on its way.
	Fresh time.Duration
}

// A Lane serves connections.
type Lane struct {
	opts     Options
	template http.Request // what all requests begin with
	date     atomic.Pointer[date]

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
}

// New returns a Lane without connections.
func New(opts Options) *Lane {
	template := (&http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(opts.Context)
	return &Lane{opts: opts, template: *template, conns: map[*conn]struct{}{}}
}

// Serve serves a connection in a goroutine of its own.
func (l *Lane) Serve(raw net.Conn) {
	c := &conn{lane: l, raw: raw, opened: l.opts.Now(), remote: raw.RemoteAddr().String()}
	if secure, ok := raw.(*tls.Conn); ok {
		state := secure.ConnectionState()
		c.tls = &state
	}
	if !l.add(c) {
		_ = raw.Close()
		return
	}
	go c.serve()
}

// add notes a connection, or refuses it.
func (l *Lane) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.conns[c] = struct{}{}
	}
	return !l.closed
}

// remove forgets a connection.
func (l *Lane) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// Shutdown closes connections as soon as they have no request, and returns when all
// are gone and no more are to come, or ctx ends. One that was handed over is gone when
// its request has begun. While more returns true, those that come are served.
func (l *Lane) Shutdown(ctx context.Context, more func() bool) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		last := !more()
		if l.closeIdle(last) == 0 && last {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// closeIdle ends the connections without a request, and returns how many are left.
// If they are the last, no other is taken.
func (l *Lane) closeIdle(last bool) int {
	now := l.opts.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = l.closed || last
	for c := range l.conns {
		if c.state.Load() != stateNew || now.Sub(c.opened) >= l.opts.Fresh {
			c.closeIdle()
		}
	}
	return len(l.conns)
}

// Cut closes all connections. Their handlers may still be returning.
func (l *Lane) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.conns {
		c.cut()
	}
}
