package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/rest"
)

// various answers in the way that the path says.
func various(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/hints":
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusNoContent)
	case "/echo":
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
		_, _ = io.WriteString(w, "!")
	case "/flush":
		_ = http.NewResponseController(w).Flush()
	case "/switch":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			conn.Close()
		}
	case "/part":
		_, _ = io.WriteString(w, "a part")
		panic(http.ErrAbortHandler)
	case "/panic":
		panic("at the disco")
	case "/noted":
		exchange.Of(w).Note(rest.RouteData, "shop")
	}
}

// startObserved serves various, and returns what is observed.
func startObserved(t *testing.T) (*testServing, <-chan Observation) {
	t.Helper()
	seen := make(chan Observation, 100)
	c := Config{Observers: []Observer{func(o Observation) { seen <- o }}}
	handler := http.HandlerFunc(various)
	return startServing(t, servingOptions{secure: handler, plain: handler, observe: c.observing()}), seen
}

// next returns the next observation.
func next(t *testing.T, seen <-chan Observation) Observation {
	t.Helper()
	select {
	case o := <-seen:
		return o
	case <-time.After(patience):
		t.Fatal("no request was observed")
		return Observation{}
	}
}

func TestObservations(t *testing.T) {
	t.Parallel()
	s, seen := startObserved(t)
	tests := []struct {
		method, target, body string
		want                 string // path, route, database, status, aborted, bytes in and out
	}{
		{"PUT", "/echo?auth=swordfish", "12345", "/echo - - 201 false 5 6"},
		{"GET", "/echo", "", "/echo - - 201 false 0 1"},
		{"GET", "/hints", "", "/hints - - 204 false 0 0"},
		{"GET", "/nothing", "", "/nothing - - 200 false 0 0"},
		{"GET", "/flush", "", "/flush - - 200 false 0 0"},
		{"GET", "/part", "", "/part - - 200 true 0 6"},
		{"GET", "/panic", "", "/panic - - 500 false 0 33"},
		{"GET", "/noted", "", "/noted data shop 200 false 0 0"},
		{"GET", "/switch", "", "/switch - - 101 false 0 0"},
		{"GET", "/echo.json%3Fauth=swordfish", "", "/echo.json?auth=(redacted) - - 200 false 0 0"},
		{"GET", "/a&access_token=swordfish", "", "/a&access_token=(redacted) - - 200 false 0 0"},
	}
	for _, protocol := range []string{"http", "https", "h2"} {
		for _, test := range tests {
			if test.target == "/switch" && protocol == "h2" {
				continue // it cannot be done there
			}
			url := "https://" + s.addr
			if protocol == "http" {
				url = "http://" + s.addr
			}
			r, err := http.NewRequestWithContext(t.Context(), test.method, url+test.target, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer swordfish")
			if test.target == "/switch" {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", "something")
			}
			r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
			response, err := s.client(t, protocol).Do(r)
			o := next(t, seen)
			got := fmt.Sprintf("%s %s %s %d %v %d %d", o.Path, orDash(o.Route), orDash(o.Database), o.Status, o.Aborted, o.BytesIn, o.BytesOut)
			if got != test.want || o.Method != test.method {
				t.Errorf("%s: %s %s was observed as %s, want %s", protocol, test.method, test.target, got, test.want)
			}
			if o.Remote == "" || o.TraceID != "0af7651916cd43dd8448eb211c80319c" || o.Start.IsZero() || o.Duration <= 0 || len(o.RequestID) != 16 {
				t.Errorf("%s: %s was observed as %+v", protocol, test.target, o)
			}
			if strings.Contains(fmt.Sprintf("%+v", o), "swordfish") {
				t.Errorf("%s: the observation of %s holds the credential: %+v", protocol, test.target, o)
			}
			if err == nil {
				if test.target != "/switch" && response.Header.Get("X-Request-Id") != o.RequestID {
					t.Errorf("%s: %s: the request id is %q for the client and %q for us", protocol, test.target, response.Header.Get("X-Request-Id"), o.RequestID)
				}
				response.Body.Close()
			}
		}
	}
	if !strings.Contains(s.log.String(), "request=") {
		t.Error("the log of the panic does not name its request")
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func TestTraceID(t *testing.T) {
	t.Parallel()
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for header, want := range map[string]string{
		"00-" + trace + "-" + parent + "-01":                   trace,
		"00-" + trace + "-" + parent + "-00":                   trace,
		"01-" + trace + "-" + parent + "-01":                   trace,
		"01-" + trace + "-" + parent + "-01-more":              trace,
		"01-" + trace + "-" + parent + "-01.more":              "",
		"00-" + trace + "-" + parent + "-01-more":              "",
		"ff-" + trace + "-" + parent + "-01":                   "",
		"00-" + strings.ToUpper(trace) + "-" + parent + "-01":  "",
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01": "",
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":  "",
		"00-" + trace + "-" + parent:                           "",
		"00_" + trace + "-" + parent + "-01":                   "",
		"00-" + trace + "\"" + parent + "-01":                  "",
		"00-" + trace[:31] + "\n-" + parent + "-01":            "",
		"":          "",
		"swordfish": "",
	} {
		if got := traceID(header); got != want {
			t.Errorf("traceID(%q) = %q, want %q", header, got, want)
		}
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	c := Config{AccessLog: true, Logger: slog.New(slog.NewJSONHandler(&lines, nil))}
	handler := c.observing()(http.HandlerFunc(various))
	request := httptest.NewRequest("PUT", "/echo?auth=swordfish&access_token=swordfish", strings.NewReader("12345"))
	request.Header.Set("Authorization", "Bearer swordfish")
	handler.ServeHTTP(httptest.NewRecorder(), request)
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/noted"+strings.Repeat("a", 10_000), nil))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/noted", nil))

	var got []map[string]any
	for scanner := bufio.NewScanner(&lines); scanner.Scan(); {
		if strings.Contains(scanner.Text(), "swordfish") {
			t.Errorf("the access log shows the credential: %s", scanner.Text())
		}
		var line map[string]any
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		got = append(got, line)
	}
	if len(got) != 3 {
		t.Fatalf("%d lines, want 3", len(got))
	}
	first := got[0]
	for key, want := range map[string]any{"msg": "request", "method": "PUT", "path": "/echo", "status": 201.0, "bytes": 6.0, "bytes_in": 5.0, "remote": request.RemoteAddr} {
		if first[key] != want {
			t.Errorf("%s = %v, want %v", key, first[key], want)
		}
	}
	if first["request"] == "" || first["duration"] == nil || first["database"] != nil || first["trace"] != nil {
		t.Errorf("the first line is %v", first)
	}
	if path := got[1]["path"].(string); len(path) != 1024 {
		t.Errorf("a path of 10,006 bytes is logged with %d", len(path))
	}
	if got[2]["database"] != "shop" || got[2]["route"] != rest.RouteData {
		t.Errorf("the last line is %v, want the database and the route", got[2])
	}
}

// BenchmarkObserve shows what observing adds to a request.
func BenchmarkObserve(b *testing.B) {
	discard := slog.New(slog.NewJSONHandler(new(blankWriter), nil)) // but formats
	request := httptest.NewRequest("GET", "/a/b/c.json", nil)
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "null") })
	nothing := func(Observation) {}
	for _, bench := range []struct {
		name    string
		handler http.Handler
	}{
		{"bare", bare},
		{"no-observer", (&Config{}).observing()(bare)},
		{"one-observer", (&Config{Observers: []Observer{nothing}}).observing()(bare)},
		{"access-log", (&Config{AccessLog: true, Logger: discard}).observing()(bare)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			w := &blankWriter{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				bench.handler.ServeHTTP(w, request)
			}
		})
	}
}

// blankWriter throws answers away.
type blankWriter struct{ header http.Header }

func (w *blankWriter) Header() http.Header               { return w.header }
func (w *blankWriter) Write(b []byte) (int, error)       { return len(b), nil }
func (w *blankWriter) WriteString(s string) (int, error) { return len(s), nil }
func (w *blankWriter) WriteHeader(int)                   {}
