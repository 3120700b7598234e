package wire

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/outbox"
)

// A visit is what the access log says of a session. It holds no credential, and of the id,
// which is a secret, only the beginning.
type visit struct {
	logger *slog.Logger
	attrs  []slog.Attr // who it is, in both lines
	began  time.Time

	bytesIn atomic.Int64  // of messages
	code    int           // with which the connection was closed, 0 if it was cut; of Tell
	reason  outbox.Reason // why; of Tell
}

// logVisit logs that a session begins, if there is an access log.
func (s *socket) logVisit(w http.ResponseWriter, r *http.Request, route, database string) {
	logger := s.session.front.opts.AccessLog
	if logger == nil {
		return
	}
	v := &visit{logger: logger, began: s.now()}
	if x := exchange.Of(w); x != nil {
		v.attrs = append(v.attrs, slog.String("request", x.ID()))
	}
	v.attrs = append(v.attrs,
		slog.String("session", s.session.logID()), slog.String("route", route),
		slog.String("database", database), slog.String("remote", r.RemoteAddr))
	s.visit = v
	logger.LogAttrs(context.Background(), slog.LevelInfo, "session begins", v.attrs...)
}

// heard counts a message of the client.
func (v *visit) heard(bytes int) {
	if v != nil {
		v.bytesIn.Add(int64(bytes))
	}
}

// closes notes how the client is told that this is the end.
func (v *visit) closes(code int) {
	if v != nil {
		v.code = code
	}
}

// ends notes why the session ends.
func (v *visit) ends(reason outbox.Reason) {
	if v != nil {
		v.reason = reason
	}
}

// over logs that the session has ended, after so many bytes to the client.
func (v *visit) over(now time.Time, bytes int64) {
	if v == nil {
		return
	}
	v.logger.LogAttrs(context.Background(), slog.LevelInfo, "session ends", append(v.attrs,
		slog.Int("code", v.code), slog.String("reason", string(v.reason)),
		slog.Int64("bytes_in", v.bytesIn.Load()), slog.Int64("bytes", bytes),
		slog.Duration("duration", now.Sub(v.began)))...)
}
