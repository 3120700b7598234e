package rest_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// A streaming server is one under test, over HTTPS and over plain HTTP, with a
// store in memory.
type streaming struct {
	t        testing.TB
	secure   *httptest.Server
	plain    *httptest.Server
	catalog  *catalog.Catalog
	database *engine.Database
	budget   *hub.Budget
	streams  *outbox.Clients
}

// serveStreams returns a server that is gone with all its goroutines when the
// test ends; TestMain looks whether they are.
func serveStreams(t testing.TB, opts outbox.Options) *streaming {
	t.Helper()
	db, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	s := &streaming{t: t, budget: watch.NewBudget(256 << 20)}
	s.catalog = catalog.New(db, engine.Options{
		Clock: state.NewClock(time.Now, rand.Reader, db.LastMillis()), Streams: s.budget, Deadline: patience})
	if s.database, err = s.catalog.Create("default"); err == nil {
		_, err = s.database.SetRules(t.Context(), state.OpenRules)
	}
	if err != nil {
		t.Fatal(err)
	}
	beUnhurried(&opts)
	s.streams = outbox.New(opts)
	handler := rest.New(rest.Options{Catalog: s.catalog, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Hosts: hosts.Hosts{DefaultDatabase: "default"}, MaxBody: 1 << 20, MaxBodies: 4 << 20, Streams: s.streams})
	s.secure, s.plain = httptest.NewUnstartedServer(handler), httptest.NewUnstartedServer(handler)
	s.secure.EnableHTTP2 = true
	for _, server := range []*httptest.Server{s.secure, s.plain} {
		server.Config.ConnContext = narrow
	}
	s.secure.StartTLS()
	s.plain.Start()
	t.Cleanup(func() {
		s.streams.Close(t.Context()) // which has ended: at once
		s.secure.Close()
		s.plain.Close()
		s.catalog.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// beUnhurried fills in what is not said: a client that reads is not slow because the
// machine is, and nobody is told anything because a test takes long.
func beUnhurried(opts *outbox.Options) {
	if opts.Blocked == 0 {
		opts.Blocked = patience
	}
	if opts.KeepAlive == 0 {
		opts.KeepAlive = time.Hour
	}
}

// narrow has the system keep little for a connection, so that it is soon known
// that a client does not read.
func narrow(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	return ctx
}

// A listening client has a stream open.
type listening struct {
	*bufio.Reader
	t     testing.TB
	conn  net.Conn       // of HTTP/1.1
	reply *http.Response // of HTTP/2
	head  string         // of HTTP/1.1
	close func()
}

// protocols are the ways to get a stream.
var protocols = []string{"http/1.1", "h2", "plain"}

// listen opens a stream.
func (s *streaming) listen(protocol, target string) *listening {
	s.t.Helper()
	c, err := s.try(protocol, target)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// try is listen that may fail, for any goroutine.
func (s *streaming) try(protocol, target string) (*listening, error) {
	if protocol == "h2" {
		return s.tryH2(target)
	}
	conn, err := s.dial(protocol)
	if err != nil {
		return nil, err
	}
	c := &listening{Reader: bufio.NewReader(conn), t: s.t, conn: conn, close: func() { _ = conn.Close() }}
	s.t.Cleanup(c.close)
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", target); err != nil {
		return nil, err
	}
	for !strings.HasSuffix(c.head, "\r\n\r\n") {
		line, err := c.ReadString('\n')
		if c.head += line; err != nil {
			return nil, fmt.Errorf("the head of a stream: %w after %q", err, c.head)
		}
	}
	if !strings.HasPrefix(c.head, "HTTP/1.1 200 ") {
		return nil, errors.New(c.head)
	}
	return c, nil
}

func (s *streaming) dial(protocol string) (net.Conn, error) {
	addr := s.secure.Listener.Addr().String()
	if protocol == "plain" {
		addr = s.plain.Listener.Addr().String()
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	narrow(context.Background(), conn)
	if protocol == "plain" {
		return conn, nil
	}
	config := s.tlsConfig()
	config.ServerName = "example.com"
	return tls.Client(conn, config), nil
}

func (s *streaming) tlsConfig() *tls.Config {
	return s.secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
}

func (s *streaming) tryH2(target string) (*listening, error) {
	transport := &http.Transport{TLSClientConfig: s.tlsConfig(), Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}}
	transport.TLSClientConfig.NextProtos = nil
	transport.Protocols.SetHTTP2(true)
	req, err := http.NewRequest("GET", s.secure.URL+target, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	reply, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	c := &listening{Reader: bufio.NewReader(reply.Body), t: s.t, reply: reply, close: func() {
		_ = reply.Body.Close()
		transport.CloseIdleConnections()
	}}
	s.t.Cleanup(c.close)
	if reply.StatusCode != http.StatusOK || reply.ProtoMajor != 2 {
		text, _ := io.ReadAll(reply.Body)
		return nil, fmt.Errorf("%s %s %s", reply.Proto, reply.Status, text)
	}
	return c, nil
}

// frame returns the next frame without its end.
func (c *listening) frame() (string, error) {
	var frame strings.Builder
	for {
		line, err := c.ReadString('\n')
		if err != nil || line == "\n" {
			return strings.TrimSuffix(frame.String(), "\n"), err
		}
		frame.WriteString(line)
	}
}

// want compares the next frames.
func (c *listening) want(frames ...string) {
	c.t.Helper()
	for _, want := range frames {
		if got, err := c.frame(); got != want || err != nil {
			c.t.Fatalf("the stream has %.200q, %v, want %.200q", got, err, want)
		}
	}
}

// wantEnd wants the stream to end as one that is whole.
func (c *listening) wantEnd() {
	c.t.Helper()
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		c.t.Errorf("the stream ends with %.100q, %v, want it to end cleanly", rest, err)
	}
}

func put(path, data string) string {
	return `event: put` + "\n" + `data: {"path":"` + path + `","data":` + data + `}`
}

// write puts JSON at a path.
func (s *streaming) write(path, text string) {
	s.t.Helper()
	at, err := tree.ParsePath(path)
	if err != nil {
		s.t.Fatal(err)
	}
	node, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.database.Write(s.t.Context(), engine.Request{Write: tree.Put(at, node)}); err != nil {
		s.t.Fatal(err)
	}
}

// await returns when a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

func (s *streaming) awaitOpen(n int) {
	s.t.Helper()
	await(s.t, fmt.Sprintf("%d streams to be open", n), func() bool { return s.streams.Stats(outbox.Stream).Open == n })
}

// Clients of devices read the head byte by byte: no chunks, no length, and the
// connection ends with the stream.
func TestStreamHead(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"http/1.1", "plain"} {
		s := serveStreams(t, outbox.Options{})
		s.write("a", `{"b":[1,2]}`)
		c := s.listen(protocol, "/a.json")
		got := regexp.MustCompile(`Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT`).ReplaceAllString(c.head, "Date: D")
		want := "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: ETag\r\nCache-Control: no-cache\r\n" +
			"Connection: close\r\nContent-Type: text/event-stream; charset=utf-8\r\nDate: D\r\n" +
			"X-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\n\r\n"
		if got != want {
			t.Errorf("%s: the head is\n%q, want\n%q", protocol, got, want)
		}
		text := put("/", `{"b":[1,2]}`) + "\n\n"
		bytes := make([]byte, len(text))
		if _, err := io.ReadFull(c, bytes); string(bytes) != text || err != nil {
			t.Errorf("%s: behind the head is %q, %v, want %q", protocol, bytes, err, text)
		}
	}
}

func TestStreamOverHTTP2(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{})
	header := s.listen("h2", "/a.json").reply.Header
	for name, want := range map[string]string{"Content-Type": "text/event-stream; charset=utf-8",
		"Cache-Control": "no-cache", "Connection": "", "Content-Length": "", "Content-Encoding": ""} {
		if got := header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestStreamTellsEveryProtocolTheSame(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{})
	for _, protocol := range protocols {
		s.write("", "null")
		c := s.listen(protocol, "/a.json")
		c.want(put("/", "null"))
		s.write("a", `{"b":1}`)
		s.write("a/b", `"two\n"`)
		s.write("elsewhere", "1")
		s.write("a/b", "null")
		c.want(put("/", `{"b":1}`), put("/b", `"two\n"`), put("/b", "null"))
	}
}

// A stream outlives the time for a write, whether it is idle or told something.
func TestStreamKeepAlive(t *testing.T) {
	t.Parallel()
	// A busy machine needs some of the time for a write; the stream is told of two and
	// more of them.
	const blocked, keepAlive = 3 * time.Second, 250 * time.Millisecond
	s := serveStreams(t, outbox.Options{KeepAlive: keepAlive, Blocked: blocked})
	var clients []*listening
	for _, protocol := range protocols {
		clients = append(clients, s.listen(protocol, "/a.json"))
	}
	for _, c := range clients {
		c.want(put("/", "null"))
		for range 2*blocked/keepAlive + 1 {
			c.want("event: keep-alive\ndata: null")
		}
	}
	s.write("a", "1")
	for i, c := range clients {
		for {
			got, err := c.frame()
			if got == put("/", "1") {
				break
			}
			if got != "event: keep-alive\ndata: null" || err != nil {
				t.Fatalf("%s: behind a write the stream has %q, %v", protocols[i], got, err)
			}
		}
	}
}

func TestStreamWhoseClientLeaves(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols {
		s := serveStreams(t, outbox.Options{KeepAlive: 50 * time.Millisecond})
		var clients []*listening
		for range 5 {
			clients = append(clients, s.listen(protocol, "/a.json"))
		}
		s.awaitOpen(5)
		for _, c := range clients[2:] {
			c.close()
		}
		s.awaitOpen(2)
		if n := s.streams.Stats(outbox.Stream).Closed["client"]; n != 3 {
			t.Errorf("%s: %d streams were ended by their clients, want 3", protocol, n)
		}
		for _, c := range clients[:2] {
			c.close()
		}
		s.awaitOpen(0)
		if n := s.budget.Used(); n != 0 {
			t.Errorf("%s: %d bytes are kept for nobody", protocol, n)
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{MaxStreams: 2, KeepAlive: 50 * time.Millisecond})
	one := s.listen("http/1.1", "/a.json")
	s.listen("h2", "/a.json")
	for _, protocol := range []string{"http/1.1", "plain"} {
		_, err := s.try(protocol, "/a.json")
		if err == nil || !strings.HasPrefix(err.Error(), "HTTP/1.1 503 ") || !strings.Contains(err.Error(), "\r\nRetry-After: ") {
			t.Errorf("a stream too many is answered %v, want 503 with Retry-After", err)
		}
	}
	if _, err := s.try("h2", "/a.json"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a stream too many is answered %v, want 503", err)
	}
	one.close()
	await(t, "room for a stream", func() bool {
		c, err := s.try("http/1.1", "/a.json")
		if err == nil {
			c.want(put("/", "null"))
		}
		return err == nil
	})
}

// TestStreamsOfOneAddress: a client with HTTP/2 needs no connection for each stream, and gets no more of
// them for that while others may need theirs.
func TestStreamsOfOneAddress(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{MaxStreams: 6, PerNetwork: 1})
	if err := s.database.SetSecrets(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		s.listen("h2", "/a.json")
	}
	if _, err := s.try("h2", "/a.json"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a stream of an address that has more than its share is answered %v, want 503", err)
	}
	if _, err := s.try("h2", "/a.json?auth="+secret); err != nil {
		t.Errorf("a stream of an administrator there is answered %v", err)
	}
}

func TestStreamOfADatabaseThatIsDropped(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols {
		s := serveStreams(t, outbox.Options{})
		c := s.listen(protocol, "/a.json")
		c.want(put("/", "null"))
		if err := s.catalog.Drop("default"); err != nil {
			t.Fatal(err)
		}
		c.wantEnd()
		if _, err := s.try("plain", "/a.json"); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("a stream of a database that was dropped is answered %v, want 404", err)
		}
	}
}

// Streams come and go in number while there are writes. None is left, and
// nothing is kept for them.
func TestStreamStorm(t *testing.T) {
	t.Parallel()
	clients, rounds := 24, 8
	if testing.Short() {
		clients, rounds = 9, 5
	}
	s := serveStreams(t, outbox.Options{KeepAlive: 20 * time.Millisecond})
	var all, writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				s.write(fmt.Sprint("a/", i%7), fmt.Sprint(i))
			}
		}
	})
	for client := range clients {
		all.Go(func() {
			for round := range rounds {
				c, err := s.try(protocols[(client+round)%3], "/a.json")
				if err != nil {
					t.Error(err)
					return
				}
				for range round {
					if _, err := c.frame(); err != nil {
						t.Error(err)
					}
				}
				c.close()
			}
		})
	}
	all.Wait()
	close(stop)
	writer.Wait()
	s.awaitOpen(0)
	if n := s.budget.Used(); n != 0 {
		t.Errorf("%d bytes are kept for nobody", n)
	}
}
