package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// waiting is a handler that says when it was entered, and waits.
type waiting struct {
	entered chan struct{}
	release chan struct{}
	deaf    bool // to the end of the request
}

func newWaiting() *waiting {
	return &waiting{entered: make(chan struct{}, 10), release: make(chan struct{})}
}

func (h *waiting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/wait" {
		return
	}
	gone := r.Context().Done()
	if h.deaf {
		gone = nil
	}
	h.entered <- struct{}{}
	select {
	case <-h.release:
		_, _ = io.WriteString(w, "done")
	case <-gone:
	}
}

// quick are limits under which draining takes no time of its own, and cuts nothing.
var quick = servingLimits{accept: time.Nanosecond, settle: time.Nanosecond, requests: patience, handlers: patience, fresh: patience}

// begin starts a request that waits, and returns when it is in its handler.
func (s *testServing) begin(h *waiting, protocol string) <-chan error {
	client, url := s.client(s.t, protocol), "https://"+s.addr+"/wait"
	if protocol == "http" {
		url = "http://" + s.addr + "/wait"
	}
	result := make(chan error, 1)
	go func() {
		_, body, err := get(client, url)
		if err == nil && body != "done" {
			err = fmt.Errorf("answered %q, want done", body)
		}
		result <- err
	}()
	select {
	case <-h.entered:
	case err := <-result:
		s.t.Fatalf("a request ends with %v before it has begun", err)
	}
	return result
}

// wantRefused waits until connections are refused.
func wantRefused(t *testing.T, addr string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("connections are still accepted")
		}
	}
}

func TestDrainAnswersWhatIsRunning(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"http", "https", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			h := newWaiting()
			s := startServing(t, servingOptions{secure: h, plain: h, limits: quick})
			idle := s.client(t, protocol) // and a connection that is kept
			_, _, _ = get(idle, "https://"+s.addr)
			answer := s.begin(h, protocol)
			drained := make(chan error, 1)
			go func() { drained <- s.drain(t.Context()) }()
			wantRefused(t, s.addr)
			wantRefused(t, s.httpAddr().String())
			select {
			case err := <-drained:
				t.Fatalf("drain returned %v with a request running, want it to wait", err)
			default:
			}
			close(h.release)
			if err := <-answer; err != nil {
				t.Errorf("the running request: %v", err)
			}
			if err := <-drained; err != nil {
				t.Errorf("drain: %v", err)
			}
		})
	}
}

// TestDrainAnswersFirstRequests: a connection that was opened before may make its
// first request, be it one for a lane or for net/http. Others without a request end
// at once.
func TestDrainAnswersFirstRequests(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{limits: quick})
	dial := func(addr string) net.Conn {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	exchange := func(conn net.Conn, request string) *http.Response {
		_ = conn.SetDeadline(time.Now().Add(patience))
		write(t, conn, request)
		response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: request[:strings.Index(request, " ")]})
		if err != nil {
			t.Fatalf("%.20q is not answered: %v", request, err)
		}
		return response
	}
	const ordinary, other = "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"
	idle := []net.Conn{s.dialTLS(t), dial(s.addr), dial(s.httpAddr().String())}
	for _, conn := range idle {
		exchange(conn, ordinary)
	}
	fresh := []net.Conn{s.dialTLS(t), s.dialTLS(t), dial(s.httpAddr().String()), dial(s.httpAddr().String())}
	exchange(dial(s.httpAddr().String()), ordinary) // so that those before it are accepted
	drained := make(chan error, 1)
	go func() { drained <- s.drain(t.Context()) }()
	for _, conn := range idle {
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("a connection without a request: %v", err)
		}
	}
	for i, conn := range fresh {
		if response := exchange(conn, []string{ordinary, other}[i%2]); response.StatusCode != http.StatusOK || !response.Close {
			t.Errorf("answered %d, close %t", response.StatusCode, response.Close)
		}
	}
	if err := <-drained; err != nil {
		t.Errorf("drain: %v", err)
	}
}

// TestDrainAnswersThoseThatOpen: a client that has connected before the port was
// closed may shake hands after it, and is answered. One of HTTP/2 may be told by
// GOAWAY instead that its request was not taken.
func TestDrainAnswersThoseThatOpen(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"http", "https"} {
		t.Run(protocol, func(t *testing.T) {
			s := startServing(t, servingOptions{limits: quick})
			idle := s.dialTLS(t)
			write(t, idle, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			await := func(opening int64) {
				for s.port.opens.Load() != opening {
					runtime.Gosched()
				}
			}
			await(0) // or the next one may not be accepted yet
			conn := connect(t, s.addr)
			await(1)
			drained := make(chan error, 1)
			go func() { drained <- s.drain(t.Context()) }()
			_, _ = io.Copy(io.Discard, idle) // the lanes are shutting down

			client := s.client(t, protocol)
			client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
			if _, _, err := get(client, protocol+"://"+s.addr); err != nil {
				t.Errorf("a client that had connected is not answered: %v", err)
			}
			client.CloseIdleConnections()
			if err := <-drained; err != nil {
				t.Errorf("drain: %v", err)
			}
		})
	}
}

