package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A handlerOfPatience answers "/answered" with who asked, and other requests never: it
// waits until they are taken back.
type handlerOfPatience struct {
	started chan string // who asks
	ended   chan struct{}
}

func (h handlerOfPatience) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/answered" {
		_, _ = io.WriteString(w, r.RemoteAddr)
		return
	}
	h.started <- r.RemoteAddr
	<-r.Context().Done()
	h.ended <- struct{}{}
}

// takeBack sends a request, takes it back, and returns from where it came; empty if it
// did not come.
func (h handlerOfPatience) takeBack(t *testing.T, client *http.Client, url string) (from string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		response, err := client.Do(request)
		if err == nil {
			response.Body.Close()
		}
		failed <- err
	}()
	select {
	case from = <-h.started:
	case <-failed:
		return ""
	}
	cancel()
	<-h.ended
	if err := <-failed; err == nil {
		t.Fatal("a request that was taken back is answered")
	}
	return from
}

// TestTakenBackRequestsCutTheirConnection takes requests back, one after the other:
// as many as may be, and then more.
func TestTakenBackRequestsCutTheirConnection(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := handlerOfPatience{started: make(chan string), ended: make(chan struct{})}
	s := startServing(t, servingOptions{secure: h, now: func() time.Time { return now }})
	client, url := s.client(t, "h2"), "https://"+s.addr
	first := h.takeBack(t, client, url)
	for range mostTakenBack - 1 {
		if from := h.takeBack(t, client, url); from != first {
			t.Fatal("the connection was cut too soon")
		}
	}
	if _, to, err := get(client, url+"/answered"); err != nil || to != first || s.resets.cuts.Load() > 0 {
		t.Fatalf("after as many as may be: an answer to %s, %v; want one to %s", to, err, first)
	}
	for more := 0; h.takeBack(t, client, url) == first; more++ {
		if more == mostTakenBack {
			t.Fatal("the connection is never cut")
		}
	}
	if n := strings.Count(s.log.String(), "connections are cut"); n != 1 || s.resets.cuts.Load() != 1 {
		t.Errorf("the log tells of it %d times, the count is %d; want one", n, s.resets.cuts.Load())
	}
}

func TestTakenBackIsForgiven(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	var taken takenBack
	for i, step := range []struct {
		after time.Duration
		n     float64
		want  float64
	}{
		{0, 1, 1},
		{0, 1, 2},
		{0, -1, 1},
		{0, -1, 0},
		{0, -1, 0}, // what was answered is no credit
		{0, 400, 400},
		{time.Second, 1, 400 - forgiven + 1},
		{0, 1, 400 - forgiven + 2},
		{-time.Second, 1, 400 - forgiven + 3}, // by another goroutine, which was held up
		{time.Hour, 1, 1},
	} {
		now = now.Add(step.after)
		if got := taken.add(step.n, now); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}

// TestTakenBackBeforeItsTurn: nothing is done for such a request of HTTP/2. Over
// HTTP/1.1 a context that has ended is no proof that nobody reads.
func TestTakenBackBeforeItsTurn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	r := &resets{logger: new(logBook).logger(), now: func() time.Time { return now }}
	var connection takenBack
	var called atomic.Int64
	handler := r.watching(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }))
	serve := func(major int) (aborted bool) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), takenBackKey{}, &connection))
		cancel()
		request := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
		request.ProtoMajor = major
		defer func() { aborted = recover() == http.ErrAbortHandler }() //nolint:errorlint // net/http compares it so
		handler.ServeHTTP(httptest.NewRecorder(), request)
		return false
	}
	if !serve(2) || called.Load() != 0 || connection.more != 1 {
		t.Errorf("HTTP/2: the handler was called %d times, %v are counted; want it aborted, and 1", called.Load(), connection.more)
	}
	if serve(1) || called.Load() != 1 || connection.more != 1 {
		t.Errorf("HTTP/1.1: the handler was called %d times, %v are counted; want one, and no more than before", called.Load(), connection.more)
	}
}

// TestLateResetIsNoHaste: that is how streams end.
func TestLateResetIsNoHaste(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	r := &resets{logger: new(logBook).logger(), now: func() time.Time { return now }}
	var connection takenBack
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), takenBackKey{}, &connection))
	request := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
	request.ProtoMajor = 2
	r.watching(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		now = now.Add(hasty)
		cancel()
	})).ServeHTTP(httptest.NewRecorder(), request)
	if connection.more != 0 {
		t.Errorf("%v are counted, want none", connection.more)
	}
}
