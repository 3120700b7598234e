package server

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/wiretest"
)

// A rated is a handler behind a rate limiter, with a clock of its own.
type rated struct {
	*rateLimiter
	handler http.Handler
	now     time.Time
	served  int
}

// newRated lets in everybody but those with the credential "wrong…", or
// "unreachable…", whose issuer does not answer. Those with "nowhere…" ask for nothing
// that is there.
func newRated(limit RateLimit) *rated {
	r := &rated{now: time.Unix(1_800_000_000, 0)}
	r.rateLimiter = newRateLimiter(limit, func() time.Time { return r.now })
	r.handler = observe(r.wrap(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.served++
		credential := q.URL.RawQuery + q.Header.Get("Authorization")
		if strings.Contains(credential, "nowhere") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		exchange.Of(w).Note(rest.RouteData, "shop")
		switch {
		case strings.Contains(credential, "wrong"):
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(credential, "unreachable"):
			w.WriteHeader(http.StatusServiceUnavailable)
		case credential != "":
			exchange.Of(w).NoteIdentified()
		}
	})), nil)
	return r
}

// ask makes a request: "ADDRESS", "ADDRESS QUERY" or "ADDRESS Bearer TOKEN".
func (r *rated) ask(from string) *httptest.ResponseRecorder {
	addr, credential, _ := strings.Cut(from, " ")
	query, isHeader := credential, strings.HasPrefix(credential, "Bearer ")
	if isHeader {
		query = ""
	}
	q := httptest.NewRequest("GET", "/a.json?"+query, nil)
	if isHeader {
		q.Header.Set("Authorization", credential)
	}
	q.RemoteAddr = addr
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	return w
}

func (r *rated) want(t *testing.T, from string, n, status int) {
	t.Helper()
	for i := range n {
		if got := r.ask(from).Code; got != status {
			t.Fatalf("request %d from %s: %d, want %d", i+1, from, got, status)
		}
	}
}

func TestRateLimitByAddress(t *testing.T) {
	t.Parallel()
	r := newRated(RateLimit{PerSecond: 2, Burst: 3})
	r.want(t, "192.0.2.1:1000", 3, 200)
	r.want(t, "192.0.2.1:2000", 1, 429)
	r.want(t, "[::ffff:192.0.2.1]:3000", 1, 429)
	r.want(t, "192.0.2.2:1000", 3, 200)
	r.want(t, "[2001:db8::1]:1000", 3, 200)
	r.want(t, "[2001:db8::2]:1000", 1, 429) // in the network of the one before
	r.want(t, "[2001:db8:0:1::1]:1000", 1, 200)
	r.now = r.now.Add(500 * time.Millisecond)
	r.want(t, "192.0.2.1:1000", 1, 200)
	r.want(t, "192.0.2.1:1000", 1, 429)
	r.now = r.now.Add(time.Hour)
	r.want(t, "192.0.2.1:1000", 3, 200)
	r.want(t, "192.0.2.1:1000", 1, 429)
}

func TestRateLimitByCredential(t *testing.T) {
	t.Parallel()
	const here, there = "192.0.2.1:1000 ", "192.0.2.2:1000 "
	r := newRated(RateLimit{PerSecond: 1, Burst: 2})
	// The first request counts for the address, then there are two of its own.
	r.want(t, here+"auth=secret", 3, 200)
	for _, spelling := range []string{"auth=secret", "print=pretty&auth=secret", "auth=sec%72et", "access_token=secret", "Bearer secret", "Bearer  secret", "Bearer     secret"} {
		r.want(t, here+spelling, 1, 429)
		r.want(t, there+spelling, 1, 429)
	}
	r.want(t, here+"auth=other", 3, 200) // uses up the address
	r.want(t, here, 1, 429)
	r.want(t, there, 2, 200)
}

