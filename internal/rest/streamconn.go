package rest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/outbox"
)

// takeOver takes the connection of an HTTP/1.1 request away from net/http, whose
// goroutine and buffers would stay for as long as the stream does. Without a
// length and without chunks, the end of the connection is the end of the stream.
func (c *call) takeOver(s *stream) error {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		s.watch.Close()
		s.client.Abandon()
		return fmt.Errorf("take a connection over: %w", err)
	}
	header := c.w.Header()
	header.Set("Connection", "close")
	header.Set("Date", c.opts.Now().UTC().Format(http.TimeFormat))
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 OK\r\n")
	_ = header.Write(&head) // to memory
	head.WriteString("\r\n")
	s.client.Begin(c.opts.Streams.NewConn(conn, outbox.ConnOptions{Head: head.Bytes()}))
	return nil
}

// longestTrace is how long a header may be that is kept for the log.
const longestTrace = 64

// forgetHead lets go of the head of a request of HTTP/2, which may have 128 KiB: net/http, and those around the handler,
// have it for as long as the stream lasts. The log needs the path and the trace.
func forgetHead(c *call) {
	traces := c.r.Header["Traceparent"]
	clear(c.r.Header)
	if len(traces) == 1 && len(traces[0]) <= longestTrace {
		c.r.Header.Set("Traceparent", strings.Clone(traces[0]))
	}
	c.r.RequestURI, c.r.URL.RawQuery, c.r.Host = "", "", ""
	c.r.URL.Path, c.r.URL.RawPath = strings.Clone(c.r.URL.Path), strings.Clone(c.r.URL.RawPath)
	c.question = question{verb: c.verb, target: target{kind: c.target.kind, path: c.target.path.Clone()}}
}

// A responseWay is the way to a client of HTTP/2.
type responseWay struct {
	w       http.ResponseWriter
	control *http.ResponseController
	outbox.Patience

	mu      sync.Mutex
	writing bool // net/http wants no calls after the handler has returned
	closed  bool
}

// Send implements outbox.Way. It sets a deadline that is over with the write: net/http would end the
// stream at it even if nothing is written then.
func (w *responseWay) Send(p []byte) error {
	if !w.begin() {
		return net.ErrClosed
	}
	defer w.end()
	for piece := range slices.Chunk(p, outbox.PieceBytes) {
		// Errors are of writers that know no deadlines: those of tests.
		_ = w.Extend(w.control.SetWriteDeadline)
		if _, err := w.w.Write(piece); err != nil {
			return err
		}
	}
	return w.control.Flush()
}

func (w *responseWay) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = !w.closed
	return w.writing
}

func (w *responseWay) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = false
	if !w.closed {
		_ = w.Lift(w.control.SetWriteDeadline)
	}
}

// Gone implements outbox.Way: net/http tells.
func (w *responseWay) Gone() bool { return false }

// Close implements outbox.Way: the handler returns.
func (w *responseWay) Close() {}

// Cut implements outbox.Way: it makes a write end that is under way, and those that come fail.
func (w *responseWay) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.writing {
		_ = w.control.SetWriteDeadline(time.Unix(1, 0))
	}
}
