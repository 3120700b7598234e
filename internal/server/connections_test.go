package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/clientaddr"
)

// TestMaxConnections: connections over the bound are cut, those within it go on,
// and one that ends makes room.
func TestMaxConnections(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{limits: servingLimits{maxConnections: 2}})
	client := s.client(t, "https")
	s.wantGet(t, client, "https://"+s.addr+"/a", "secure HTTP/1.1 /a")
	plain := s.client(t, "http")
	s.wantGet(t, plain, "http://"+s.httpAddr().String()+"/b", "plain HTTP/1.1 /b")

	for _, addr := range []string{s.addr, s.httpAddr().String()} {
		wantCut(t, connect(t, addr))
	}
	s.wantGet(t, client, "https://"+s.addr+"/c", "secure HTTP/1.1 /c")
	if !strings.Contains(s.log.String(), "connections are refused") {
		t.Error("the log does not tell that connections are refused")
	}

	plain.CloseIdleConnections()
	wait(t, "room after a connection has ended", func() bool {
		_, _, err := get(s.client(t, "h2"), "https://"+s.addr+"/d")
		return err == nil
	})
}

// TestBoundConnEndsOnce: a connection that is closed twice makes room for one.
func TestBoundConnEndsOnce(t *testing.T) {
	t.Parallel()
	open := newConnections(servingLimits{maxConnections: 1, perAddress: 0}, nil, new(logBook).logger())
	here, there := net.Pipe()
	defer there.Close()
	conn := open.admit(here).(*boundConn)
	conn.Close()
	conn.Close()
	if n := open.room.open; n != 0 {
		t.Errorf("%d connections are open, want 0", n)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Errorf("CloseWrite of a connection without halves: %v", err)
	}
}

func TestLimitsReachTheServer(t *testing.T) {
	t.Parallel()
	l := Limits{HeadTimeout: 3 * time.Second, IdleTimeout: 4 * time.Second, DrainAccept: time.Millisecond, DrainRequests: 5 * time.Second, MaxConnections: 7}
	if err := l.check(); err != nil {
		t.Fatal(err)
	}
	s := newServing(servingOptions{secure: http.NotFoundHandler(), plain: http.NotFoundHandler(), logger: new(logBook).logger(), limits: l.serving()})
	defer s.close()
	if s.secure.ReadHeaderTimeout != 3*time.Second || s.plain.IdleTimeout != 4*time.Second {
		t.Errorf("the times are %v and %v, want 3s and 4s", s.secure.ReadHeaderTimeout, s.plain.IdleTimeout)
	}
	if got := s.options.limits; got.accept != time.Millisecond || got.requests != 5*time.Second || got.maxConnections != 7 {
		t.Errorf("the limits are %+v", got)
	}
	for _, wrong := range []Limits{{MaxStreams: -1}, {KeepAlive: -1}, {MemoryLimit: -1}, {RateLimit: RateLimit{PerSecond: -1}}} {
		if err := wrong.check(); err == nil {
			t.Errorf("%+v was taken", wrong)
		}
	}
}

// A fromAddr is a connection from an address, over which nothing is sent.
type fromAddr struct {
	net.Conn
	remote net.Addr
	closed bool
}

func (c *fromAddr) RemoteAddr() net.Addr { return c.remote }

func (c *fromAddr) Close() error {
	c.closed = true
	return nil
}

// admitFrom has a connection come from an address, and reports whether it is let in.
func admitFrom(c *connections, from string) (bound net.Conn, below *fromAddr, in bool) {
	below = &fromAddr{remote: &net.TCPAddr{IP: net.ParseIP(from), Port: 1}}
	bound = c.admit(below)
	return bound, below, bound != nil && !below.closed
}

// TestConnectionsOfANetwork: all addresses of an IPv6 network of 64 bits are one, and
// an IPv4 address is the same in IPv6.
func TestConnectionsOfANetwork(t *testing.T) {
	t.Parallel()
	log := new(logBook)
	c := newConnections(servingLimits{maxConnections: 8, perAddress: 2}, nil, log.logger())
	for _, from := range []string{"2001:db8::1", "2001:db8::2", "192.0.2.1", "::ffff:192.0.2.1", "198.51.100.1"} {
		if _, _, in := admitFrom(c, from); !in {
			t.Fatalf("a connection from %s is cut", from)
		}
	}
	for from, want := range map[string]bool{"2001:db8::3": false, "2001:db8:0:1::1": true, "192.0.2.1": false, "192.0.2.2": true} {
		if _, below, in := admitFrom(c, from); in != want || below.closed == want {
			t.Errorf("a connection from %s is let in: %v, want %v", from, in, want)
		}
	}
	if full, over := c.full.Load(), c.overShare.Load(); full != 0 || over != 2 {
		t.Errorf("%d were counted as refused because the server is full, %d because of their address, want 0 and 2", full, over)
	}
	if !strings.Contains(log.String(), "--max-connections-per-address") {
		t.Errorf("the log does not say what to do:\n%s", log)
	}
}

