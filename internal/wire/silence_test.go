package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/wire"
	"github.com/livetree/livetree/internal/wiretest"
)

// This file is about clients that say nothing: how long they count as there. Time is that of
// synctest, and connections are pipes: nothing is under way until the other end reads it.

// pipes are a listener whose connections are pipes.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
}

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialed:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p pipes) Close() error { close(p.closed); return nil }

// Addr implements net.Listener.
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.dialed <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// A still server is one in the time of synctest.
type still struct {
	*server
	pipes pipes
	fetch wiretest.Fetch
}

// atRest runs a test with a server in the time of synctest.
func atRest(t *testing.T, test func(t *testing.T, s *still)) {
	t.Helper()
	atRestWith(t, nil, test)
}

// atRestWith is atRest with other options.
func atRestWith(t *testing.T, change func(*wire.Options, *outbox.Options), test func(t *testing.T, s *still)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &still{server: newServer(t, change), pipes: pipes{make(chan net.Conn), make(chan struct{})}}
		web := &http.Server{Handler: s.handler()}
		var serving = make(chan struct{})
		go func() { defer close(serving); _ = web.Serve(s.pipes) }()
		transport := &http.Transport{DialContext: s.pipes.dial}
		s.fetch = wiretest.Over(&http.Client{Transport: transport}, "http://localhost")
		t.Cleanup(func() {
			transport.CloseIdleConnections()
			_ = web.Close()
			<-serving
		})
		test(t, s)
	})
}

// socket opens a websocket, and takes the hello.
func (s *still) socket(t *testing.T, target string) *wiretest.Client {
	t.Helper()
	c := s.upgrade(t, wiretest.Dialing{Target: target, Host: "localhost"})
	c.Hello()
	return c
}

func (s *still) upgrade(t *testing.T, d wiretest.Dialing) *wiretest.Client {
	t.Helper()
	conn, _ := s.pipes.dial(t.Context(), "", "")
	t.Cleanup(func() { _ = conn.Close() })
	c, err := wiretest.Open(t, conn, d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// long is how long a client lasts that stays.
const long = time.Hour

// lasts takes all that a client is sent, and returns how long its connection lasts, with what
// it is told at the end.
func lasts(t *testing.T, c *wiretest.Client) (time.Duration, string) {
	t.Helper()
	began := time.Now()
	conn := c.Conn()
	_ = conn.SetReadDeadline(began.Add(long))
	last, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	return time.Since(began), string(last)
}

// every has a client send a frame again and again, while it is there.
func every(t *testing.T, interval time.Duration, c *wiretest.Client, f wiretest.Frame) {
	t.Helper()
	again(t, interval, func() bool {
		_, err := c.Conn().Write(f.Append(nil))
		return err == nil
	})
}

// again does something after each interval, until it reports false or the test ends.
func again(t *testing.T, interval time.Duration, do func() bool) {
	t.Helper()
	var all sync.WaitGroup
	all.Go(func() {
		for pause.For(t.Context(), interval) == nil && do() {
		}
	})
	t.Cleanup(all.Wait)
}

// The connection ends at a look, of which there is one every 30 seconds.
const (
	silent = 120 * time.Second
	look   = outbox.DefaultKeepAlive
)

func TestSilentSockets(t *testing.T) {
	t.Parallel()
	ping := wiretest.Frame{Op: wiretest.OpPing, Masked: true, Payload: []byte("x")}
	for name, test := range map[string]struct {
		do       func(t *testing.T, s *still, c *wiretest.Client)
		from, to time.Duration
		last     string // a part of what it is told at the end
	}{
		"says nothing":            {nil, silent, silent + look, ""},
		"says nothing after all ": {func(t *testing.T, _ *still, c *wiretest.Client) { ask(t, c, "q", `{"p":"/a","h":""}`) }, silent, silent + look, ""},
		"has said something until a while ago": {func(t *testing.T, _ *still, c *wiretest.Client) {
			again(t, 100*time.Second, func() bool {
				_, _ = c.Conn().Write(wiretest.Text("0").Append(nil))
				return false
			})
		}, 100*time.Second + silent, 100*time.Second + silent + look, ""},
		"keeps its connection alive": {func(t *testing.T, _ *still, c *wiretest.Client) { every(t, 45*time.Second, c, wiretest.Text("0")) }, long, long, ""},
		"pings":                      {func(t *testing.T, _ *still, c *wiretest.Client) { every(t, 110*time.Second, c, ping) }, long, long, ""},
		"is told something now and then": {func(t *testing.T, s *still, c *wiretest.Client) {
			ask(t, c, "q", `{"p":"/a","h":""}`)
			again(t, 100*time.Second, func() bool {
				s.db.Put("/a", `"`+time.Now().String()+`"`)
				return true
			})
		}, long, long, "2000-01-01"},
		"announces segments":      {func(_ *testing.T, _ *still, c *wiretest.Client) { c.SendFrames(wiretest.Text("2")) }, silent, silent + look, ""},
		"has sent half a header":  {func(_ *testing.T, _ *still, c *wiretest.Client) { c.Write([]byte{0x81}) }, silent, silent + look, ""},
		"has sent half a message": {func(_ *testing.T, _ *still, c *wiretest.Client) { c.SendFrames(wiretest.Text("2"), wiretest.Text("{")) }, 10 * time.Second, 11 * time.Second, "\x03\xf0"}, // 1008
		"sends a message slowly": {func(t *testing.T, _ *still, c *wiretest.Client) {
			c.SendFrames(wiretest.Text("1000"), wiretest.Text("{"))
			every(t, time.Second, c, wiretest.Text(" "))
		}, 10 * time.Second, 11 * time.Second, "\x03\xf0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atRest(t, func(t *testing.T, s *still) {
				c := s.socket(t, "")
				ask(t, c, "o", `{"p":"/gone","d":true}`)
				if test.do != nil {
					test.do(t, s, c)
				}
				lasted, last := lasts(t, c)
				if lasted < test.from || lasted > test.to {
					t.Errorf("the connection lasts for %v, want %v to %v", lasted, test.from, test.to)
				}
				if !strings.Contains(last, test.last) {
					t.Errorf("at the end the client is told %q", last)
				}
				s.expectGone(t, test.from < long)
			})
		})
	}
}

