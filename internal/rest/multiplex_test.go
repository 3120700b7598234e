package rest_test

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// A window is the way to a client of HTTP/2, which takes an answer when it likes.
type window struct {
	*httptest.ResponseRecorder
	flush    func()
	flushed  int
	deadline bool
}

func (w *window) FlushError() error {
	w.flushed++
	w.flush()
	return nil
}

func (w *window) SetWriteDeadline(t time.Time) error {
	w.deadline = !t.IsZero()
	return nil
}

// closable is a body that knows whether it was closed.
type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Close() error {
	c.closed = true
	return nil
}

// TestAnswersOverHTTP2AreCounted: an answer takes memory until its client has taken
// it, which is not awaited without end, and what has come of a body that is not read
// does not wait with it.
func TestAnswersOverHTTP2AreCounted(t *testing.T) {
	t.Parallel()
	var opts rest.Options
	s := serve(t, func(o *rest.Options) { opts = *o })
	s.expect(`PUT /list.json?print=silent [1`+strings.Repeat(`,"an element"`, 3000)+`]`, `204`, `PUT /a.json 1`, `200 1`)
	handler := rest.New(opts)
	for _, test := range []struct {
		method, target, body string
		status               int
		least                int64
	}{
		{"GET", "/a.json", "", 200, 160 << 10},
		{"GET", "/a.json", "a body that nobody reads", 200, 160 << 10},
		{"GET", "/list.json", "", 200, 160 << 10},
		{"PUT", "/b.json", "2", 200, 32 << 10},
		{"DELETE", "/b.json", "", 200, 32 << 10},
		{"GET", "/a.txt", "", 404, 32 << 10},
		{"PUT", "/b.json", "[", 400, 32 << 10},
		{"PUT", "/c.json?print=silent", "2", 204, 0},
	} {
		var taken int64
		w := &window{ResponseRecorder: httptest.NewRecorder(), flush: func() { taken = handler.BodiesTaken() }}
		body := &closable{Reader: strings.NewReader(test.body)}
		r := httptest.NewRequest(test.method, "https://localhost"+test.target, body)
		r.ProtoMajor, r.ContentLength = 2, int64(len(test.body))
		handler.ServeHTTP(w, r)
		name := test.method + " " + test.target
		if w.Code != test.status || taken < test.least {
			t.Errorf("%s is answered %d with %d bytes taken, want %d with at least %d", name, w.Code, taken, test.status, test.least)
		}
		if test.least > 0 && (w.flushed != 1 || !w.deadline || !body.closed) {
			t.Errorf("%s: flushed %d times, with a deadline: %v, its body dropped: %v, want one, true and true", name, w.flushed, w.deadline, body.closed)
		}
		if left := handler.BodiesTaken(); left != 0 {
			t.Errorf("%s: %d bytes are still taken", name, left)
		}
	}
}

// TestBodiesOverHTTP2AreCounted: by their decoded size, from the first byte on.
func TestBodiesOverHTTP2AreCounted(t *testing.T) {
	t.Parallel()
	handler, _ := serveHandler(t, 64<<20)
	for text, least := range map[string]int64{
		"[":                                 32 << 10,
		"[1" + strings.Repeat(",1", 30_000): 32<<10 + 30_000*16,
	} {
		reader, writer := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r := httptest.NewRequest("PUT", "https://localhost/a.json", reader)
			r.ProtoMajor, r.ContentLength = 2, 64<<10
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}()
		// The second piece is taken when the first one has been decoded.
		for _, piece := range []string{text, " "} {
			if _, err := io.WriteString(writer, piece); err != nil {
				t.Fatal(err)
			}
		}
		if taken := handler.BodiesTaken(); taken < least {
			t.Errorf("%d bytes are taken for %d of a body, want at least %d", taken, len(text), least)
		}
		writer.Close()
		<-ended
	}
}

