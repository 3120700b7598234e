package server

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// internalError is the body of a 500. Device libraries search for this spacing.
const internalError = "{\n  \"error\" : \"internal error\"\n}\n"

// A guard stands around the handlers of a server.
//
// It answers for one that panics, where net/http would only cut the connection.
// It knows how many are running, so that the store is not closed under one.
// And while the server drains, it has every answer tell its client not to send
// another request on that connection.
type guard struct {
	logger   *slog.Logger
	draining atomic.Bool
	shut     atomic.Bool // nobody may enter
	panics   atomic.Uint64
	running  atomic.Int64 // handlers, and requests that are being turned away
	left     chan struct{}
}

func newGuard(logger *slog.Logger) *guard {
	return &guard{logger: logger, left: make(chan struct{}, 1)}
}

// counting is the outer half of the guard: nothing that belongs to a request is
// done outside of it.
func (g *guard) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.running.Add(1)
		defer g.leave()
		if g.shut.Load() {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// recovering is the inner half: it answers for a handler that panics.
func (g *guard) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answer{ResponseWriter: w, guard: g}
		defer g.recover(answer, r)
		next.ServeHTTP(answer, r)
		answer.begin() // with nothing to say is an answer too
	})
}

// leave undoes the count of counting. The last one out after shutting says so.
func (g *guard) leave() {
	if g.running.Add(-1) == 0 && g.shut.Load() {
		select {
		case g.left <- struct{}{}:
		default: // it was said already
		}
	}
}

// close lets no handler start, and waits until none is running. It returns how
// many still are when the time is up.
//
// Entering counts first and looks at shut then; closing does it the other way
// round. So one of the two always sees the other.
func (g *guard) close(wait time.Duration) int64 {
	g.shut.Store(true)
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for g.running.Load() > 0 {
		select {
		case <-g.left:
		case <-timeout.C:
			return g.running.Load()
		}
	}
	return 0
}

// recover is deferred around a handler. A panic is a defect of ours: its stack
// goes to the log, and the client gets a 500. If the head of another answer is
// out, the connection is cut instead, so that nobody takes a part for the whole.
func (g *guard) recover(a *answer, r *http.Request) {
	cause := recover()
	switch {
	case cause == nil:
		return
	case cause == http.ErrAbortHandler: //nolint:errorlint // net/http compares it so
		panic(cause)
	}
	g.panics.Add(1)
	// Not the query: it may hold a secret.
	g.logger.Error("a handler panicked", "request", a.Header().Get(requestIDHeader), "method", r.Method, "path", r.URL.Path,
		"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if a.begun {
		panic(http.ErrAbortHandler)
	}
	header := a.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Disposition", "Etag", "Trailer"} {
		header.Del(name)
	}
	delete(header, "ETag") // as it is spelt for device libraries
	header.Set("Content-Type", "application/json; charset=utf-8")
	a.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(a, internalError) // nobody is left to be told
}

// An answer is a ResponseWriter that knows whether it has begun.
type answer struct {
	http.ResponseWriter
	guard *guard
	begun bool
}

// begin is called before the head goes out.
func (a *answer) begin() {
	if a.begun {
		return
	}
	a.begun = true
	if a.guard.draining.Load() {
		// In HTTP/2 this makes net/http send GOAWAY.
		a.Header().Set("Connection", "close")
	}
}

func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK { // others announce an answer to come
		a.begin()
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(b)
}

// WriteString spares io.WriteString a copy.
func (a *answer) WriteString(s string) (int, error) {
	a.begin()
	return io.WriteString(a.ResponseWriter, s)
}

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError is what http.ResponseController calls.
func (a *answer) FlushError() error {
	a.begin()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap gives http.ResponseController the deadlines and the rest.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
