package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/exchange"
)

const (
	// mostTakenBack is how many requests more than were answered a client may take
	// back on one connection of HTTP/2: twice as many as may be under way, so that a
	// client which gives all of them up, and the next ones too, is not meant.
	mostTakenBack = 2 * maxStreamsPerConnection
	// forgiven is how many of them are forgotten in each second.
	forgiven = 10
	// hasty is how soon a request must be taken back to count. Streams end that way,
	// but not so soon.
	hasty = time.Second
)

// resets protects the server from clients of HTTP/2 that send requests and take them
// back at once ("rapid reset", CVE-2023-44487). That costs a client next to nothing,
// and does not count against the number of its streams.
//
// A request that was taken back before its turn is dropped before anything is done
// for it. net/http starts no more handlers for a connection than it may have streams,
// but as those are quick it would go on for as long as the client does. So a client
// that takes far more back than it lets be answered loses its connection.
type resets struct {
	logger *slog.Logger
	now    func() time.Time
	cuts   atomic.Uint64 // for the operator
	warn   exchange.Seldom
}

// takenBackKey is where the context of a request has the *takenBack of its connection.
type takenBackKey struct{}

// connContext is for http.Server: it counts for connections of HTTP/2.
func (r *resets) connContext(ctx context.Context, conn net.Conn) context.Context {
	secure, ok := conn.(*tls.Conn)
	if !ok || secure.ConnectionState().NegotiatedProtocol != "h2" {
		return ctx
	}
	return context.WithValue(ctx, takenBackKey{}, &takenBack{conn: secure.NetConn()})
}

// watching stands around a handler, outside of all that is done for a request.
func (r *resets) watching(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.ProtoMajor != 2 {
			next.ServeHTTP(w, request)
			return
		}
		runtime.Gosched() // the frame that takes it back may be there already
		began := r.now()
		defer func() { r.count(request, began) }() // also of a handler that aborts
		if request.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, request)
	})
}

// count counts a request that is over, and cuts its connection if it was one too many.
func (r *resets) count(request *http.Request, began time.Time) {
	connection, ok := request.Context().Value(takenBackKey{}).(*takenBack)
	if !ok {
		return
	}
	now := r.now()
	if request.Context().Err() == nil {
		connection.add(-1, now)
		return
	}
	if now.Sub(began) >= hasty || connection.add(1, now) <= mostTakenBack || !connection.cut.CompareAndSwap(false, true) {
		return
	}
	// Not by TLS, whose goodbye the client could hold up.
	defer connection.conn.Close()
	r.cuts.Add(1)
	if n, ok := r.warn.Count(now); ok {
		r.logger.Warn("connections are cut: their clients take requests back as fast as they send them", "from", request.RemoteAddr, "cut", n)
	}
}

// takenBack counts the requests of one connection.
type takenBack struct {
	conn net.Conn
	cut  atomic.Bool

	mu      sync.Mutex
	more    float64 // that were taken back than were answered, as far as not forgiven
	counted time.Time
}

// add changes the count, which never gets below 0, and returns it.
func (t *takenBack) add(n float64, now time.Time) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if since := now.Sub(t.counted).Seconds(); since > 0 {
		t.more = max(0, t.more-forgiven*since)
		t.counted = now
	}
	t.more = max(0, t.more+n)
	return t.more
}
