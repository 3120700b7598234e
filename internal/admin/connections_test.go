package admin

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

const patience = time.Minute

// bounded starts a listener whose path /stream goes on until its client leaves.
func bounded(t *testing.T) *Listener { return boundedBy(t, ListenerOptions{}) }

func boundedBy(t *testing.T, opts ListenerOptions) *Listener {
	t.Helper()
	opts.Addr, opts.Logger = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	l, err := Listen(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", livez)
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		noteKnown(r.Context())
		noteStream(r.Context(), r.URL.Query().Get("of"))
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("GET /busy", func(_ http.ResponseWriter, r *http.Request) {
		noteKnown(r.Context())
		<-r.Context().Done()
	})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		var request struct{}
		if err := body(r, &request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	if err := l.Serve(mux, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return l
}

// A peer is a client on one connection.
type peer struct {
	net.Conn
	t *testing.T
	*bufio.Reader
}

func (p *peer) Read(b []byte) (int, error) { return p.Conn.Read(b) }

func dial(t *testing.T, l *Listener) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", l.tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &peer{Conn: conn, t: t, Reader: bufio.NewReader(conn)}
}

// get sends a request and returns the status line of its answer.
func (p *peer) get(path string) (string, error) {
	if _, err := fmt.Fprintf(p.Conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(p.Reader, nil)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(path, "/stream") {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	return response.Status, nil
}

func (p *peer) want(path string) {
	p.t.Helper()
	if status, err := p.get(path); err != nil || !strings.HasPrefix(status, "200") {
		p.t.Fatalf("GET %s: %s, %v", path, status, err)
	}
}

// wantCut waits until the connection is closed by the server.
func (p *peer) wantCut(why string) {
	p.t.Helper()
	if err := p.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, p.Reader); err != nil && !strings.Contains(err.Error(), "reset") {
		p.t.Errorf("%s: %v, want the connection cut", why, err)
	}
}

// TestIdleConnectionsGo opens far more connections than there may be. Health checks
// are answered, and no more are open.
func TestIdleConnectionsGo(t *testing.T) {
	l := bounded(t)
	kept := dial(t, l)
	kept.want("/livez")
	first := dial(t, l)
	for range 3 * MaxConnections {
		next := dial(t, l).LocalAddr().String()
		waitFor(t, func() bool { return l.knows(next) }) // many at once would all be younger than it
		kept.want("/livez")                              // it is never the one that was idle for longest
	}
	first.wantCut("the first of too many connections")
	dial(t, l).want("/livez")
	if n := l.count(); n > MaxConnections {
		t.Errorf("%d connections are open, want at most %d", n, MaxConnections)
	}
}

// TestStreamsGo: the oldest of too many streams goes, and one goes for a health check
// when nothing is idle.
func TestStreamsGo(t *testing.T) {
	l := bounded(t)
	var streams []*peer
	for range maxStreams + 1 {
		p := dial(t, l)
		p.want("/stream")
		streams = append(streams, p)
	}
	streams[0].wantCut("the oldest of too many streams")
	for range MaxConnections - maxStreams {
		if _, err := io.WriteString(dial(t, l).Conn, "GET /busy HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return l.count() == MaxConnections && l.idle() == 0 })
	dial(t, l).want("/livez")
	streams[1].wantCut("the oldest stream of a listener that is full")
	streams[2].wantOpen()
}

// stall sends a request without all of its body.
func (p *peer) stall(method, path string) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.Conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", method, path); err != nil {
		p.t.Fatal(err)
	}
}

// TestStrangersCutNobody: strangers who keep their requests open lose their own connections, and
// neither streams nor long requests of those who were recognised.
func TestStrangersCutNobody(t *testing.T) {
	l := boundedBy(t, ListenerOptions{bodyTime: patience})
	stream, busy := dial(t, l), dial(t, l)
	stream.want("/stream")
	if _, err := io.WriteString(busy.Conn, "GET /busy HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return l.known() == 2 })
	first := dial(t, l)
	first.stall("POST", "/v1/sessions")
	for n := 1; n <= 2*MaxConnections; n++ {
		waitFor(t, func() bool { return l.count() == min(n+2, MaxConnections) && l.idle() == 0 })
		dial(t, l).stall("POST", "/v1/sessions")
	}
	first.wantCut("the oldest of too many strangers")
	stream.wantOpen()
	busy.wantOpen()
	dial(t, l).want("/livez")
	if l.known() != 2 {
		t.Errorf("%d of 2 connections are left that were recognised", l.known())
	}
}

// TestBodiesToTheListenerThatDoNotCome: their requests are answered, and the connections end, whether anything reads
// the body or not.
func TestBodiesToTheListenerThatDoNotCome(t *testing.T) {
	l := boundedBy(t, ListenerOptions{bodyTime: 10 * time.Millisecond})
	for _, request := range [][3]string{{"GET", "/livez", "200"}, {"POST", "/v1/sessions", "400"}, {"DELETE", "/none", "405"}} {
		p := dial(t, l)
		p.stall(request[0], request[1])
		if answer, err := io.ReadAll(p.Reader); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+request[2]) {
			t.Errorf("%s %s is answered %q, %v; want %s and the end", request[0], request[1], answer, err, request[2])
		}
	}
}

// TestClientsOfTheListenerThatReadNothing: a client of HTTP/2 that takes no bytes from its connection does
// not keep what answers it for ever, whatever deadlines that has.
func TestClientsOfTheListenerThatReadNothing(t *testing.T) {
	server := httptest.NewUnstartedServer(nil) // for its certificate
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	l, err := Listen(ListenerOptions{Addr: "0.0.0.0:0", Logger: slog.New(slog.DiscardHandler), TLS: server.TLS, takeTime: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan struct{})
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		control, part := http.NewResponseController(w), make([]byte, 64<<10)
		for {
			_ = control.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	l.handler.Store(&handler)
	conn, err := tls.Dial("tcp", l.tcp.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.NetConn().Close()
	// The settings and the window let the answer have any length; then GET https://h/.
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+
		"\x00\x00\x06\x04\x00\x00\x00\x00\x00"+"\x00\x04\x7f\xff\xff\xff"+
		"\x00\x00\x04\x08\x00\x00\x00\x00\x00"+"\x7f\xff\x00\x00"+
		"\x00\x00\x06\x01\x05\x00\x00\x00\x01"+"\x82\x87\x01\x01h\x84"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(patience / 2):
		t.Error("the handler waits for its client without end")
	}
}

// TestOthersDoNotCutTheOperatorsStreams: who holds the secret of a database, and opens very many
// streams, loses their own.
func TestOthersDoNotCutTheOperatorsStreams(t *testing.T) {
	l := bounded(t)
	open := func(owner string, n int) (list []*peer) {
		for range n {
			p := dial(t, l)
			p.want("/stream?of=" + owner)
			list = append(list, p)
		}
		return list
	}
	operator := open("", 3)
	blog := open("blog", 2)
	shop := open("shop", maxStreams)
	shop[0].wantCut("the oldest stream of who has the most")
	for _, p := range append(operator, blog...) {
		p.wantOpen()
	}
	// The operator may have half, whatever others have.
	more := open("", maxStreams/2-3)
	blog[0].wantOpen()
	more[0].wantOpen()
	operator[0].wantOpen()
	// And no more than that, while others have theirs.
	open("", 1)
	operator[0].wantCut("the operator's oldest, when others have no more than their half")
	blog[1].wantOpen()
}

// wantOpen fails if a stream has ended.
func (p *peer) wantOpen() {
	p.t.Helper()
	if err := p.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.Peek(1); errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "reset") {
		p.t.Error("a younger stream was cut, too")
	}
}

func (l *Listener) count() int { return l.connections().size() }

func (l *Listener) connections() *connections { return l.tcp.(*connections) }

func (c *connections) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// known returns how many connections are open that were recognised.
func (l *Listener) known() (n int) {
	c := l.connections()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		if conn.known {
			n++
		}
	}
	return n
}

func (l *Listener) idle() (n int) {
	c := l.connections()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		if conn.idleSince > 0 {
			n++
		}
	}
	return n
}

// knows reports whether a connection from an address is accepted, and still open.
func (l *Listener) knows(addr string) bool {
	c := l.connections()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.open, func(n *connection) bool { return n.RemoteAddr().String() == addr })
}

// waitFor waits until something is so.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !is() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal("it never is so")
		}
	}
}
