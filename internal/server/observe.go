package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/exchange"
)

// An Observation is what is known of a request when it is over. It holds no
// credential, and nothing of the query, where some clients put theirs.
type Observation struct {
	RequestID string
	TraceID   string // of a W3C traceparent header; empty without a valid one
	Remote    string // the address of the client, or of a proxy that is not trusted, and the port of the connection

	Method string // as it was sent: any word
	Path   string
	// Route is what kind of request it was, one of rest's routes; empty if it was
	// refused before that was known. Database is then empty, too.
	Route, Database string

	Start    time.Time
	Duration time.Duration
	// Status is 0 if the connection was cut before an answer. Aborted means that
	// it was cut before or within one.
	Status            int
	Aborted           bool
	BytesIn, BytesOut int64 // of the bodies
}

// An Observer is told of every request that is over, by the goroutine that
// served it: it should be quick, and several call it at a time.
type Observer func(Observation)

// observing returns what stands around all handlers: it gives every request its
// id, and tells the observers.
func (c *Config) observing() func(http.Handler) http.Handler {
	observers := c.Observers
	if c.AccessLog {
		observers = append([]Observer{accessLog(c.Logger)}, observers...)
	}
	return func(next http.Handler) http.Handler { return observe(next, observers) }
}

// observe returns a handler that calls next with an exchange.
func observe(next http.Handler, observers []Observer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchange.New(w, r)
		if len(observers) == 0 {
			next.ServeHTTP(x, r)
			return
		}
		start, returned := time.Now(), false
		defer func() { // also of a handler that aborts
			observation := observationOf(x, r, start)
			observation.Aborted = !returned
			for _, tell := range observers {
				tell(observation)
			}
		}()
		next.ServeHTTP(x, r)
		x.Begin() // with nothing to say is an answer as well
		returned = true
	})
}

// observationOf returns what is known of the request of an exchange that is over.
func observationOf(x *exchange.Exchange, r *http.Request, start time.Time) Observation {
	o := Observation{
		RequestID: x.ID(),
		TraceID:   traceID(r.Header.Get("Traceparent")),
		Remote:    r.RemoteAddr,
		Method:    r.Method,
		Path:      exchange.Redact(r.URL.Path),
		Start:     start,
		Duration:  time.Since(start),
		Status:    x.Status(),
	}
	o.Route, o.Database = x.Noted()
	o.BytesIn, o.BytesOut = x.Bytes()
	return o
}

// traceID returns the trace id of a traceparent header, or "" if it is not a
// valid one: https://www.w3.org/TR/trace-context/#traceparent-header.
func traceID(header string) string {
	const length = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if len(header) < length || header[2] != '-' || header[35] != '-' || header[52] != '-' {
		return ""
	}
	version, trace, parent, flags := header[:2], header[3:35], header[36:52], header[53:length]
	for _, part := range []string{version, trace, parent, flags} {
		if strings.Trim(part, "0123456789abcdef") != "" {
			return ""
		}
	}
	if version == "ff" || strings.Trim(trace, "0") == "" || strings.Trim(parent, "0") == "" {
		return ""
	}
	if len(header) > length && (version == "00" || header[length] != '-') { // later versions may say more
		return ""
	}
	return trace
}

// accessLog returns an observer that logs each request in one line.
func accessLog(logger *slog.Logger) Observer {
	const longest = 1024 // of what a client can make as long as it likes
	return func(o Observation) {
		attrs := make([]slog.Attr, 0, 12)
		attrs = append(attrs,
			slog.String("request", o.RequestID),
			slog.String("method", o.Method[:min(len(o.Method), longest)]),
			slog.String("path", o.Path[:min(len(o.Path), longest)]),
			slog.Int("status", o.Status),
			slog.Int64("bytes_in", o.BytesIn),
			slog.Int64("bytes", o.BytesOut),
			slog.Duration("duration", o.Duration),
			slog.String("remote", o.Remote))
		if o.Database != "" {
			attrs = append(attrs, slog.String("route", o.Route), slog.String("database", o.Database))
		}
		if o.TraceID != "" {
			attrs = append(attrs, slog.String("trace", o.TraceID))
		}
		if o.Aborted {
			attrs = append(attrs, slog.Bool("aborted", true))
		}
		logger.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
	}
}