// TestShed: the connection that goes for another is closed, counted and logged. The
// next one is refused when the others are at work.
func TestShed(t *testing.T) {
	t.Parallel()
	log := new(logBook)
	c := newConnections(servingLimits{maxConnections: 4, perAddress: 1}, nil, log.logger())
	served, _, _ := admitFrom(c, "192.0.2.1")
	atWork, _, _ := admitFrom(c, "192.0.2.1")
	_, silent, _ := admitFrom(c, "192.0.2.1")
	admitFrom(c, "192.0.2.2")
	c.note(served, http.StateActive)
	c.note(served, http.StateIdle) // now the shortest time ago
	c.note(atWork, http.StateActive)
	if _, _, in := admitFrom(c, "192.0.2.3"); !in || !silent.closed {
		t.Errorf("a connection of another address is let in: %v, and the longest idle one closed: %v; want both", in, silent.closed)
	}
	c.note(served, http.StateHijacked)
	if _, _, in := admitFrom(c, "192.0.2.4"); in {
		t.Error("a connection is let in for one at work")
	}
	if shed, full := c.shed.Load(), c.full.Load(); shed != 1 || full != 1 || c.room.open != 4 {
		t.Errorf("%d were closed, %d refused, %d are open, want 1, 1 and 4", shed, full, c.room.open)
	}
	if !strings.Contains(log.String(), "idle connections are closed") {
		t.Errorf("the log does not tell of it:\n%s", log)
	}
}

// TestIdleIsKnown: whoever serves a connection, and however, it is idle before its first
// request and after each, and not meanwhile.
func TestIdleIsKnown(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-leave
	})
	for _, noLane := range []bool{false, true} {
		s := startServing(t, servingOptions{secure: handler, plain: handler, noLane: noLane})
		for protocol, url := range map[string]string{"http": "http://" + s.httpAddr().String(), "https": "https://" + s.addr, "h2": "https://" + s.addr} {
			client := s.client(t, protocol)
			for range 3 {
				done := make(chan error)
				go func() { _, _, err := get(client, url); done <- err }()
				select {
				case <-entered:
				case err := <-done:
					t.Fatalf("a request ends with %v before it has begun", err)
				}
				if states := s.connections.idle(); !slices.Equal(states, []bool{false}) {
					t.Errorf("%s, noLane %v: while a request is at work, the connections are idle: %v", protocol, noLane, states)
				}
				leave <- struct{}{}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				wait(t, "a connection to be idle", func() bool { return slices.Equal(s.connections.idle(), []bool{true}) })
			}
			client.CloseIdleConnections()
			wait(t, "no connection", func() bool { return len(s.connections.idle()) == 0 })
		}
		connect(t, s.addr)
		wait(t, "a connection without a request to be idle", func() bool { return slices.Equal(s.connections.idle(), []bool{true}) })
	}
}

// idle returns which connections are idle.
func (c *connections) idle() (states []bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.room.addresses {
		for _, s := range a.seats {
			states = append(states, s.idleSince.Load() != busy)
		}
	}
	return states
}

// TestTakenOverIsBusy: a connection that a handler has taken over, as streams are, is at
// work when the handler has returned.
func TestTakenOverIsBusy(t *testing.T) {
	t.Parallel()
	taken := make(chan net.Conn, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		taken <- conn
	})
	s := startServing(t, servingOptions{plain: handler})
	conn := connect(t, s.addr)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	defer (<-taken).Close()
	if states := s.connections.idle(); !slices.Equal(states, []bool{false}) {
		t.Errorf("the connections are idle: %v, want one that is not", states)
	}
}

// BenchmarkNote is what a request over TLS takes to be known as one.
func BenchmarkNote(b *testing.B) {
	c := newConnections(servingLimits{maxConnections: 4, perAddress: 0}, nil, new(logBook).logger())
	bound, _, _ := admitFrom(c, "192.0.2.1")
	var conn net.Conn = tls.Server(&sniffedConn{Conn: bound}, nil)
	b.ReportAllocs()
	for b.Loop() {
		c.note(conn, http.StateActive)
		c.note(conn, http.StateIdle)
	}
}

// TestConnectionsOfAProxy: a trusted proxy may have all connections, and loses none of
// them to others.
func TestConnectionsOfAProxy(t *testing.T) {
	t.Parallel()
	c := newConnections(servingLimits{maxConnections: 8}, clientaddr.Proxies{netip.MustParsePrefix("10.1.0.0/16")}, new(logBook).logger())
	for i := range 8 {
		if _, _, in := admitFrom(c, "10.1.2.3"); !in {
			t.Fatalf("connection %d of the proxy is cut", i)
		}
	}
	if _, _, in := admitFrom(c, "192.0.2.1"); in {
		t.Error("a connection of another address is let in when the proxy has all")
	}
	if full, shed := c.full.Load(), c.shed.Load(); full != 1 || shed != 0 {
		t.Errorf("%d were refused and %d closed, want 1 and 0", full, shed)
	}
}

// TestClientBehindProxy: whoever serves a request, and however, the handler and the
// observers see the address of the client that a trusted proxy names.
func TestClientBehindProxy(t *testing.T) {
	t.Parallel()
	observed := make(chan string, 1)
	tell := func(o Observation) { observed <- o.Remote }
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, clientaddr.Of(r).Addr()) })
	for _, noLane := range []bool{false, true} {
		s := startServing(t, servingOptions{
			secure: handler, plain: handler, noLane: noLane,
			proxies: clientaddr.Proxies{netip.MustParsePrefix("127.0.0.0/8")},
			observe: func(next http.Handler) http.Handler { return observe(next, []Observer{tell}) },
		})
		for protocol, url := range map[string]string{"http": "http://" + s.addr, "https": "https://" + s.addr, "h2": "https://" + s.addr} {
			client := s.client(t, protocol)
			for _, want := range []string{"192.0.2.1", "2001:db8::1"} {
				r, err := http.NewRequest(http.MethodGet, url, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Forwarded-For", "203.0.113.1, "+want)
				answer, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if err != nil || string(got) != want {
					t.Errorf("%s, noLane %v: the client is %s, %v, want %s", protocol, noLane, got, err, want)
				}
				if remote := <-observed; !strings.Contains(remote, want) {
					t.Errorf("%s, noLane %v: the observer is told of %s, want %s", protocol, noLane, remote, want)
				}
			}
		}
	}
}
