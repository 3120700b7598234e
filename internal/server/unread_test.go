package server

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAnswersOfHTTP1ThatNobodyTakes: a client that sends one request after the other, and takes no answer, does not
// keep its connection for ever, also where no write of a handler waits for it.
func TestAnswersOfHTTP1ThatNobodyTakes(t *testing.T) {
	t.Parallel()
	short := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Filler", strings.Repeat("x", 3000)) // net/http has room for this until the handler has returned
	})
	for name, options := range map[string]servingOptions{"lanes": {}, "net/http": {noLane: true}} {
		t.Run(name, func(t *testing.T) {
			options.plain, options.limits = short, servingLimits{write: 200 * time.Millisecond}
			s := startServing(t, options)
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(patience / 6)); err != nil {
				t.Fatal(err)
			}
			requests := []byte(strings.Repeat("GET / HTTP/1.1\r\nHost: h\r\nPragma: x\r\n\r\n", 1000)) // not ordinary to a lane
			for err == nil {
				_, err = conn.Write(requests)
			}
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // it is that of a net.Conn
				t.Error("the connection is kept, though nothing is taken from it")
			}
		})
	}
}
