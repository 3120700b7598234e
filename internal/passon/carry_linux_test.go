package passon

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestClientsThatVanish: the system ends the connection of a client whose machine does not answer, as it does at the home. That has no
// other way to know: what it sends is taken by this node.
func TestClientsThatVanish(t *testing.T) {
	t.Parallel()
	p := New(Options{Now: time.Now})
	defer p.Close()
	here, there := net.Pipe()
	defer there.Close()
	carried := make(chan error, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		carried <- p.carry(w, here, []byte(switching+"Switching Protocols\r\n\r\n"), bufio.NewReader(strings.NewReader("")))
	}))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET /.ws HTTP/1.1\r\nHost: h\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-carried; err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		raw, err := c.client.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var millis int
		if failed := raw.Control(func(fd uintptr) {
			millis, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		}); failed != nil || err != nil || millis != 45_000 {
			t.Errorf("what was sent may stay unacknowledged for %d ms (%v, %v), want 45000", millis, failed, err)
		}
		return
	}
	t.Error("nothing is carried")
}