// expectGone looks whether the client has gone, and what it has left is written.
func (s *still) expectGone(t *testing.T, isGone bool) {
	t.Helper()
	synctest.Wait()
	open, want := 1, "null"
	if isGone {
		open, want = 0, "true"
	}
	if n, left := s.clients.Stats(outbox.Socket).Open, s.db.Export("/gone"); n != open || left != want {
		t.Errorf("%d clients are there, and what was left is %s; want %d and %s", n, left, open, want)
	}
}

const upgradeHead = "GET /.ws?v=5 HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

// TestSocketsThatAreNotRead: who does not take the answer to the upgrade, or the hello, is
// given up. Its place is free again.
func TestSocketsThatAreNotRead(t *testing.T) {
	t.Parallel()
	for name, reads := range map[string]int{"the answer": 10, "the hello": len("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atRest(t, func(t *testing.T, s *still) {
				conn, _ := s.pipes.dial(t.Context(), "", "")
				defer conn.Close()
				_, err := io.WriteString(conn, upgradeHead)
				if err == nil {
					_, err = io.ReadFull(conn, make([]byte, reads))
				}
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if n := s.clients.Stats(outbox.Socket).Open; n != 1 {
					t.Errorf("%d clients are there, want 1", n)
				}
				time.Sleep(16 * time.Second) //nolint:forbidigo // fake time
				synctest.Wait()
				if n := s.clients.Stats(outbox.Socket).Open; n != 0 {
					t.Errorf("%d clients are there, want none", n)
				}
			})
		})
	}
}

// A lateConn takes its time to change both deadlines.
type lateConn struct{ net.Conn }

// SetDeadline implements net.Conn.
func (c lateConn) SetDeadline(at time.Time) error {
	time.Sleep(time.Millisecond) //nolint:forbidigo // fake time
	return c.Conn.SetDeadline(at)
}

