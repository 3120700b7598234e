package rest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/rest"
)

// anHourAhead is the clock of a server that gives nobody up during a test: its
// deadlines are an hour later than they would be.
func anHourAhead() time.Time { return time.Now().Add(time.Hour) }

// TestLargeAnswersThatNobodyReads: an answer that is one long string is held in
// memory until it is taken. There is a bound to that, and it is given back.
func TestLargeAnswersThatNobodyReads(t *testing.T) {
	t.Parallel()
	const length = 9_000_000 // more than the buffers of a connection hold
	s := serve(t, func(o *rest.Options) { o.MaxBody, o.MaxBodies, o.Now = 16<<20, 48<<20, anHourAhead })
	long := strings.Repeat("x", length)
	s.expect(`PUT /long.json?print=silent "`+long+`"`, `204`)
	var idle []*wire
	for range 6 {
		w := s.dial()
		w.extend()
		if _, err := io.WriteString(w.Conn, wireText("GET /long.json HTTP/1.1\nHost: h\n\n")); err != nil {
			t.Fatal(err)
		}
		idle = append(idle, w)
	}
	got := ""
	await(t, "those that came before to have their turn", func() bool {
		got, _ = s.do("GET /long.json")
		return strings.HasPrefix(got, "503")
	})
	if want := "503 {\n  \"error\" : \"too many large answers are under way, try again\"\n}"; got != want {
		t.Errorf("with 6 answers that nobody reads, another is answered %.80s, want %s", got, want)
	}
	s.expect(`PUT /small.json 1`, `200 1`, `GET /small.json`, `200 1`)
	for _, w := range idle {
		w.Close()
	}
	await(t, "them to be gone", func() bool {
		got, _ = s.do("GET /long.json")
		return strings.HasPrefix(got, "200")
	})
	if want := fmt.Sprintf(`200 "%s"`, long); got != want {
		t.Errorf("when they are gone the answer is %.80s", got)
	}
}

// brokenWriter is the way to a client that has left.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestClientThatLeavesIsNoError: the context of a request need not have ended for
// that.
func TestClientThatLeavesIsNoError(t *testing.T) {
	t.Parallel()
	var opts rest.Options
	log := &syncBuffer{}
	s := serve(t, func(o *rest.Options) {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		opts = *o
	})
	s.expect(`PUT /long.json?print=silent {"a":"`+strings.Repeat("x", 200_000)+`"}`, `204`)
	defer func() {
		if cause := recover(); cause != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
			t.Errorf("the handler ended with %v, want it to cut the answer", cause)
		}
		if log.String() != "" {
			t.Errorf("the log says %s", log)
		}
	}()
	rest.New(opts).ServeHTTP(brokenWriter{httptest.NewRecorder()}, httptest.NewRequest("GET", "https://localhost/long.json", nil))
}

// TestTakenBack: of a request that was taken back, a write is not made, a read of many
// rows is not gone through, and nothing is said. Over HTTP/1.1 a client that sends no
// more may still read, so that it is answered.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	var opts rest.Options
	log := &syncBuffer{}
	s := serve(t, func(o *rest.Options) {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		opts = *o
	})
	list := "[1" + strings.Repeat(`,"an element of a list"`, 3000) + "]"
	s.expect("PUT /list.json?print=silent "+list, "204", "PUT /a.json 1", "200 1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answer := func(major int, method, target, body string) (got string) {
		w := httptest.NewRecorder()
		defer func() {
			if cause := recover(); cause == http.ErrAbortHandler && w.Body.Len() == 0 { //nolint:errorlint // net/http compares it so
				got = "aborted"
			}
		}()
		r := httptest.NewRequest(method, "https://localhost"+target, strings.NewReader(body)).WithContext(ctx)
		r.ProtoMajor = major
		rest.New(opts).ServeHTTP(w, r)
		return fmt.Sprintf("%d %s", w.Code, w.Body)
	}
	for _, target := range []string{"/list.json", `/list.json?orderBy="$key"&limitToLast=2000`, "/list.json?shallow=true"} {
		if got := answer(2, "GET", target, ""); got != "aborted" {
			t.Errorf("GET %s over HTTP/2: %.100s, want it aborted", target, got)
		}
		if got, _ := s.do("GET " + target); answer(1, "GET", target, "") != got {
			t.Errorf("GET %s over HTTP/1.1 is not %.100s", target, got)
		}
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH", "POST"} {
		if got := answer(2, method, "/a.json", `{"b":2}`); got != "aborted" {
			t.Errorf("%s over HTTP/2: %.100s, want it aborted", method, got)
		}
	}
	s.expect("GET /a.json", "200 1")
	if log.Len() > 0 {
		t.Errorf("the log says %s", log)
	}
}

// TestLongAnswersThatNobodyReads: each answer that is sent as it is read takes a
// cursor and buffers, however small its nodes are.
func TestLongAnswersThatNobodyReads(t *testing.T) {
	t.Parallel()
	const most = 8
	// One client gets an eighth: a quarter of what answers may take, which is half of that.
	log := &syncBuffer{}
	s := serve(t, func(o *rest.Options) {
		o.MaxBody, o.MaxBodies, o.Now = 1<<20, most*8*(160<<10), anHourAhead
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	part := "[" + strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 250) + "1]"
	for i := range 64 { // more than the buffers of a connection hold
		s.expect(fmt.Sprintf("PUT /long/%d.json?print=silent %s", i, part), "204")
	}
	var idle []*wire
	for range most {
		w := s.dial()
		w.send("GET /long.json HTTP/1.1\nHost: h\n\n")
		w.head() // it has begun
		idle = append(idle, w)
	}
	for range 3 {
		if got := s.dial().ask(request("GET", "/long.json", "")); !strings.HasPrefix(got, "503 {\n  \"error\" : \"too many large answers") {
			t.Errorf("with %d answers that nobody reads, another is answered %.100s, want 503", most, got)
		}
	}
	if lines := strings.Count(log.String(), "request failed"); lines != 1 {
		t.Errorf("the log has %d lines of three refusals at a time, want 1:\n%s", lines, log.String())
	}
	s.expect("GET /long/1/250.json", "200 1", "PUT /small.json 1", "200 1")
	for _, w := range idle {
		w.Close()
	}
	await(t, "an answer when they are gone", func() bool {
		got, _ := s.do("GET /long.json")
		return strings.HasPrefix(got, "200")
	})
}
