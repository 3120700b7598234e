package lane

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The limits of the tests of patience.
const (
	firstLimit = 10 * time.Second
	idleLimit  = 2 * time.Minute
	writeLimit = 30 * time.Second
	freshLimit = 5 * time.Second
)

func newTimed(handler http.HandlerFunc) *Lane {
	return New(Options{
		Handler: handler, Context: testContext, HandOver: func(conn net.Conn) { _ = conn.Close() }, ConnState: nobodyTold,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		First: firstLimit, Idle: idleLimit, Write: writeLimit, Fresh: freshLimit,
	})
}

// dialTimed returns a client of a lane in the time of a synctest bubble: nothing of
// what either end writes is under way until the other end reads it. The returned
// channel is closed when the lane has let go of the connection.
func dialTimed(t *testing.T, handler http.HandlerFunc) (client net.Conn, gone chan struct{}) {
	client, server := net.Pipe()
	c := &conn{lane: newTimed(handler), raw: server, opened: time.Now(), remote: "a"}
	gone = make(chan struct{})
	go func() {
		defer close(gone)
		c.serve()
	}()
	t.Cleanup(func() { _ = client.Close() })
	return client, gone
}

// wantGone waits for the end of a connection, which must come after limit, and not
// much later.
func wantGone(t *testing.T, gone chan struct{}, limit time.Duration) {
	t.Helper()
	start := time.Now()
	<-gone
	if took := time.Since(start); took < limit || took > limit+limit/4+time.Second {
		t.Errorf("the connection ended after %v, want %v to a quarter more", took, limit)
	}
}

const timedGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

func TestSilentClientIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, gone := dialTimed(t, various)
		wantGone(t, gone, firstLimit)
	})
	synctest.Test(t, func(t *testing.T) {
		client, gone := dialTimed(t, various)
		send(t, client, timedGet)
		receive(t, bufio.NewReader(client))
		wantGone(t, gone, idleLimit)
	})
}

// TestPatienceIsNotLostBetweenRequests: no deadline of an earlier wait ends a later
// one.
func TestPatienceIsNotLostBetweenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, gone := dialTimed(t, various)
		reader := bufio.NewReader(client)
		for i, pause := range []time.Duration{9, 119, 29, 119, 31, 119, 10, 10, 10, 119, 9, 1, 119} {
			<-time.After(pause * time.Second)
			if i%2 == 0 {
				send(t, client, timedGet)
				receive(t, reader)
				continue
			}
			send(t, client, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n")
			for range 3 {
				<-time.After(firstLimit - time.Second)
				send(t, client, "x")
			}
			<-time.After(writeLimit - time.Second) // until it reads
			if _, body := receive(t, reader); body != "xxx <nil>" {
				t.Errorf("request %d is answered %q", i, body)
			}
		}
		_ = client.Close()
		<-gone
	})
}

// TestBodyThatStops: a read of a body has an end, whether or not the handler has set
// one, and whatever was set before.
func TestBodyThatStops(t *testing.T) {
	for _, own := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			took := make(chan time.Duration, 1)
			client, gone := dialTimed(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Body == http.NoBody {
					return
				}
				control := http.NewResponseController(w)
				if own > 0 {
					_ = control.SetReadDeadline(time.Now().Add(time.Hour))
					_ = control.SetReadDeadline(time.Now().Add(own))
				}
				start := time.Now()
				if _, err := io.ReadAll(r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the body ends with %v", err)
				}
				took <- time.Since(start)
			})
			reader := bufio.NewReader(client)
			send(t, client, timedGet)
			receive(t, reader)
			<-time.After(idleLimit - time.Second)
			send(t, client, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
			want := own
			if own == 0 {
				want = firstLimit
			}
			if d := <-took; d < want || d > want+want/4 {
				t.Errorf("the read ended after %v, want %v", d, want)
			}
			receive(t, reader)
			<-gone
		})
	}
}

// TestClientThatDoesNotRead is cut, be the answer small or large, and whatever the
// handler makes of errors. What it reads afterwards is the beginning of an answer,
// and nothing that belongs to another.
func TestClientThatDoesNotRead(t *testing.T) {
	for _, answer := range []string{"small", "known", "chunked"} {
		synctest.Test(t, func(t *testing.T) {
			client, gone := dialTimed(t, func(w http.ResponseWriter, _ *http.Request) {
				size := 10
				if answer != "small" {
					size = 5 * outBytes
				}
				if answer != "chunked" {
					w.Header().Set("Content-Length", strconv.Itoa(size))
				}
				for text := strings.Repeat("x", size); text != ""; { // and does not look at errors
					n := min(len(text), 1000)
					_, _ = io.WriteString(w, text[:n])
					text = text[n:]
				}
			})
			send(t, client, timedGet+timedGet)
			part := make([]byte, 5)
			if _, err := io.ReadFull(client, part); err != nil || string(part) != "HTTP/" {
				t.Fatal(string(part), err)
			}
			<-time.After(writeLimit + writeLimit/4 + time.Millisecond)
			if rest, err := io.ReadAll(client); len(rest) > 0 || err != nil {
				t.Errorf("%s: after its time was up, the client got %d bytes more, %v", answer, len(rest), err)
			}
			<-gone
		})
	}
}

// TestDeadlineOfTheHandler ends a write before the lane would.
func TestDeadlineOfTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		client, gone := dialTimed(t, func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(w, "text")
		})
		send(t, client, timedGet)
		<-gone
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the write ended after %v", took)
		}
	})
}

// TestShutdownIsNotHeldUp by clients that do not take the end of their TLS
// connection: crypto/tls gives each of them 5 seconds, which all get at once. Cut
// gives them nothing.
func TestShutdownIsNotHeldUp(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(various))
	defer server.Close()
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = "example.com" // is what its certificate says
	for _, cut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newTimed(various)
			for range 4 {
				below, end := net.Pipe()
				secure := tls.Server(end, server.TLS)
				go func() {
					_ = secure.Handshake()
					l.Serve(secure)
				}()
				t.Cleanup(func() { _ = below.Close() })
				client := tls.Client(below, config)
				send(t, client, timedGet)
				receive(t, bufio.NewReader(client))
			}
			synctest.Wait()
			start := time.Now()
			if cut {
				l.Cut()
			} else {
				l.Shutdown(t.Context(), noMore)
			}
			if took := time.Since(start); cut && took > 0 || took > 6*time.Second {
				t.Errorf("it took %v (cut: %t)", took, cut)
			}
		})
	}
}

// TestShutdownWaitsForGuests: a connection that was handed over is gone when its
// request has begun, or when it is closed.
func TestShutdownWaitsForGuests(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			guests := make(chan net.Conn, 1)
			l := newTimed(various)
			l.opts.HandOver = func(conn net.Conn) { guests <- conn }
			client, server := net.Pipe()
			defer client.Close()
			l.Serve(server)
			send(t, client, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
			guest := <-guests
			defer guest.Close()
			done := make(chan struct{})
			go func() { l.Shutdown(t.Context(), noMore); close(done) }()
			<-time.After(time.Second)
			select {
			case <-done:
				t.Error("Shutdown does not wait for a request that was handed over")
			default:
			}
			if closes {
				_ = guest.Close()
			} else {
				guest.(Guest).Begun()
			}
			<-done
		})
	}
}