// A roundTrip is how keys of an issuer are fetched.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWaitingForKeysIsCounted: over HTTP/2, those take memory whose tokens wait for the keys of an issuer, which another request
// fetches. One for whom there is none loses the request, and does not wait.
func TestWaitingForKeysIsCounted(t *testing.T) {
	t.Parallel()
	const issuer = "https://issuer.example.org"
	fetching, release := make(chan struct{}), make(chan struct{})
	answer := sync.OnceFunc(func() { close(release) })
	defer answer()
	verifier, err := auth.New(auth.Options{
		Issuers: []auth.Issuer{{URL: issuer, Audiences: []string{"x"}, JWKS: issuer + "/keys"}},
		Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			close(fetching)
			<-release
			return nil, errors.New("it is not there")
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var opts rest.Options
	serveOver(t, func(s *store.Store) *catalog.Catalog {
		return catalog.New(s, engine.Options{
			Metrics: &state.Metrics{}, Clock: state.NewClock(time.Now, rand.Reader, s.LastMillis()), Verifier: verifier, Deadline: patience})
	}, func(o *rest.Options) { opts = *o })
	handler := rest.New(opts)
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"EdDSA","kid":"k"}`)) + "." + encode([]byte(`{"iss":"`+issuer+`","aud":"x","sub":"u"}`)) + "." + encode(make([]byte, 64))
	statuses := make(chan int, 1000) // 0 for a request without an answer
	ask := func() {
		status := 0
		defer func() {
			_ = recover() // as net/http does
			statuses <- status
		}()
		r := httptest.NewRequest("GET", "https://localhost/a.json?auth="+token, nil)
		r.ProtoMajor = 2
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		status = w.Code
	}
	go ask()
	<-fetching
	asked := 0
	for end := time.Now().Add(patience / 6); len(statuses) == 0; asked++ { // until one is refused
		before := handler.BodiesTaken()
		go ask()
		for handler.BodiesTaken() == before && len(statuses) == 0 {
			if runtime.Gosched(); time.Now().After(end) {
				t.Fatalf("after %d requests, one waits and takes no memory: %d bytes are taken", asked, before)
			}
		}
	}
	if status, taken := <-statuses, handler.BodiesTaken(); status != 0 || taken < int64(asked-1)*32<<10 {
		t.Errorf("while %d wait, %d bytes are taken, and one more is answered %d, want 0", asked-1, taken, status)
	}
	answer()
	for range asked { // they need memory to be answered, too, which others have not given back yet
		if status := <-statuses; status != http.StatusServiceUnavailable && status != 0 {
			t.Errorf("without keys a token is answered %d", status)
		}
	}
	if left := handler.BodiesTaken(); left != 0 {
		t.Errorf("%d bytes are still taken", left)
	}
}

// TestCompressorsAreCounted: what a client could have compressed is sent as it is when
// its share is used up.
func TestCompressorsAreCounted(t *testing.T) {
	t.Parallel()
	var opts rest.Options
	s := serve(t, func(o *rest.Options) {
		o.MaxBodies = 32 << 20 // of which a client has 4 MiB for answers, and 2 MiB of them to spare
		opts = *o
	})
	s.expect(`PUT /text.json?print=silent "`+strings.Repeat("compress me ", 1000)+`"`, `204`)
	handler := rest.New(opts)
	var ask func(depth int) string
	ask = func(depth int) string { // while others are under way
		if depth == 0 {
			return ""
		}
		encodings := ""
		w := &nested{ResponseRecorder: httptest.NewRecorder()}
		w.during = func() { encodings = ask(depth - 1) }
		r := httptest.NewRequest("GET", "https://localhost/text.json", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("the answer is %d %s", w.Code, w.Body)
		}
		return w.Header().Get("Content-Encoding") + "," + encodings
	}
	if got, want := ask(4), "gzip,gzip,,,"; got != want {
		t.Errorf("the encodings of answers under way together are %q, want %q", got, want)
	}
}

// nested is a client that does something else before it takes an answer.
type nested struct {
	*httptest.ResponseRecorder
	during func()
}

func (n *nested) WriteHeader(status int) {
	n.during()
	n.ResponseRecorder.WriteHeader(status)
}