// TestRateLimitOfMadeUpCredentials: whoever makes up credentials gets no more
// requests than without.
func TestRateLimitOfMadeUpCredentials(t *testing.T) {
	t.Parallel()
	r := newRated(RateLimit{PerSecond: 1, Burst: 5})
	for i := range 100 {
		r.ask(fmt.Sprintf("192.0.2.1:1000 auth=wrong%d", i))
		r.ask(fmt.Sprintf("192.0.2.1:1000 auth=nowhere%d", i))
		r.ask(fmt.Sprintf("192.0.2.1:1000 auth=unreachable%d", i))
		r.ask("192.0.2.1:1000 Bearer" + strings.Repeat(" ", i+1) + "wrong")
		r.ask("192.0.2.1:1000 Bearer" + strings.Repeat(" ", i+1))
	}
	if r.served != 5 || len(r.clients) != 1 {
		t.Errorf("%d requests were served and %d clients are known, want 5 and 1", r.served, len(r.clients))
	}
}

func TestRateLimitAnswer(t *testing.T) {
	t.Parallel()
	r := newRated(RateLimit{PerSecond: 0.4})
	r.want(t, "192.0.2.1:1000", 1, 200)
	w := r.ask("192.0.2.1:1000")
	var body struct{ Error string }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || !strings.Contains(body.Error, "too many requests") {
		t.Errorf("the body is %q", w.Body)
	}
	for name, want := range map[string]string{"Retry-After": "3", "Content-Type": "application/json; charset=utf-8", "Access-Control-Allow-Origin": "*"} {
		if got := w.Header().Get(name); w.Code != 429 || got != want {
			t.Errorf("%d, %s: %q, want 429 and %q", w.Code, name, got, want)
		}
	}
	if r.served != 1 {
		t.Errorf("%d requests were served, want 1", r.served)
	}
	// A client that does as it is told is served.
	r.now = r.now.Add(3 * time.Second)
	r.want(t, "192.0.2.1:1000", 1, 200)
}

func TestRateLimitForgetsTheOldest(t *testing.T) {
	t.Parallel()
	r := newRated(RateLimit{PerSecond: 1, Burst: 1})
	r.most = 3
	r.want(t, "192.0.2.1:1", 1, 200)
	r.want(t, "192.0.2.2:1", 1, 200)
	r.want(t, "192.0.2.1:1", 1, 429)
	r.want(t, "192.0.2.3:1", 1, 200)
	r.want(t, "192.0.2.4:1", 1, 200) // in the place of 2
	r.want(t, "192.0.2.1:1", 1, 429)
	r.want(t, "192.0.2.2:1", 1, 200)
	if len(r.clients) != 3 || r.recent.Len() != 3 {
		t.Errorf("%d and %d clients are known, want 3", len(r.clients), r.recent.Len())
	}
}

func TestNoRateLimit(t *testing.T) {
	t.Parallel()
	r := newRated(RateLimit{})
	r.want(t, "192.0.2.1:1000", 1000, 200)
	if len(r.clients) != 0 {
		t.Errorf("%d clients are known, want none", len(r.clients))
	}
}

func BenchmarkRateLimit(b *testing.B) {
	limiter := newRateLimiter(RateLimit{PerSecond: 1e9}, time.Now)
	handler := limiter.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, target := range map[string]string{"address": "/a.json", "credential": "/a.json?auth=0123456789012345678901234567890123456789"} {
		b.Run(name, func(b *testing.B) {
			request := httptest.NewRequest("GET", target, nil)
			w := &blankWriter{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(w, request)
			}
		})
	}
}

// TestRateLimitOfSockets: requests inside of a websocket count with all others of their
// client, and wait instead of being refused.
func TestRateLimitOfSockets(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), func(c *Config) { c.RateLimit = RateLimit{PerSecond: 0.001, Burst: 6} })
	c := wiretest.Dial(t, wiretest.Dialing{
		Address: strings.TrimPrefix(m.public, "https://"), Target: "/.ws?v=5&ns=default",
		TLS: &tls.Config{RootCAs: m.authority(), ServerName: "localhost"},
	})
	c.Hello()
	for range 5 {
		c.Ask("auth", `{"cred":"wrong"}`)
	}
	if status, _ := m.send("GET", m.public+"/a.json", "", ""); status != 429 {
		t.Errorf("a request after five that failed in a websocket: %d, want 429", status)
	}
	c.Request("s", `{"c":{}}`)
	m.stop()
	c.ExpectClose(1001)
	if left := c.Unanswered(); len(left) != 1 {
		t.Errorf("%d requests are not answered, want the one that waited", len(left))
	}
}
