package lane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var testContext = context.Background()

// longWait is how long a test waits for what should come at once, on a machine
// that has much else to do.
const longWait = 3 * time.Minute

// nobodyTold is a ConnState.
func nobodyTold(net.Conn, http.ConnState) {}

// A pair is a handler behind a lane, and behind net/http alone.
type pair struct {
	lane   *Lane
	tcp    net.Listener
	behind *httptest.Server // what the lane hands over to
	handed chan net.Conn
	done   chan struct{} // not handed: a goroutine that Cut ends may still hand over
}

// Accept implements net.Listener for what is handed over.
func (p *pair) Accept() (net.Conn, error) {
	select {
	case conn := <-p.handed:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pair) Close() error   { return nil }
func (p *pair) Addr() net.Addr { return p.tcp.Addr() }

func newPair(t testing.TB, handler http.HandlerFunc) *pair {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{tcp: tcp, handed: make(chan net.Conn, 100), done: make(chan struct{})}
	p.lane = New(Options{
		Handler: handler, Context: testContext, HandOver: func(conn net.Conn) { p.handed <- conn }, ConnState: nobodyTold,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		First: longWait, Idle: longWait, Write: longWait, Fresh: longWait,
	})
	p.behind = httptest.NewUnstartedServer(handler)
	_ = p.behind.Listener.Close()
	p.behind.Listener = p
	p.behind.Start()
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			p.lane.Serve(conn)
		}
	}()
	t.Cleanup(func() {
		_ = tcp.Close()
		p.lane.Cut()
		close(p.done)
		p.behind.CloseClientConnections()
		p.behind.Close()
	})
	return p
}

// dial opens a connection to the lane.
func (p *pair) dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(longWait))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(t testing.TB, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// receive reads one answer.
func receive(t testing.TB, reader *bufio.Reader) (*http.Response, string) {
	t.Helper()
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return response, string(body) + " cut: " + err.Error()
	}
	return response, string(body)
}

// various answers as its path says.
func various(w http.ResponseWriter, r *http.Request) {
	size, _ := strconv.Atoi(r.URL.Query().Get("size"))
	text := strings.Repeat("0123456789abcdef", size/16)
	w.Header().Set("X-Lines", "a\r\nSet-Cookie: b")
	w.Header().Set("Content-Type", "text/plain")
	switch r.URL.Path {
	case "/known":
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = io.WriteString(w, text)
	case "/unknown":
		_, _ = io.WriteString(w, text)
	case "/pieces":
		for i := 0; i < len(text); i += 1000 {
			_, _ = io.WriteString(w, text[i:min(i+1000, len(text))])
		}
	case "/flushed":
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, text)
	case "/status":
		w.WriteHeader(size)
		_, err := io.WriteString(w, "text")
		if (size == 204 || size == 304) != errors.Is(err, http.ErrBodyNotAllowed) {
			panic(err)
		}
	case "/long":
		w.Header().Set("Content-Length", "3")
		if _, err := io.WriteString(w, "1234"); !errors.Is(err, http.ErrContentLength) {
			panic(err)
		}
		_, _ = io.WriteString(w, "123")
	case "/short":
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "123")
	case "/abort":
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "123")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "/last":
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "last")
	case "/echo":
		body, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %v", body, err)
	case "/unread":
		_, _ = io.WriteString(w, "unread")
	}
}

