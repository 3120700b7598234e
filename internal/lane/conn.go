package lane

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// inBytes is the longest head that is served here.
	inBytes = 4 << 10
	// unreadBytes is how much of a body that the handler has left is read, so that
	// the connection can be kept.
	unreadBytes = 64 << 10
	// lingerTime is how long a client may go on sending after an answer that ends
	// the connection. One that is cut while it sends may not see the answer.
	lingerTime = 500 * time.Millisecond
	// lookTime is for reading what has arrived on a connection that is closed. It
	// takes no time, but the machine may be busy.
	lookTime = 100 * time.Millisecond
)

// The states of a connection.
const (
	stateNew    int32 = iota // waits for its first request
	stateIdle                // waits for another
	stateActive              // has one
	stateClosed              // was closed while it waited
)

// A conn is a connection with all that is needed for one request at a time.
type conn struct {
	lane   *Lane
	raw    net.Conn
	tls    *tls.ConnectionState
	remote string
	opened time.Time
	state  atomic.Int32

	in         [inBytes]byte
	start, end int // what of it was read and not used yet
	blanks     int // how many CRs and LFs may come before the next request
	skipped    int // and how many have come

	request  request
	response response

	reading, writing patience
}

// serve answers requests until the connection ends or is handed over.
func (c *conn) serve() {
	here := true
	defer func() {
		if here {
			c.lane.remove(c)
		}
	}()
	limit, answered := c.lane.opts.First, false
	for {
		if c.start == c.end && !c.wait(limit) {
			_ = c.raw.Close()
			return
		}
		if c.skipBlanks() {
			continue
		}
		if !c.next() {
			if answered && c.skipped+c.end-c.start < peekBytes {
				if c.more() {
					continue
				}
				_ = c.raw.Close()
				return
			}
			here = false // from now on, a Guest says when it is gone
			c.lane.opts.HandOver(c.rest())
			return
		}
		c.lane.opts.ConnState(c.raw, http.StateActive)
		if !c.answer() {
			c.finish()
			return
		}
		limit, answered = c.lane.opts.Idle, true
	}
}

// peekBytes is how much net/http waits for before it reads a request that is not the
// first, blanks included. Who ends the connection before is told nothing.
const peekBytes = 4

// more reads on until that is there; false if the connection ends before.
func (c *conn) more() bool {
	c.start, c.end = 0, copy(c.in[:], c.in[c.start:c.end])
	if c.waitFor(c.lane.opts.Idle) != nil {
		return false
	}
	c.idle()
	for c.skipped+c.end < peekBytes {
		n, err := c.raw.Read(c.in[c.end:])
		c.end += n
		if n == 0 && err != nil {
			return false
		}
	}
	return c.state.CompareAndSwap(stateIdle, stateActive) || c.look()
}

// idle says that the connection has no request, unless it has had none yet.
func (c *conn) idle() {
	if c.state.CompareAndSwap(stateActive, stateIdle) {
		c.lane.opts.ConnState(c.raw, http.StateIdle)
	}
}

// wait reads the beginning of a request; false if none comes.
func (c *conn) wait(limit time.Duration) bool {
	c.start, c.end = 0, 0
	if c.waitFor(limit) != nil {
		return false
	}
	c.idle()
	if c.state.Load() != stateClosed { // it may be, before there was a deadline that could be moved
		c.end, _ = c.raw.Read(c.in[:]) // an error will be there again
		if c.end > 0 && (c.state.CompareAndSwap(stateIdle, stateActive) || c.state.CompareAndSwap(stateNew, stateActive)) {
			return true
		}
	}
	return c.state.Load() == stateClosed && c.look()
}

// look takes a request that was there already when the connection was closed: who
// sent it could not know. What comes later is lost.
func (c *conn) look() bool {
	c.reading = patience{}
	if c.end == 0 && c.allow(lookTime) == nil {
		c.end, _ = c.raw.Read(c.in[:])
	}
	c.state.Store(stateActive)
	return c.end > 0 && c.allow(c.lane.opts.Idle) == nil
}