// TestHalfAMessageWithTheUpgrade: the time for its rest is the same as later, though the
// deadlines of the connection are lifted when it is taken over.
func TestHalfAMessageWithTheUpgrade(t *testing.T) {
	t.Parallel()
	atRest(t, func(t *testing.T, s *still) {
		client, server := net.Pipe()
		defer client.Close()
		s.pipes.dialed <- lateConn{server}
		half := wiretest.Text("{").Append(wiretest.Text("2").Append(nil))
		began := time.Now()
		_ = client.SetDeadline(began.Add(long))
		if _, err := io.WriteString(client, upgradeHead+string(half)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(client)
		if lasted := time.Since(began); lasted < 10*time.Second || lasted > 11*time.Second {
			t.Errorf("the connection lasts for %v, want 10 seconds", lasted)
		}
	})
}

func TestSilentPollers(t *testing.T) {
	t.Parallel()
	const hold = 20 * time.Second // for which the last poll is held
	for name, test := range map[string]struct {
		request  string // what it asks for before it stops
		page     bool   // it has loaded the page that reports its end
		stops    bool
		from, to time.Duration
	}{
		"polls on":                 {`"q","b":{"p":"/a","h":""}`, true, false, long, long},
		"polls on without a page":  {`"q","b":{"p":"/a","h":""}`, false, false, long, long},
		"stops without a page":     {`"q","b":{"p":"/a","h":""}`, false, true, hold + 16*time.Second, hold + 17*time.Second},
		"stops after it has asked": {`"q","b":{"p":"/a","h":""}`, true, true, hold + 60*time.Second, hold + 61*time.Second},
		"stops as a stranger":      {`"s","b":{"c":{}}`, true, true, hold + 10*time.Second, hold + 11*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atRest(t, func(t *testing.T, s *still) {
				p := wiretest.Poll(t, s.fetch, "&ns=default", "")
				if _, err := p.Next(); err != nil {
					t.Fatal(err)
				}
				if test.page {
					answer, err := s.fetch("/.lp?dframe=t&ns=default&id=" + p.ID + "&pw=" + p.Password)
					if err != nil {
						t.Fatal(err)
					}
					_ = answer.Body.Close()
				}
				for i, request := range []string{`"o","b":{"p":"/gone","d":true}`, test.request} {
					p.Send(`{"t":"d","d":{"r":` + string(rune('1'+i)) + `,"a":` + request + `}}`)
					if _, err := p.Next(); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				began := time.Now()
				if test.stops {
					p.Stop()
				}
				for time.Since(began) < long && s.clients.Stats(outbox.Socket).Open > 0 {
					time.Sleep(time.Second) //nolint:forbidigo // fake time
					synctest.Wait()
				}
				if lasted := time.Since(began); lasted < test.from || lasted > test.to {
					t.Errorf("the session lasts for %v, want %v to %v", lasted, test.from, test.to)
				}
				s.expectGone(t, test.stops)
				p.Stop()
			})
		})
	}
}

// TestSilentTaker: a websocket that has taken over is silent as any other is; while it is
// tried it says nothing about the polls, which go on.
func TestSilentTaker(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		takes, alive bool
		from, to     time.Duration
	}{
		"is tried":                      {false, false, 90 * time.Second, 91 * time.Second},
		"is tried, and is not silent":   {false, true, 90 * time.Second, 91 * time.Second},
		"takes over":                    {true, false, silent, silent + look},
		"takes over, and is not silent": {true, true, long, long},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atRest(t, func(t *testing.T, s *still) {
				p := wiretest.Poll(t, s.fetch, "&ns=default", "")
				hello, err := p.Next()
				if err != nil {
					t.Fatal(err)
				}
				p.Send(request(1, "o", `{"p":"/gone","d":true}`))
				p.Send(request(2, "q", `{"p":"/a","h":""}`))
				p.Expect(reply(1, `""`), reply(2, `{}`))
				_, id, _ := strings.Cut(hello, `"s":"`)
				c := s.upgrade(t, wiretest.Dialing{
					Target: "/.ws?v=5&ns=default&s=" + strings.TrimSuffix(id, `"}}}`), Host: "localhost", TakesOver: true,
				})
				c.Expect(`{"t":"c","d":{"t":"a","d":{}}}`)
				if test.takes {
					c.Send(`{"t":"c","d":{"t":"a","d":{}}}`)
					p.Send(`{"t":"c","d":{"t":"n","d":{}}}`)
					p.Expect(`{"t":"c","d":{"t":"n","d":{}}}`, "")
				}
				if test.alive {
					every(t, 45*time.Second, c, wiretest.Text("0"))
				}
				if lasted, _ := lasts(t, c); lasted < test.from || lasted > test.to {
					t.Errorf("the websocket lasts for %v, want %v to %v", lasted, test.from, test.to)
				}
				s.expectGone(t, test.takes && !test.alive)
				p.Stop()
			})
		})
	}
}
