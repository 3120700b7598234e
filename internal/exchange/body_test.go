package exchange_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/exchange"
)

// A pipes is a listener in memory, so that its deadlines are those of a bubble.
type pipes struct {
	net.Listener
	accept chan net.Conn
}

func (p *pipes) Accept() (net.Conn, error) {
	conn, ok := <-p.accept
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// bounded serves requests whose bodies have ten seconds, and returns a client's end of a
// connection.
func bounded(t *testing.T, handler http.HandlerFunc) (client net.Conn, in *bufio.Reader) {
	t.Helper()
	listener := &pipes{accept: make(chan net.Conn)}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exchange.BoundBody(w, r, time.Now().Add(10*time.Second))
		x := exchange.New(w, r)
		handler(x, r)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}()
	client, conn := net.Pipe()
	listener.accept <- conn
	t.Cleanup(func() {
		close(listener.accept)
		server.Close()
		client.Close()
		<-done
	})
	return client, bufio.NewReader(client)
}

// TestBodiesThatDoNotCome: an answer waits for a body that nobody reads for ten seconds, and
// the connection ends with it.
func TestBodiesThatDoNotCome(t *testing.T) {
	for name, request := range map[string]string{
		"a length":            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n",
		"a length, and half":  "DELETE / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n12345",
		"chunks":              "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
		"chunks to the close": "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n",
		"an expectation":      "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, in := bounded(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") })
				start := time.Now()
				if _, err := io.WriteString(client, request); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(in)
				if took := time.Since(start); err != nil || took > 11*time.Second {
					t.Errorf("the connection ends after %v with %v, want it to end after ten seconds", took, err)
				}
				if text := string(answer); !strings.HasPrefix(text, "HTTP/1.1 200 ") || !strings.Contains(text, "Connection: close") || !strings.HasSuffix(text, "answer") {
					t.Errorf("the client is answered %q", text)
				}
			})
		})
	}
}

// TestAnswersOutlastTheDeadlineOfTheirBody: once the body has come, an answer may take an hour, and the
// connection is kept for another request.
func TestAnswersOutlastTheDeadlineOfTheirBody(t *testing.T) {
	for _, reads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client, in := bounded(t, func(w http.ResponseWriter, r *http.Request) {
				if reads {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				_, _ = io.WriteString(w, "first")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(time.Hour):
					_, _ = io.WriteString(w, "last")
				case <-r.Context().Done():
					t.Errorf("a handler that reads the body: %v: its request was ended", reads)
				}
			})
			for range 2 {
				go func() {
					_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nnull")
				}()
				response, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if text, err := io.ReadAll(response.Body); string(text) != "firstlast" || err != nil {
					t.Errorf("a handler that reads the body: %v: the answer is %q, %v", reads, text, err)
				}
			}
		})
	}
}