// TestAnswersAreThoseOfNetHTTP: whatever a handler does, the client sees the same.
func TestAnswersAreThoseOfNetHTTP(t *testing.T) {
	p := newPair(t, various)
	plain := httptest.NewServer(http.HandlerFunc(various))
	defer plain.Close()
	targets := []string{"/nothing", "/long", "/short", "/abort", "/last"}
	for _, path := range []string{"/known", "/unknown", "/pieces", "/flushed"} {
		for _, size := range []int{0, 16, 1600, 15 << 10, 16 << 10, 17 << 10, 200_000} {
			targets = append(targets, path+"?size="+strconv.Itoa(size))
		}
	}
	for _, status := range []int{200, 201, 204, 304, 401, 500} {
		targets = append(targets, "/status?size="+strconv.Itoa(status))
	}
	for _, target := range targets {
		show := func(address string) string {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			send(t, conn, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
			response, body := receive(t, bufio.NewReader(conn))
			if response.Header.Get("Date") == "" {
				t.Errorf("%s has no date", target)
			}
			delete(response.Header, "Date")
			length := response.ContentLength
			if length < 0 || strings.HasPrefix(target, "/pieces") || len(body) > 2000 {
				length = int64(len(body)) // when chunks begin differs
			}
			delete(response.Header, "Content-Length")
			return fmt.Sprint(response.Status, response.Header, length, response.Close, body)
		}
		got, want := show(p.tcp.Addr().String()), show(plain.Listener.Addr().String())
		if got != want {
			t.Errorf("%s: the lane answers\n%.300s\nnet/http\n%.300s", target, got, want)
		}
	}
	if n := len(p.handed); n > 0 {
		t.Errorf("%d connections were handed over", n)
	}
}

func TestRequestsOfOneConnection(t *testing.T) {
	p := newPair(t, various)
	conn := p.dial(t)
	reader := bufio.NewReader(conn)
	want := func(text string) {
		t.Helper()
		if _, body := receive(t, reader); body != text {
			t.Fatalf("got %.100q, want %.100q", body, text)
		}
	}
	get := "GET /unread HTTP/1.1\r\nHost: a\r\n\r\n"
	send(t, conn, get)
	want("unread")
	send(t, conn, get+get+"PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"+get) // all at once
	want("unread")
	want("unread")
	want("hello <nil>")
	want("unread")
	send(t, conn, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe") // a body in pieces
	send(t, conn, "ll")
	send(t, conn, "o"+get)
	want("hello <nil>")
	want("unread")
	large := strings.Repeat("x", 100_000)
	send(t, conn, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"+large)
	want(large + " <nil>")
	send(t, conn, "PUT /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n"+large[:10000]+get) // a body that nobody reads
	want("unread")
	want("unread")
	if n := len(p.handed); n > 0 {
		t.Errorf("%d connections were handed over", n)
	}
	send(t, conn, "HEAD /unread HTTP/1.1\r\nHost: a\r\n\r\n"+get) // not ordinary, and from here on all is net/http's
	if response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodHead}); err != nil || response.ContentLength != 6 {
		t.Fatal(response, err)
	}
	want("unread")
	send(t, conn, "PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
	want("hi <nil>")
}

// TestLargeUnreadBody: the client sees the answer although it is still sending, and
// the connection ends.
func TestLargeUnreadBody(t *testing.T) {
	conn := newPair(t, various).dial(t)
	reader := bufio.NewReader(conn)
	send(t, conn, "PUT /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 200_000))
	if response, body := receive(t, reader); body != "unread" || !response.Close {
		t.Errorf("got %q, and the client is told that the connection ends: %t", body, response.Close)
	}
	if _, err := reader.ReadByte(); err == nil {
		t.Error("the connection is kept")
	}
}

func TestShortBody(t *testing.T) {
	conn := newPair(t, various).dial(t)
	send(t, conn, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
	_ = conn.(*net.TCPConn).CloseWrite()
	if _, body := receive(t, bufio.NewReader(conn)); body != "hello unexpected EOF" {
		t.Errorf("got %q", body)
	}
}

// TestHandingOver: what is incomplete or wrong is answered by net/http.
func TestHandingOver(t *testing.T) {
	p := newPair(t, various)
	for _, test := range [][2]string{
		{"GET /unread HTTP/1.1\r\nHost", ": a\r\n\r\n"},
		{"GET /unread HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", inBytes), "\r\n\r\n"},
	} {
		conn := p.dial(t)
		send(t, conn, test[0])
		send(t, conn, test[1]) // perhaps in a piece of its own; in TestStreamsAreReadAsByNetHTTP surely so
		if _, body := receive(t, bufio.NewReader(conn)); body != "unread" {
			t.Errorf("%.60q is answered %q", test[0], body)
		}
	}
	for _, head := range extraordinaryHeads {
		conn := p.dial(t)
		send(t, conn, head+"\r\n")
		_ = conn.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(conn)
		if err != nil || len(answer) > 0 && !bytes.HasPrefix(answer, []byte("HTTP/1.")) {
			t.Errorf("%.60q is answered %q, %v", head, answer, err)
		}
	}
}

// noMore says that no other connection is to come.
func noMore() bool { return false }

// TestShutdownServesThoseToCome: a connection may still be on its way to the lane when
// it is shut down.
func TestShutdownServesThoseToCome(t *testing.T) {
	p := newPair(t, func(http.ResponseWriter, *http.Request) {})
	var last atomic.Bool
	asked, done := make(chan bool), make(chan bool)
	go func() {
		var once sync.Once
		p.lane.Shutdown(t.Context(), func() bool {
			once.Do(func() { close(asked) })
			return !last.Load()
		})
		close(done)
	}()
	<-asked
	conn := p.dial(t)
	send(t, conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if response, _ := receive(t, bufio.NewReader(conn)); response.StatusCode != http.StatusOK {
		t.Errorf("a connection that came late is answered %s", response.Status)
	}
	last.Store(true)
	<-done
	late := p.dial(t)
	if _, err := late.Read(make([]byte, 1)); err == nil {
		t.Error("a connection after the last is served")
	}
}

func TestShutdown(t *testing.T) {
	entered, leave := make(chan bool), make(chan bool)
	p := newPair(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- true
			<-leave
		}
	})
	idle, busy := p.dial(t), p.dial(t)
	send(t, idle, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	receive(t, bufio.NewReader(idle))
	send(t, busy, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	<-entered
	done := make(chan bool)
	go func() { p.lane.Shutdown(t.Context(), noMore); close(done) }()
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection without a request: %v", err)
	}
	select {
	case <-done:
		t.Error("Shutdown does not wait for a request")
	default:
	}
	leave <- true
	if response, _ := receive(t, bufio.NewReader(busy)); response.StatusCode != http.StatusOK {
		t.Errorf("the request is answered %s", response.Status)
	}
	<-done
}

// TestShutdownGivesUp when its context ends; Cut ends the rest.
func TestShutdownGivesUp(t *testing.T) {
	entered := make(chan bool)
	p := newPair(t, func(_ http.ResponseWriter, r *http.Request) {
		entered <- true
		_, _ = io.Copy(io.Discard, r.Body)
		close(entered)
	})
	send(t, p.dial(t), "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	p.lane.Shutdown(ctx, noMore)
	p.lane.Cut()
	<-entered
}

// scripted is a connection whose client sends the same request over and over.
type scripted struct {
	net.Conn
	request []byte
	left    int
}

func (s *scripted) Read(p []byte) (int, error) {
	if s.left--; s.left < 0 {
		return 0, io.EOF
	}
	return copy(p, s.request), nil
}

func (s *scripted) Write(p []byte) (int, error)      { return len(p), nil }
func (s *scripted) SetReadDeadline(time.Time) error  { return nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }
func (s *scripted) Close() error                     { return nil }

func serveScripted(request string, times int) {
	l := New(Options{Context: testContext, ConnState: nobodyTold, Now: time.Now, Idle: time.Minute, Write: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header()["Content-Length"] = four
			_, _ = io.WriteString(w, "null")
		})})
	c := &conn{lane: l, raw: &scripted{request: []byte(request), left: times}, remote: "a"}
	c.serve()
}

var four = []string{"4"}

const (
	scriptedGet = "GET /rooms/lobby/name.json HTTP/1.1\r\nHost: localhost:9000\r\nUser-Agent: test\r\nAccept-Encoding: gzip\r\n\r\n"
	scriptedPut = "PUT /rooms/lobby/name.json HTTP/1.1\r\nHost: localhost:9000\r\nContent-Length: 5\r\n\r\n\"abc\""
)

// TestAllocations: a request takes the string of its head.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	for _, request := range []string{scriptedGet, scriptedPut} {
		few := testing.AllocsPerRun(5, func() { serveScripted(request, 100) })
		many := testing.AllocsPerRun(5, func() { serveScripted(request, 1100) })
		if each := (many - few) / 1000; each > 1.05 {
			t.Errorf("%.20s takes %.2f allocations, want 1", request, each)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	for _, request := range []string{scriptedGet, scriptedPut} {
		b.Run(request[:3], func(b *testing.B) {
			b.ReportAllocs()
			serveScripted(request, b.N)
		})
	}
}
