//go:build unix

package trust_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// A bug is a planted bug: a server in front of the real one, which behaves like
// it but for one thing.
type bug struct {
	name string
	// meet answers a request itself, or changes it, and reports whether it has
	// answered.
	meet func(w http.ResponseWriter, r *http.Request) bool
	// change alters an answer of the real server.
	change func(r *http.Response) error
}

// plant returns a client of a server with a bug.
func plant(t *testing.T, p *process, f bug) *client {
	t.Helper()
	real := newClient(t, p, 1)
	to, err := url.Parse(real.base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport:      real.http.Transport,
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: f.change,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.meet == nil || !f.meet(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	return &client{base: front.URL, http: front.Client()}
}

// every returns a function that is true for every nth call.
func every(n int64) func() bool {
	var calls atomic.Int64
	return func() bool { return calls.Add(1)%n == 0 }
}

// replaceBody gives a request another body.
func replaceBody(r *http.Request, change func(string) string) {
	body, _ := io.ReadAll(r.Body)
	body = []byte(change(string(body)))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// TestKillLoopFindsBugs shows that the witnesses notice servers that lose, tear,
// repeat, or do what they refuse.
func TestKillLoopFindsBugs(t *testing.T) {
	t.Parallel()
	lost, torn, ignored, kept := every(40), every(5), every(3), every(3)
	for _, f := range []bug{
		{name: "loses a write that it has acknowledged", meet: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != "PUT" || strings.Contains(r.URL.Path, "priority") || r.Header.Get("If-Match") != "" || !lost() {
				return false
			}
			_, _ = io.Copy(w, r.Body)
			return true
		}},
		{name: "writes a part of a patch", meet: func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == "PATCH" && torn() {
				replaceBody(r, func(body string) string { return strings.Replace(body, `"b/y/z":`, `"b/y/zz":`, 1) })
			}
			return false
		}},
		{name: "ignores conditions", meet: func(_ http.ResponseWriter, r *http.Request) bool {
			if ignored() {
				r.Header.Del("If-Match")
			}
			return false
		}},
		{name: "does what it refuses", change: func(r *http.Response) error {
			if r.Request.Method == "DELETE" && r.StatusCode == http.StatusOK && kept() {
				r.StatusCode = http.StatusBadRequest
			}
			return nil
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			p := startProcess(t, "--dev")
			l := newKillLoop(p, 1, 6, func(int) *client { return plant(t, p, f) })
			for l.rounds < 500 && len(l.books.problems) == 0 { // most are found in the first
				// A loop that finds much in one round gives up with an error.
				if err := l.run(1); err != nil && len(l.books.problems) == 0 {
					t.Fatal(err)
				}
			}
			if len(l.books.problems) == 0 {
				t.Errorf("nothing was found in %d rounds", l.rounds)
			}
			t.Logf("found in round %d", l.rounds)
		})
	}
}

// TestKillLoopFindsUnanswered shows that requests are counted which a server that
// was asked to end has left without an answer.
func TestKillLoopFindsUnanswered(t *testing.T) {
	t.Parallel()
	dropped := every(200) // rarely enough that not all witnesses have to stop
	p := startProcess(t, "--dev")
	c := plant(t, p, bug{meet: func(http.ResponseWriter, *http.Request) bool {
		if dropped() {
			panic(http.ErrAbortHandler)
		}
		return false
	}})
	l := newKillLoop(p, 1, 6, func(int) *client { return c })
	for l.rounds < 500 && l.unansweredAtEnd == 0 {
		if err := l.run(1); err != nil {
			t.Fatal(err)
		}
	}
	if l.unansweredAtEnd == 0 {
		t.Errorf("%d rounds, %d of them ended in order: no request without an answer was found", l.rounds, l.ends)
	}
	t.Logf("found in round %d", l.rounds)
}

// TestLinearFindsBugs shows that a history is refused which no order explains.
func TestLinearFindsBugs(t *testing.T) {
	t.Parallel()
	var old atomic.Value
	stale, ignored, twice := every(10), every(3), every(4)
	for _, f := range []bug{
		{name: "answers a stale read", change: func(r *http.Response) error {
			if r.Request.Method != "GET" || r.Request.URL.Path != "/.json" || r.Request.URL.RawQuery != "ns=linear-0" {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if last := old.Swap(string(body)); last != nil && stale() || err != nil {
				body = []byte(last.(string))
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", fmt.Sprint(len(body)))
			return nil
		}},
		{name: "ignores conditions", meet: func(_ http.ResponseWriter, r *http.Request) bool {
			if ignored() {
				r.Header.Del("If-Match")
			}
			return false
		}},
		{name: "counts twice", meet: func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == "PUT" && twice() {
				replaceBody(r, func(body string) string { return strings.Replace(body, `"increment":1`, `"increment":2`, 1) })
			}
			return false
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			p := startProcess(t, "--dev")
			c := plant(t, p, f)
			// Histories of the database linear-0 only, and each from the start.
			for n := range uint64(500) { // most are found in the first
				l := newLinear(p, n, func(int) *client { return c })
				if err := l.batch(1, 4, 38); err != nil {
					t.Fatal(err)
				}
				if len(l.illegal) > 0 {
					t.Logf("found in history %d", n+1)
					return
				}
			}
			t.Error("nothing was found in 500 histories")
		})
	}
}
