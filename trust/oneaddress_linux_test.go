package trust_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A source is an address that clients of this test come from: one of 127.0.0.0/8, all
// of which are this machine's.
type source string

// dial opens a connection from the address. Whether the server keeps it shows later.
func (s source) dial(t *testing.T, p *process) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(string(s))}}
	conn, err := dialer.Dial("tcp", p.address())
	if err != nil {
		t.Fatalf("a connection from %s: %v", s, err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// fill opens idle connections from the address.
func (s source) fill(t *testing.T, p *process, n int) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = s.dial(t, p)
	}
	return conns
}

// client returns a client at the address.
func (s source) client(t *testing.T, p *process, major int) *client {
	t.Helper()
	c := dialClient(t, p.dir, p.address(), major)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(string(s))}}
	c.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, p.address())
	}
	return c
}

// stream opens a stream from the address, and returns its lines.
func (s source) stream(t *testing.T, p *process) *bufio.Reader {
	t.Helper()
	trusted, err := p.trusted()
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(s.dial(t, p), &tls.Config{RootCAs: trusted, ServerName: "localhost"})
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, "GET /told.json HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(conn)
	awaitLine(t, lines, "event: put")
	return lines
}

func awaitLine(t *testing.T, lines *bufio.Reader, want string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("a stream ends with %v before %q", err, want)
		}
		if strings.Contains(line, want) {
			return
		}
	}
}

// countOpen returns how many connections the server keeps: it answers a request over
// each of them.
func countOpen(conns []net.Conn) (open int) {
	for _, conn := range conns {
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(conn, "GET /a.json HTTP/1.1\r\nHost: localhost\r\n\r\n") // what is closed shows below
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			continue
		}
		if _, err := io.Copy(io.Discard, answer.Body); err == nil {
			open++
		}
	}
	return open
}

// TestOneAddressTakesAll has one address open far more connections than there may be.
// Clients at other addresses get in all the same: at first because half of all is left
// to them, and when that is taken because idle connections of the attacker are closed.
// What the attacker has at work, a stream, goes on.
func TestOneAddressTakesAll(t *testing.T) {
	t.Parallel()
	const most, share = 64, 8
	p := startProcess(t, "--dev", "--allow-http", "--max-connections", fmt.Sprint(most))
	attacker, other := source("127.0.0.1"), source("127.0.0.2")
	busy := attacker.stream(t, p)
	idle := attacker.fill(t, p, 3*most)
	for _, major := range []int{1, 2} {
		other.client(t, p, major).must(t, request{method: "PUT", target: "/a.json", body: "1"})
	}
	if open := countOpen(idle); open != most/2 {
		t.Errorf("the server keeps %d idle connections of one address, want half of %d, with the stream one more", open, most)
	}
	for i := 3; i < 3+most/2/share; i++ { // all that is left, and some more
		source(fmt.Sprintf("127.0.0.%d", i)).fill(t, p, share)
	}
	for i := 20; i < 30; i++ {
		newcomer := source(fmt.Sprintf("127.0.0.%d", i)).client(t, p, 1+i%2)
		newcomer.must(t, request{method: "PUT", target: "/told.json", body: fmt.Sprint(i)})
		awaitLine(t, busy, fmt.Sprintf(`"data":%d`, i))
	}
	if log := p.log.String(); !strings.Contains(log, "--trusted-proxy") || !strings.Contains(log, "127.0.0.1") {
		t.Error("the log does not tell which address was limited, and what to do if that is a proxy")
	}
}

// TestTrustedProxyTakesAll: a proxy may have all connections, because clients come
// through it, and those are told apart by what it says of them.
func TestTrustedProxyTakesAll(t *testing.T) {
	t.Parallel()
	const most = 32
	p := startProcess(t, "--dev", "--allow-http", "--max-connections", fmt.Sprint(most), "--trusted-proxy", "127.0.0.1", "--rate-limit", "2/h,2")
	proxy := source("127.0.0.1").client(t, p, 1)
	get := func(c *client, forwarded string) int {
		t.Helper()
		a, _, err := c.send(request{method: "GET", target: "/a.json", header: []string{"X-Forwarded-For", forwarded}})
		if err != nil {
			t.Fatalf("X-Forwarded-For: %s: %v", forwarded, err)
		}
		return a.status
	}
	for i, want := range []int{200, 200, 429} {
		forged := fmt.Sprintf("203.0.113.%d, 198.51.100.7", i) // the client's word, then the proxy's
		if got := get(proxy, forged); got != want {
			t.Errorf("request %d of a client behind the proxy is answered %d, want %d", i, got, want)
		}
	}
	if got := get(proxy, "198.51.100.8"); got != http.StatusOK {
		t.Errorf("another client behind the proxy is answered %d, want 200", got)
	}
	stranger := source("127.0.0.2").client(t, p, 1)
	for i, want := range []int{200, 200, 429} {
		if got := get(stranger, fmt.Sprintf("203.0.113.%d", i)); got != want {
			t.Errorf("request %d of a client that is no proxy is answered %d, want %d", i, got, want)
		}
	}
	conns := source("127.0.0.1").fill(t, p, most-2)
	if got := get(stranger, ""); got != http.StatusTooManyRequests { // the server has got to all of them
		t.Errorf("the stranger is answered %d, want 429", got)
	}
	if open := countOpen(conns); open != most-2 {
		t.Errorf("the server keeps %d connections of the proxy, want %d", open, most-2)
	}
}
