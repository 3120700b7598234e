package main

import (
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestServeLimits: what the flags say about connections is what happens.
func TestServeLimits(t *testing.T) {
	t.Parallel()
	p := start(t, serving(filepath.Join(t.TempDir(), "data"), "--max-connections", "2", "--head-timeout", "50ms")...)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	wantCut := func(conn net.Conn, why string) {
		t.Helper()
		if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
			t.Errorf("a connection %s was not cut", why)
		}
	}
	dial()
	slow := dial()
	wantCut(dial(), "too many")
	if _, err := io.WriteString(slow, "GET /a.json HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	wantCut(slow, "with a slow head")
	if code := p.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error) //nolint:errorlint // io.Copy does not wrap it
	return ok && timeout.Timeout()
}
