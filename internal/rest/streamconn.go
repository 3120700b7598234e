package rest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// takeOver takes the connection of an HTTP/1.1 request away from net/http, whose
// goroutine and buffers would stay for as long as the stream does. Without a
// length and without chunks, the end of the connection is the end of the stream.
func (s *stream) takeOver(w http.ResponseWriter) error {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.watch.Close()
		s.streams.remove(s, "")
		return fmt.Errorf("take a connection over: %w", err)
	}
	_ = conn.SetDeadline(time.Time{}) // a write sets its own
	header := w.Header()
	header.Set("Connection", "close")
	header.Set("Date", s.now().UTC().Format(http.TimeFormat))
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 OK\r\n")
	_ = header.Write(&head) // to memory
	head.WriteString("\r\n")
	s.out = &connWriter{conn: conn, head: head.Bytes(), peer: peerOf(conn), patience: s.patience()}
	s.start = func() { s.streams.runners.run(s) }
	s.state.Store(streamRunning)
	s.streams.runners.runFirst(s)
	return nil
}

// A connWriter is the way to a client whose connection was taken over.
type connWriter struct {
	conn net.Conn
	head []byte // not sent yet
	peer peer
	patience
}

func (w *connWriter) write(p []byte) error {
	if w.head != nil {
		p = append(w.head, p...)
		w.head = nil
	}
	for piece := range slices.Chunk(p, pieceBytes) {
		if err := w.extend(w.conn.SetWriteDeadline); err != nil {
			return err
		}
		if _, err := w.conn.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// pieceBytes is how much is written at a time. A client must take so much within
// StreamOptions.Blocked, or it takes nothing worth waiting for.
const pieceBytes = 64 << 10

// patience is how long writes may wait for a client.
type patience struct {
	now   func() time.Time
	limit time.Duration
	until time.Time // the deadline that is set
}

func (s *stream) patience() patience { return patience{now: s.now, limit: s.streams.opts.Blocked} }

// extend sets a deadline that is at least the limit away, and at most half more.
// Setting one for each write would take longer than the rest of what a frame
// takes here.
func (p *patience) extend(set func(time.Time) error) error {
	now := p.now()
	if p.until.Sub(now) >= p.limit {
		return nil
	}
	p.until = now.Add(p.limit + p.limit/2)
	return set(p.until)
}

func (w *connWriter) gone() bool { return w.peer.gone() }

func (w *connWriter) close() { _ = w.conn.Close() }

func (w *connWriter) cut() { _ = w.conn.Close() }

// A peer is the other end of a connection that nobody reads from.
type peer struct {
	conn rawConn
}

// A rawConn is a connection as the system knows it.
type rawConn interface {
	Read(f func(fd uintptr) (done bool)) error
	Control(f func(fd uintptr)) error
}

// peerOf returns the peer of a connection, however wrapped that is. Of one that
// the system does not know, it is never known that it has gone.
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

// serve serves a stream over HTTP/2, which cannot be taken over: the
// handler stays.
func (s *stream) serve(w http.ResponseWriter, r *http.Request) {
	woken := make(chan struct{}, 1)
	out := &responseWriter{w: w, control: http.NewResponseController(w), patience: s.patience()}
	s.out = out
	s.start = func() { woken <- struct{}{} }
	s.state.Store(streamIdle)
	s.wake()
	done := r.Context().Done()
	for {
		select {
		case <-woken:
			if !s.run() {
				return
			}
		case <-done:
			done = nil
			s.end(endedByClient)
		}
	}
}

// A responseWriter is the way to a client of HTTP/2.
type responseWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	patience

	mu      sync.Mutex
	writing bool // net/http wants no calls after the handler has returned
	closed  bool
}

// write sets a deadline that is over with the write: net/http would end the
// stream at it even if nothing is written then.
func (w *responseWriter) write(p []byte) error {
	if !w.begin() {
		return net.ErrClosed
	}
	defer w.end()
	for piece := range slices.Chunk(p, pieceBytes) {
		// Errors are of writers that know no deadlines: those of tests.
		_ = w.extend(w.control.SetWriteDeadline)
		if _, err := w.w.Write(piece); err != nil {
			return err
		}
	}
	return w.control.Flush()
}

func (w *responseWriter) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = !w.closed
	return w.writing
}

func (w *responseWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = false
	if !w.closed {
		w.until = time.Time{}
		_ = w.control.SetWriteDeadline(w.until)
	}
}

func (w *responseWriter) gone() bool { return false } // net/http tells

func (w *responseWriter) close() {} // the handler returns

// cut makes a write end that is under way, and those that come fail.
func (w *responseWriter) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.writing {
		_ = w.control.SetWriteDeadline(time.Unix(1, 0))
	}
}
