package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
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

// TestDiskThatFailsAtTheStart: a disk has an exit code of its own, also where
// it is not the store that meets it.
func TestDiskThatFailsAtTheStart(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]int{syscall.EIO: 74, syscall.ENOSPC: 74, syscall.EACCES: 1} {
		var errs strings.Builder
		code := report(&errs, false, fmt.Errorf("write the secret of default: %w", &os.PathError{Op: "write", Path: "/data/secrets/default", Err: errno}))
		if text := errs.String(); code != want || !oneLine(text) || !strings.Contains(text, "/data/secrets/default: "+errno.Error()) {
			t.Errorf("%v: exit %d, %q; want exit %d and one line with the file and the reason", errno, code, text, want)
		}
	}
}

// TestStoreThatIsTakenAway: one line says what is missing, and the exit code is
// that of a disk that failed.
func TestStoreThatIsTakenAway(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := start(t, serving(data, "--dev", "--log-format", "text")...)
	p.expect("PUT", "/a.json", "1", "1")
	if err := os.RemoveAll(filepath.Join(data, "store")); err != nil {
		t.Fatal(err)
	}
	if code := p.stop(syscall.SIGTERM); code != 74 {
		t.Errorf("exit %d, want 74", code)
	}
	log := p.stderr.String()
	_, line, _ := strings.Cut(log, "level=ERROR ")
	if strings.Count(log, "level=ERROR") != 1 || !strings.HasSuffix(line, ".log: no such file or directory\" exit=74\n") {
		t.Errorf("the log is\n%s\nwant one error with the file and the reason", log)
	}
}
