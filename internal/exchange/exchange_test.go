package exchange_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/exchange"
)

func begin(body string) (*exchange.Exchange, *httptest.ResponseRecorder, *http.Request) {
	w, r := httptest.NewRecorder(), httptest.NewRequest("PUT", "/a.json", strings.NewReader(body))
	return exchange.New(w, r), w, r
}

func TestExchangeKnowsItsAnswer(t *testing.T) {
	x, w, r := begin("12345")
	if exchange.Of(x) != x || exchange.Of(w) != nil {
		t.Error("Of does not return the exchange that a handler is called with")
	}
	if x.Begun() || x.Status() != 0 {
		t.Errorf("before an answer: begun %v, status %d", x.Begun(), x.Status())
	}
	if _, err := io.ReadAll(r.Body); err != nil {
		t.Fatal(err)
	}
	x.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(x, "one")
	_, _ = x.Write([]byte("two"))
	in, out := x.Bytes()
	if !x.Begun() || x.Status() != http.StatusCreated || in != 5 || out != 6 {
		t.Errorf("after an answer: begun %v, status %d, %d bytes in and %d out", x.Begun(), x.Status(), in, out)
	}
	if id := w.Header().Get(exchange.IDHeader); id != x.ID() || w.Body.String() != "onetwo" {
		t.Errorf("the client is answered %q with the id %q, want onetwo with %q", w.Body, id, x.ID())
	}
}

func TestExchangeBeginsAfterAnnouncements(t *testing.T) {
	x, _, _ := begin("")
	x.WriteHeader(http.StatusEarlyHints)
	if x.Begun() || x.Status() != 0 {
		t.Errorf("after an announcement: begun %v, status %d", x.Begun(), x.Status())
	}
	x.WriteHeader(http.StatusSwitchingProtocols)
	if x.Begun() || x.Status() != http.StatusSwitchingProtocols {
		t.Errorf("after another protocol was chosen: begun %v, status %d", x.Begun(), x.Status())
	}
}

func TestExchangeWithoutAStatusIsOK(t *testing.T) {
	for name, answer := range map[string]func(x *exchange.Exchange){
		"nothing": func(x *exchange.Exchange) { x.Begin() },
		"a flush": func(x *exchange.Exchange) { x.Flush() },
		"a text":  func(x *exchange.Exchange) { _, _ = io.WriteString(x, "text") },
	} {
		x, _, _ := begin("")
		if answer(x); x.Status() != http.StatusOK || !x.Begun() {
			t.Errorf("an answer of %s: begun %v, status %d", name, x.Begun(), x.Status())
		}
	}
}

func TestExchangeIsToldByHandlers(t *testing.T) {
	x, _, _ := begin("")
	x.Note("data", "one")
	x.Note("stream", "two")
	x.NoteIdentified()
	if route, database := x.Noted(); route != "stream" || database != "two" || !x.Identified() {
		t.Errorf("the exchange knows %s of %s, identified %v", route, database, x.Identified())
	}
}

func TestExchangeEndsTheConnectionWhileDraining(t *testing.T) {
	for _, test := range []struct {
		before, later bool
		want          string
	}{{false, false, ""}, {true, true, "close"}, {false, true, ""}} {
		var draining atomic.Bool
		x, w, _ := begin("")
		x.EndWhile(&draining)
		draining.Store(test.before)
		x.WriteHeader(http.StatusOK)
		draining.Store(test.later)
		_, _ = io.WriteString(x, "text")
		if got := w.Header().Get("Connection"); got != test.want {
			t.Errorf("draining %v before and %v after the head: Connection %q, want %q", test.before, test.later, got, test.want)
		}
	}
}

func TestIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		x, _, _ := begin("")
		if len(x.ID()) != 16 || seen[x.ID()] {
			t.Fatalf("the id %q came twice or is not of 16 digits", x.ID())
		}
		seen[x.ID()] = true
	}
}

func TestFail(t *testing.T) {
	w := httptest.NewRecorder()
	exchange.Fail(w, http.StatusForbidden, `no "entry"`)
	const want = "{\n  \"error\" : \"no \\\"entry\\\"\"\n}\n"
	if w.Code != http.StatusForbidden || w.Body.String() != want || w.Header().Get("Content-Length") != "31" {
		t.Errorf("an error is answered %d %q %v, want %q", w.Code, w.Body, w.Header(), want)
	}
}

func TestRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, release := exchange.NewRunning(), make(chan struct{})
		handler := running.Around(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		ask := func() (aborted bool) {
			defer func() { aborted = recover() != nil }()
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			return false
		}
		for range 2 {
			go ask()
		}
		synctest.Wait()
		if n := running.Count(); n != 2 {
			t.Errorf("%d requests are running, want 2", n)
		}
		running.Shut()
		if !ask() {
			t.Error("a request begins after Shut")
		}
		if n := running.Wait(time.Second); n != 2 {
			t.Errorf("%d requests are left when the time is up, want 2", n)
		}
		waited := make(chan int64)
		go func() { waited <- running.Wait(time.Hour) }()
		start := time.Now()
		close(release)
		if n := <-waited; n != 0 || time.Since(start) > 0 {
			t.Errorf("Wait returned %d after %v, want 0 as soon as the last one has left", n, time.Since(start))
		}
	})
}
