package server

import (
	"bufio"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"
)

// requestIDHeader tells a client the id under which the log has its request.
const requestIDHeader = "X-Request-Id"

// An Observation is what is known of a request when it is over. It holds no
// credential, and nothing of the query, where some clients put theirs.
type Observation struct {
	RequestID string
	TraceID   string // of a W3C traceparent header; empty without a valid one
	Remote    string // the address of the client, or of a proxy

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

func observe(next http.Handler, observers []Observer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o := &observed{ResponseWriter: w, id: [1]string{newRequestID()}}
		w.Header()[requestIDHeader] = o.id[:]
		if len(observers) == 0 {
			next.ServeHTTP(o, r)
			return
		}
		o.start = time.Now()
		if r.Body != nil && r.Body != http.NoBody {
			o.body.ReadCloser = r.Body
			r.Body = &o.body
		}
		returned := false
		defer func() { // also of a handler that aborts
			observation := o.observation(r, returned)
			for _, tell := range observers {
				tell(observation)
			}
		}()
		next.ServeHTTP(o, r)
		returned = true
	})
}

// newRequestID returns 16 hexadecimal digits. They only have to differ.
func newRequestID() string {
	var raw [8]byte
	var text [16]byte
	for i, n := 0, rand.Uint64(); i < len(raw); i++ {
		raw[i] = byte(n >> (8 * i))
	}
	hex.Encode(text[:], raw[:])
	return string(text[:])
}

// observed is the ResponseWriter of a request that is observed.
type observed struct {
	http.ResponseWriter
	id              [1]string // its header has this slice
	start           time.Time
	body            countedBody
	status          int
	written         int64
	route, database string
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

// observation returns what is known of the request. A handler that has not
// returned has aborted.
func (o *observed) observation(r *http.Request, returned bool) Observation {
	if o.status == 0 && returned {
		o.status = http.StatusOK // as net/http does
	}
	return Observation{
		RequestID: o.id[0],
		TraceID:   traceID(r.Header.Get("Traceparent")),
		Remote:    r.RemoteAddr,
		Method:    r.Method,
		Path:      redactPath(r.URL.Path),
		Route:     o.route,
		Database:  o.database,
		Start:     o.start,
		Duration:  time.Since(o.start),
		Status:    o.status,
		Aborted:   !returned,
		BytesIn:   o.body.n,
		BytesOut:  o.written,
	}
}

// redactPath cuts a path where a credential begins: some clients escape the
// question mark in front of it.
func redactPath(path string) string {
	for _, name := range []string{"auth=", "access_token="} {
		if before, _, found := strings.Cut(path, name); found {
			path = before + name + "(redacted)"
		}
	}
	return path
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

// Note implements rest.Noter.
func (o *observed) Note(route, database string) { o.route, o.database = route, database }

func (o *observed) WriteHeader(status int) {
	if o.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) { // others announce an answer to come
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

func (o *observed) Write(b []byte) (int, error) {
	n, err := o.ResponseWriter.Write(b)
	return o.wrote(n), err
}

// WriteString spares io.WriteString a copy.
func (o *observed) WriteString(s string) (int, error) {
	n, err := io.WriteString(o.ResponseWriter, s)
	return o.wrote(n), err
}

func (o *observed) wrote(n int) int {
	setDefault(&o.status, http.StatusOK)
	o.written += int64(n)
	return n
}

// Flush implements http.Flusher.
func (o *observed) Flush() { _ = o.FlushError() }

// FlushError is what http.ResponseController calls.
func (o *observed) FlushError() error {
	setDefault(&o.status, http.StatusOK)
	return http.NewResponseController(o.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker: whoever takes the connection switches the
// protocol.
func (o *observed) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(o.ResponseWriter).Hijack()
	if err == nil {
		setDefault(&o.status, http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

// Unwrap gives http.ResponseController the deadlines and the rest.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }
