package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/rest"
)

// bodies that are announced and do not come, of requests that ignore theirs.
var unsent = map[string]string{
	"a read":             "GET /long.json HTTP/1.1\nHost: h\nContent-Length: 1\n\n",
	"a read in chunks":   "GET /long.json HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n",
	"a part in chunks":   "GET /long.json HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n1\r\n1\r\n",
	"a read of the head": "HEAD /long.json HTTP/1.1\nHost: h\nContent-Length: 10\n\n",
	"a filtered read":    "GET /long.json?shallow=true HTTP/1.1\nHost: h\nContent-Length: 10\n\n12345",
	"a stream":           "GET /long.json HTTP/1.1\nHost: h\nAccept: text/event-stream\nContent-Length: 10\n\n",
	"a delete":           "DELETE /other.json HTTP/1.1\nHost: h\nContent-Length: 10\n\n",
	"an override":        "POST /other.json HTTP/1.1\nHost: h\nX-HTTP-Method-Override: DELETE\nContent-Length: 10\n\n",
	"the rules":          "GET /.settings/rules.json?auth=" + secret + " HTTP/1.1\nHost: h\nContent-Length: 10\n\n",
}

// TestUnwantedBodiesThatDoNotCome: a request whose body means nothing waits for it, but not for
// ever, and holds no memory meanwhile.
func TestUnwantedBodiesThatDoNotCome(t *testing.T) {
	t.Parallel()
	var isImpatient atomic.Bool // a machine that is busy may not send what is there before in 10 ms
	s := serve(t, func(o *rest.Options) {
		o.Now = func() time.Time {
			if !isImpatient.Load() {
				return time.Now()
			}
			return time.Now().Add(10*time.Millisecond - rest.BodyWindow)
		}
	})
	s.expect(`PUT /long.json?print=silent {"a":"`+strings.Repeat("x", 200_000)+`"}`, `204`)
	isImpatient.Store(true)
	for name, request := range unsent {
		w := s.dial()
		w.send(request)
		method, _, _ := strings.Cut(request, " ")
		head, body := w.receive(method)
		if !strings.HasPrefix(head, "HTTP/1.1 408 ") || header(head, "Connection") != "close" {
			t.Errorf("%s is answered %s%.100s, want 408", name, head, body)
		}
		if !w.isClosed() {
			t.Errorf("%s: the connection stays open", name)
		}
	}
}

// looking looks when it is read from.
type looking struct {
	stalled
	look func()
}

func (l *looking) Read(p []byte) (int, error) {
	l.look()
	return l.stalled.Read(p)
}

// TestNothingIsHeldForUnwantedBodies: the memory of an answer is taken when the body is there.
func TestNothingIsHeldForUnwantedBodies(t *testing.T) {
	t.Parallel()
	handler, _ := serveHandler(t, 4<<20)
	put := httptest.NewRequest("PUT", "https://localhost/long.json", strings.NewReader(`{"a":"`+strings.Repeat("x", 200_000)+`"}`))
	handler.ServeHTTP(httptest.NewRecorder(), put)
	reads := 0
	body := &looking{look: func() {
		if reads++; handler.BodiesTaken() != 0 {
			t.Errorf("an answer takes %d bytes while its request is read", handler.BodiesTaken())
		}
	}}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "https://localhost/long.json", body))
	if w.Code != http.StatusRequestTimeout || reads == 0 {
		t.Errorf("a body that stops, of a GET, is answered %d after %d reads", w.Code, reads)
	}
}

// TestUnwantedBodiesThatAreLong: they are not read to their end, and the request is answered.
func TestUnwantedBodiesThatAreLong(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.expect(`PUT /a.json 1`, `200 1`)
	for name, request := range map[string]string{
		"a length": "GET /a.json HTTP/1.1\nHost: h\nContent-Length: 300000\n\n",
		"chunks":   "GET /a.json HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n50000\r\n" + strings.Repeat("x", 0x50000) + "\r\n",
	} {
		w := s.dial()
		w.send(request)
		if head, body := w.receive("GET"); !strings.HasPrefix(head, "HTTP/1.1 200 ") || header(head, "Connection") != "close" || body != "1" {
			t.Errorf("%s: the answer is %s%s", name, head, body)
		}
	}
}
