package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// connect opens a TCP connection to a server.
func connect(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// wantCut waits for the server to close a connection.
func wantCut(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, err := io.Copy(io.Discard, conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reading gave %v, want the server to close the connection", err)
	}
}

// wantOpen checks that the server has not closed a connection.
func wantOpen(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading gave %v, want the connection to be open", err)
	}
}

// A deafConn hears nothing: its first Read says so, and waits.
type deafConn struct {
	net.Conn
	waiting chan<- struct{}
	done    <-chan struct{}
}

func (c deafConn) Read([]byte) (int, error) {
	c.waiting <- struct{}{}
	<-c.done
	return 0, net.ErrClosed
}

// stall opens connections on which a complete ClientHello is sent, and nothing
// after it. It returns when all are sent.
func stall(t *testing.T, addr string, n int) {
	t.Helper()
	waiting, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(done) })
	for range n {
		client := tls.Client(deafConn{connect(t, addr), waiting, done}, &tls.Config{ServerName: "localhost"})
		go func() { _ = client.Handshake() }()
		<-waiting
	}
}

func TestClientsThatHoldBackDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{limits: servingLimits{opening: patience}})
	for range 200 {
		connect(t, s.addr)
	}
	s.wantGet(t, s.client(t, "https"), "https://"+s.addr, "secure HTTP/1.1 /")
	// These are more than there are turns for handshakes, whichever way a client
	// has to hold one: half a record, and a whole one with no answer after it.
	for range 200 {
		write(t, connect(t, s.addr), "\x16\x03\x01\x02\x00\x01")
	}
	s.wantGet(t, s.client(t, "https"), "https://"+s.addr, "secure HTTP/1.1 /")
	stall(t, s.addr, 200)
	s.wantGet(t, s.client(t, "h2"), "https://"+s.addr, "secure HTTP/2.0 /")
	s.wantGet(t, s.client(t, "http"), "http://"+s.addr, "plain HTTP/1.1 /")
}

func write(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func TestClientsThatHoldBackAreCut(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{limits: servingLimits{opening: 50 * time.Millisecond, head: 50 * time.Millisecond}})
	tests := []struct{ name, sent string }{
		{"silent", ""},
		{"first byte of TLS", "\x16"},
		{"half a ClientHello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		{"no TLS after all", "\x16GET / HTTP/1.1\r\n\r\n"},
		{"half a plain request", "GET / HTTP/1.1\r\nHost: x\r\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conn := connect(t, s.addr)
			write(t, conn, test.sent)
			wantCut(t, conn)
		})
	}
	// On a busy machine, a client that speaks at once may do so too late, too.
	wait(t, "a request to be answered", func() bool {
		_, body, err := get(s.client(t, "http"), "http://"+s.addr)
		return err == nil && body == "plain HTTP/1.1 /"
	})
}

func TestSlowHeadOverTLSIsCut(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{limits: servingLimits{opening: patience, head: 50 * time.Millisecond}})
	conn := s.dialTLS(t)
	write(t, conn, "GET / HTTP/1.1\r\nHost: x\r\n")
	wantCut(t, conn)
}

func TestOldestOpeningConnectionIsCut(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{limits: servingLimits{opening: patience, maxOpening: 4}})
	var silent []net.Conn
	for range 8 {
		silent = append(silent, connect(t, s.addr))
	}
	for _, conn := range silent[:4] {
		wantCut(t, conn)
	}
	for _, conn := range silent[4:] {
		wantOpen(t, conn)
	}
	s.wantGet(t, s.client(t, "https"), "https://"+s.addr, "secure HTTP/1.1 /")
	wantCut(t, silent[4])
	wantOpen(t, silent[5])
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{})
	config := s.tlsConfig("http/1.1")
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if conn, err := tls.Dial("tcp", s.addr, config); err == nil {
		conn.Close()
		t.Error("TLS 1.1 was accepted, want 1.2 as the least")
	}
}

func TestSessionsAreResumed(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := s.tlsConfig("http/1.1")
		config.MinVersion, config.MaxVersion = version, version
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for i := range 2 {
			conn, err := tls.Dial("tcp", s.addr, config)
			if err != nil {
				t.Fatal(err)
			}
			// The ticket comes with the answer.
			write(t, conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Fatal(err)
			}
			state := conn.ConnectionState()
			if state.Version != version || state.DidResume != (i == 1) {
				t.Errorf("connection %d speaks %s, want %s; it resumed the session: %t", i+1,
					tls.VersionName(state.Version), tls.VersionName(version), state.DidResume)
			}
			conn.Close()
		}
	}
}

func TestPortClosesWhatItIsOpening(t *testing.T) {
	t.Parallel()
	checkGoroutines(t)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newPort(tcp, portOptions{tls: &tls.Config{}, logger: new(logBook).logger(), opening: patience, maxOpening: 10})
	p.options.plain = p.plain.put
	p.start()
	silent, half := connect(t, tcp.Addr().String()), connect(t, tcp.Addr().String())
	write(t, half, "\x16\x03")
	plain := connect(t, tcp.Addr().String())
	write(t, plain, "GET")
	accepted, err := p.plain.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Close()
	for _, listener := range []net.Listener{p.secure, p.plain} {
		if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept after Close: %v, want %v", err, net.ErrClosed)
		}
	}
	wantCut(t, silent)
	wantCut(t, half)
	wantOpen(t, plain) // it was handed on, and is not the port's any more
	accepted.Close()
}
