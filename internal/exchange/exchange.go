// Package exchange is what stands around a request on every HTTP port of the
// server.
//
// An Exchange is one request with its answer. It is the only http.ResponseWriter
// between the connection and a handler: it knows the request's id, whether the
// answer has begun, what its status and its length are, and what the handler has
// found the request to be. Whoever needs one of these asks Of(w); nothing else
// wraps a ResponseWriter, so there is nothing to unwrap.
//
// Running counts the requests that are being answered, and says when none is left.
// Hold, Settle and Tails count what requests of HTTP/2 hold while their clients are waited for.
// Fail writes an error, in the one form that all clients know.
//
// The package decides nothing: which status an error has is up to the front that
// answers, and who is told of an exchange is up to the server.
package exchange

import (
	"bufio"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
)

// IDHeader tells a client the id under which the log has its request.
const IDHeader = "X-Request-Id"

// An Exchange is one request and its answer. It belongs to the goroutine of the
// handler.
type Exchange struct {
	to http.ResponseWriter
	id [1]string // its header has this slice

	body     countedBody
	status   int
	bytesOut int64
	begun    bool
	unsent   bool         // some of the answer was written since it was flushed, and nobody sees to it
	draining *atomic.Bool // as EndWhile says; nil for never

	route, database string
	identified      bool
}

// New returns the exchange that begins with a request, and gives the request its
// id. The exchange counts what is read of the request's body.
func New(w http.ResponseWriter, r *http.Request) *Exchange {
	x := &Exchange{to: w, id: [1]string{newID()}}
	w.Header()[IDHeader] = x.id[:]
	if r.Body != nil && r.Body != http.NoBody {
		x.body.ReadCloser = r.Body
		r.Body = &x.body
	}
	return x
}

// Of returns the exchange that a handler was called with; nil if there is none
// around it, as in tests of a handler alone.
func Of(w http.ResponseWriter) *Exchange {
	x, _ := w.(*Exchange)
	return x
}

// newID returns 16 hexadecimal digits. They only have to differ.
func newID() string {
	var raw [8]byte
	var text [16]byte
	for i, n := 0, rand.Uint64(); i < len(raw); i++ {
		raw[i] = byte(n >> (8 * i))
	}
	hex.Encode(text[:], raw[:])
	return string(text[:])
}

type countedBody struct {
	io.ReadCloser
	n int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	return n, err
}

// Note says what the request turned out to be: its route, and its database, which
// exists. The last word counts.
func (x *Exchange) Note(route, database string) {
	x.route, x.database = route, database
}

// NoteIdentified says that the credential of the request is good.
func (x *Exchange) NoteIdentified() {
	x.identified = true
}

// EndWhile has the connection end with the answer if draining is true when the
// answer begins.
func (x *Exchange) EndWhile(draining *atomic.Bool) { x.draining = draining }

// Noted returns what Note was told last.
func (x *Exchange) Noted() (route, database string) { return x.route, x.database }

// Identified reports whether the credential of the request was found to be good.
func (x *Exchange) Identified() bool { return x.identified }

// ID returns the id of the request.
func (x *Exchange) ID() string { return x.id[0] }

// Begun reports whether the head of the answer may be out.
func (x *Exchange) Begun() bool { return x.begun }

// Status returns the status of the answer, 0 if it has none yet.
func (x *Exchange) Status() int { return x.status }

// Bytes returns how much of the body of the request was read, and how much of the
// answer's was written.
func (x *Exchange) Bytes() (in, out int64) { return x.body.n, x.bytesOut }

// Header implements http.ResponseWriter.
func (x *Exchange) Header() http.Header { return x.to.Header() }

// WriteHeader implements http.ResponseWriter.
func (x *Exchange) WriteHeader(status int) {
	switch { // others announce an answer to come
	case status >= http.StatusOK:
		x.begin(status)
	case status == http.StatusSwitchingProtocols && x.status == 0:
		x.status = status
	}
	x.to.WriteHeader(status)
}

// Begin is called before the head goes out, and when a handler that has written
// nothing returns: that is an answer as well.
func (x *Exchange) Begin() { x.begin(http.StatusOK) }

func (x *Exchange) begin(status int) {
	if x.status == 0 {
		x.status = status
	}
	if x.begun {
		return
	}
	x.begun, x.unsent = true, true
	if x.draining != nil && x.draining.Load() {
		// In HTTP/2 this makes net/http send GOAWAY.
		x.Header().Set("Connection", "close")
	}
}

// Write implements http.ResponseWriter.
func (x *Exchange) Write(p []byte) (int, error) {
	x.Begin()
	n, err := x.to.Write(p)
	x.bytesOut += int64(n)
	x.unsent = x.unsent || n > 0
	return n, err
}

// WriteString spares io.WriteString a copy.
func (x *Exchange) WriteString(s string) (int, error) {
	x.Begin()
	n, err := io.WriteString(x.to, s)
	x.bytesOut += int64(n)
	x.unsent = x.unsent || n > 0
	return n, err
}

// Flush implements http.Flusher.
func (x *Exchange) Flush() { _ = x.FlushError() }

// FlushError is what http.ResponseController calls.
func (x *Exchange) FlushError() error {
	x.Begin()
	err := http.NewResponseController(x.to).Flush()
	x.unsent = x.unsent && err != nil
	return err
}

// Hijack implements http.Hijacker: whoever takes the connection switches the
// protocol.
func (x *Exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(x.to).Hijack()
	if err == nil && x.status == 0 {
		x.status = http.StatusSwitchingProtocols
	}
	return conn, buffered, err
}

// Unwrap gives http.ResponseController the deadlines and the rest.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.to }