func TestDrainAcceptsALittleLonger(t *testing.T) {
	t.Parallel()
	limits := quick
	limits.accept = time.Minute
	s := startServing(t, servingOptions{limits: limits})
	ctx, abort := context.WithCancel(t.Context())
	drained := make(chan error, 1)
	go func() { drained <- s.drain(ctx) }()
	s.wantGet(t, s.client(t, "https"), "https://"+s.addr, "secure HTTP/1.1 /")
	abort()
	if err := <-drained; !errors.Is(err, context.Canceled) {
		t.Errorf("drain that was aborted: %v, want %v", err, context.Canceled)
	}
	wantRefused(t, s.addr)
}

func TestDrainTellsClientsToGo(t *testing.T) {
	t.Parallel()
	limits := quick
	limits.settle, limits.requests = time.Minute, time.Minute
	s := startServing(t, servingOptions{limits: limits})
	client := s.client(t, "https")
	if response, _, err := get(client, "https://"+s.addr); err != nil || response.Close {
		t.Fatalf("before draining: close %v, %v, want a connection that is kept", response.Close, err)
	}
	ctx, abort := context.WithCancel(t.Context())
	drained := make(chan error, 1)
	go func() { drained <- s.drain(ctx) }()
	wantRefused(t, s.addr)
	wantRefused(t, s.httpAddr().String())
	for !s.guard.draining.Load() {
		runtime.Gosched()
	}
	if response, _, err := get(client, "https://"+s.addr); err != nil || !response.Close {
		t.Errorf("on a kept connection while draining: %v, want an answer with Connection: close", err)
	}
	abort()
	<-drained
}

func TestDrainClosesStreams(t *testing.T) {
	t.Parallel()
	h := newWaiting()
	s := startServing(t, servingOptions{secure: h, limits: quick, endAll: func(ctx context.Context) {
		if ctx.Err() != nil {
			t.Error("endAll has no time, want some")
		}
		close(h.release)
	}})
	stream := s.begin(h, "https")
	if err := s.drain(t.Context()); err != nil {
		t.Errorf("drain: %v", err)
	}
	if err := <-stream; err != nil {
		t.Errorf("the stream: %v, want it ended by endAll", err)
	}
}

func TestDrainCutsWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	limits := quick
	limits.requests = 50 * time.Millisecond
	h := newWaiting()
	s := startServing(t, servingOptions{secure: h, plain: h, limits: limits})
	answers := []<-chan error{s.begin(h, "http"), s.begin(h, "https"), s.begin(h, "h2")}
	// As long as a body is not read, net/http does not see its client go.
	write(t, s.dialTLS(t), "POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n")
	<-h.entered
	if err := s.drain(t.Context()); err != nil {
		t.Errorf("drain: %v, want none: the time was up", err)
	}
	for _, answer := range answers {
		if <-answer == nil {
			t.Error("a request that took too long was answered, want it cut")
		}
	}
	if !strings.Contains(s.log.String(), "requests are cut") {
		t.Error("nothing in the log about requests that were cut")
	}
}

func TestDrainAborts(t *testing.T) {
	t.Parallel()
	h := newWaiting()
	s := startServing(t, servingOptions{secure: h, limits: quick})
	answer := s.begin(h, "h2")
	ctx, abort := context.WithCancel(t.Context())
	drained := make(chan error, 1)
	go func() { drained <- s.drain(ctx) }()
	wantRefused(t, s.addr)
	abort()
	if err := <-drained; !errors.Is(err, context.Canceled) {
		t.Errorf("drain that was aborted: %v, want %v", err, context.Canceled)
	}
	if <-answer == nil {
		t.Error("the request was answered, want it cut")
	}
}

func TestDrainReportsHandlersThatStay(t *testing.T) {
	t.Parallel()
	limits := quick
	limits.requests, limits.handlers = 20*time.Millisecond, 20*time.Millisecond
	h := newWaiting()
	h.deaf = true
	s := startServing(t, servingOptions{secure: h, limits: limits})
	answer := s.begin(h, "https")
	if err := s.drain(t.Context()); !errors.Is(err, errHandlersRunning) {
		t.Errorf("drain with a handler that does not return: %v, want %v", err, errHandlersRunning)
	}
	close(h.release)
	<-answer
}

func TestDrainReportsStreamsThatStay(t *testing.T) {
	t.Parallel()
	limits := quick
	limits.requests, limits.handlers = 20*time.Millisecond, 20*time.Millisecond
	release := make(chan struct{})
	defer close(release)
	s := startServing(t, servingOptions{limits: limits, endAll: func(context.Context) { <-release }})
	if err := s.drain(t.Context()); !errors.Is(err, errHandlersRunning) {
		t.Errorf("drain with streams that do not end: %v, want %v", err, errHandlersRunning)
	}
}

func TestDrainBeforeServe(t *testing.T) {
	t.Parallel()
	checkGoroutines(t)
	s := newServing(servingOptions{secure: echo(""), plain: echo(""), logger: new(logBook).logger(), limits: quick, tls: &tls.Config{}})
	if err := s.listen("127.0.0.1:0", ""); err != nil {
		t.Fatal(err)
	}
	if s.httpAddr() != nil {
		t.Errorf("httpAddr() = %v, want none", s.httpAddr())
	}
	if err := s.drain(t.Context()); err != nil {
		t.Errorf("drain: %v", err)
	}
}
