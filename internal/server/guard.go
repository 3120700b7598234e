package server

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/rest"
)

// A guard stands around the handlers of a server.
//
// It answers for one that panics, where net/http would only cut the connection.
// It knows how many are running, so that the store is not closed under one.
// It counts answers over HTTP/2 until their clients have taken them, where a front does not.
// And while the server drains, it has every answer tell its client not to send
// another request on that connection.
type guard struct {
	logger   *slog.Logger
	draining atomic.Bool
	panics   atomic.Uint64
	running  *exchange.Running
	answers  *budget.Budget
	write    time.Duration // how long a client may take nothing of an answer
}

func newGuard(options *servingOptions) *guard {
	return &guard{logger: options.logger, running: exchange.NewRunning(), answers: options.answers, write: options.limits.write}
}

// around returns a handler that answers for one that panics. It is called with an
// exchange.
func (g *guard) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchange.Of(w)
		x.EndWhile(&g.draining)
		defer g.recover(x, r)
		next.ServeHTTP(x, r)
		x.Begin() // with nothing to say is an answer as well
		exchange.Settle(x, r, g.answers, g.write)
	})
}

// What rest finds out about a request goes to its exchange.
var _ rest.Noter = (*exchange.Exchange)(nil)

// recover is deferred around a handler. A panic is a defect of ours: its stack
// goes to the log, and the client gets a 500. If the head of another answer is
// out, the connection is cut instead, so that nobody takes a part for the whole.
func (g *guard) recover(x *exchange.Exchange, r *http.Request) {
	cause := recover()
	switch {
	case cause == nil:
		return
	case cause == http.ErrAbortHandler: //nolint:errorlint // net/http compares it so
		cut(x, r)
		panic(cause)
	}
	g.panics.Add(1)
	// Not the query: it may hold a secret.
	g.logger.Error("a handler panicked", "request", x.ID(), "method", r.Method, "path", exchange.Redact(r.URL.Path),
		"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if x.Begun() {
		cut(x, r)
		panic(http.ErrAbortHandler)
	}
	header := x.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Disposition", "Etag", "Trailer"} {
		header.Del(name)
	}
	delete(header, "ETag") // as it is spelt for device libraries
	exchange.Fail(x, http.StatusInternalServerError, "internal error")
}

// cut resets the connection of a request of HTTP/1.0 whose answer has begun. Its end would be the end of the
// answer, if that has no length, and so would the goodbye of TLS. Later versions tell the end of an answer.
func cut(x *exchange.Exchange, r *http.Request) {
	if r.ProtoAtLeast(1, 1) || !x.Begun() {
		return
	}
	conn, _, err := x.Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if n := boundBelow(conn); n != nil {
		if tcp, ok := n.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = n.Conn.Close()
	}
}
