package lane

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestConnState: a connection is active from the head of a request to the end of its
// answer, also if several requests come at once, and idle while it waits for another.
// Part of a head, or a blank line, is no request, also if it comes with the request before.
func TestConnState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		tell := func(what string) { told = append(told, what) }
		client, server := net.Pipe()
		defer client.Close()
		l := New(Options{
			Handler:   http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { tell(r.URL.Path) }),
			Context:   testContext,
			HandOver:  func(conn net.Conn) { tell("handed over"); _ = conn.Close() },
			ConnState: func(_ net.Conn, state http.ConnState) { tell(state.String()) },
			Logger:    slog.New(slog.DiscardHandler), Now: time.Now,
			First: longWait, Idle: longWait, Write: longWait, Fresh: longWait,
		})
		l.Serve(server)
		go func() { _, _ = io.Copy(io.Discard, client) }()
		synctest.Wait()
		for _, step := range []struct{ send, want string }{
			{"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "active /a idle"},
			{"GET /b HTTP/1.1\r\nHost: h\r\n\r\nPOST /c HTTP/1.1\r\nHost: h\r\n\r\n", "active /b active /c idle"},
			{"\r\n", "idle"},
			{"GET /d HTTP/1.1\r\nHost: h\r\n\r\nG", "active /d idle"},
			{"ET /e HTTP/1.1\r\nHost: h\r\n\r\n", "active /e idle"},
			{"GET /f HT", "handed over"},
		} {
			told = nil
			if _, err := io.WriteString(client, step.send); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := strings.Join(told, " "); got != step.want {
				t.Errorf("after %q: %q, want %q", step.send, got, step.want)
			}
		}
	})
}