// allow sets the deadline of a connection that was closed, behind closeIdle, which
// moves it and has the lock.
func (c *conn) allow(limit time.Duration) error {
	c.lane.mu.Lock()
	defer c.lane.mu.Unlock()
	return c.raw.SetReadDeadline(c.lane.opts.Now().Add(limit))
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// closeIdle ends the connection unless it has a request. It only wakes the goroutine
// that waits for one: closing TLS takes a write, which a client can hold up.
func (c *conn) closeIdle() {
	for _, state := range []int32{stateNew, stateIdle} {
		if c.state.CompareAndSwap(state, stateClosed) {
			_ = c.raw.SetReadDeadline(past)
		}
	}
}

// cut closes the connection without a word to the client.
func (c *conn) cut() {
	if secure, ok := c.raw.(*tls.Conn); ok {
		_ = secure.NetConn().Close()
		return
	}
	_ = c.raw.Close()
}

// maxBlanks is how much net/http skips behind a POST: old clients end its body with
// a line.
const maxBlanks = 4

// skipBlanks skips what may come before a request; true if there is nothing else.
func (c *conn) skipBlanks() bool {
	for c.start < c.end && c.blanks > 0 && (c.in[c.start] == '\r' || c.in[c.start] == '\n') {
		c.start++
		c.blanks--
		c.skipped++
	}
	return c.start == c.end
}

// headEnd ends a head.
var headEnd = []byte("\r\n\r\n")

// next reads the head of the next request; false if it is not ordinary.
func (c *conn) next() bool {
	unread := c.in[c.start:c.end]
	i := bytes.Index(unread, headEnd)
	if i < 0 {
		return false
	}
	head := string(unread[:i+len("\r\n")]) // the handler may keep parts of it
	c.request.reset(c)
	if !c.request.parse(head) || c.request.url.Path == c.lane.opts.Held {
		return false
	}
	c.start += i + len(headEnd)
	c.blanks, c.skipped = 0, 0
	if c.request.http.Method == http.MethodPost {
		c.blanks = maxBlanks
	}
	return true
}

// answer has the handler answer the request; false if the connection must end.
func (c *conn) answer() (kept bool) {
	w := &c.response
	w.reset(c)
	defer func() {
		w.release()
		if cause := recover(); cause != nil {
			kept = false
			c.panicked(cause)
		}
	}()
	c.lane.opts.Handler.ServeHTTP(w, &c.request.http)
	if err := w.finish(); err != nil || w.last {
		return false
	}
	return c.request.body.discard(unreadBytes)
}

// panicked tells of a defect: whoever stands around handlers answers for them.
func (c *conn) panicked(cause any) {
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		return
	}
	c.lane.opts.Logger.Error("a handler panicked", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
}

// finish ends the connection. If the client may still be sending, it gets a moment to
// see the answer.
func (c *conn) finish() {
	defer c.raw.Close()
	if c.request.body.left == 0 || !c.response.done {
		return
	}
	half, ok := c.raw.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.raw.SetReadDeadline(c.lane.opts.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyBuffer(io.Discard, onlyReader{c.raw}, c.in[:])
	}
}

// onlyReader hides everything but Read.
type onlyReader struct{ io.Reader }

// rest returns the connection with what was read of it and not used.
func (c *conn) rest() net.Conn {
	_ = c.raw.SetDeadline(time.Time{})
	unread := bytes.Clone(c.in[c.start:c.end])
	if secure, ok := c.raw.(*tls.Conn); ok {
		r := &secureRest{Conn: secure, unread: unread}
		r.conn.Store(c)
		return r
	}
	r := &plainRest{Conn: c.raw, unread: unread}
	r.conn.Store(c)
	return r
}

// A Guest is what a connection is to whoever it was handed over to. It counts for
// its lane until its first request has begun, or it is closed: http.Server.Shutdown
// drops a request that was not read yet when it was called.
type Guest interface{ Begun() }

// guest implements Guest. It keeps nothing of the lane when that has let go.
type guest struct{ conn atomic.Pointer[conn] }

// Begun tells that the handler has the first request. It may be called again.
func (g *guest) Begun() {
	if c := g.conn.Swap(nil); c != nil {
		c.lane.remove(c)
	}
}

// A plainRest is a connection of which something was read already.
type plainRest struct {
	net.Conn
	guest
	unread []byte
}

func (r *plainRest) Read(p []byte) (int, error) { return readRest(&r.unread, p, r.Conn) }

// Close implements net.Conn.
func (r *plainRest) Close() error {
	r.Begun()
	return r.Conn.Close()
}

// NetConn returns the connection below.
func (r *plainRest) NetConn() net.Conn { return r.Conn }

// CloseWrite lets net/http end an answer properly while the client still sends.
func (r *plainRest) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// A secureRest is one over TLS: its ConnectionState tells net/http so.
type secureRest struct {
	*tls.Conn
	guest
	unread []byte
}

func (r *secureRest) Read(p []byte) (int, error) { return readRest(&r.unread, p, r.Conn) }

// Close implements net.Conn.
func (r *secureRest) Close() error {
	r.Begun()
	return r.Conn.Close()
}

func readRest(unread *[]byte, p []byte, from io.Reader) (int, error) {
	if len(*unread) == 0 {
		return from.Read(p)
	}
	n := copy(p, *unread)
	if *unread = (*unread)[n:]; len(*unread) == 0 {
		*unread = nil
	}
	return n, nil
}

// A patience is how long a connection waits for its client. Setting a deadline
// takes longer than much else here, so it is set a little farther away than it need
// be, and then stands for a while.
type patience struct {
	until time.Time // the deadline that is set; zero if it is not known
}

// next returns the deadline to set for a wait of at least limit, and at most a
// quarter more; false if the one that is set will do.
func (p *patience) next(now time.Time, limit time.Duration) (time.Time, bool) {
	if left := p.until.Sub(now); left >= limit && left <= limit+limit/4 {
		return p.until, false
	}
	p.until = now.Add(limit + limit/4)
	return p.until, true
}

// waitFor bounds how long reads wait for the client.
func (c *conn) waitFor(limit time.Duration) error {
	if deadline, ok := c.reading.next(c.lane.opts.Now(), limit); ok {
		return c.raw.SetReadDeadline(deadline)
	}
	return nil
}
