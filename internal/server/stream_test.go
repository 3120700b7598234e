package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// listen opens a stream by hand, over plain HTTP or over TLS, and returns it
// behind its first event.
func (m *managed) listen(plain bool, target string) *bufio.Reader {
	m.t.Helper()
	addr := strings.TrimPrefix(m.public, "https://")
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { conn.Close() })
	if !plain {
		conn = tls.Client(conn, &tls.Config{RootCAs: m.authority(), ServerName: "localhost"})
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", target)
	stream := bufio.NewReader(conn)
	first := ""
	for !strings.HasSuffix(first, "\n\n") {
		line, err := stream.ReadString('\n')
		if first += line; err != nil {
			m.t.Fatalf("a stream begins with %q, %v", first, err)
		}
	}
	if !strings.HasPrefix(first, "HTTP/1.1 200 ") || !strings.Contains(first, "event: put\n") {
		m.t.Fatalf("a stream begins with %q", first)
	}
	return stream
}

// listenH2 is listen with a client of HTTP/2.
func (m *managed) listenH2(target string) *bufio.Reader {
	m.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: m.authority(), ServerName: "localhost"}, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP2(true)
	req, err := http.NewRequest("GET", m.public+target, http.NoBody)
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	reply, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		reply.Body.Close()
		transport.CloseIdleConnections()
	})
	stream := bufio.NewReader(reply.Body)
	if line, err := stream.ReadString('\n'); line != "event: put\n" || reply.StatusCode != http.StatusOK {
		m.t.Fatalf("a stream begins with %s %q, %v", reply.Status, line, err)
	}
	return stream
}

// A server that stops ends its streams as whole ones, and leaves nothing behind. No test runs beside it, because of
// verifyNone.
func TestStoppingEndsStreams(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	m := startManaged(t, t.TempDir(), func(c *Config) { c.Dev, c.AllowHTTP, c.KeepAlive = true, true, time.Hour })
	var streams []*bufio.Reader
	for range 4 {
		streams = append(streams, m.listen(false, "/a.json"), m.listen(true, "/a.json"), m.listenH2("/a.json"))
	}
	m.stop()
	for _, stream := range streams {
		rest, err := io.ReadAll(stream)
		if err != nil || strings.Contains(string(rest), "event: ") {
			t.Errorf("a stream of a server that stops ends with %q, %v, want it to end cleanly", rest, err)
		}
	}
	if strings.Contains(m.log.String(), "level=ERROR") {
		t.Errorf("stopping with streams is logged as an error:\n%s", m.log)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(m.public, "https://")); err == nil {
		t.Error("a server that has stopped accepts a connection")
	}
	http.DefaultClient.CloseIdleConnections()
	verifyNone(t, ignore)
}

func TestStreamsOverPlainHTTPAreRefused(t *testing.T) {
	t.Parallel()
	m := startManaged(t, t.TempDir(), func(c *Config) { c.Dev = true })
	req, err := http.NewRequest("GET", strings.Replace(m.public, "https:", "http:", 1)+"/a.json", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	reply, err := m.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusNotFound || reply.Header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("a stream over plain HTTP is answered %s, want 404 as everything is", reply.Status)
	}
}

// What drain closes streams with has its time, although no request is running:
// net/http does not know of connections that were taken over.
func TestDrainGivesStreamsTheirTime(t *testing.T) {
	t.Parallel()
	closing := make(chan context.Context, 1)
	release := make(chan struct{})
	s := startServing(t, servingOptions{limits: quick, endAll: func(ctx context.Context) {
		closing <- ctx
		<-release
	}})
	drained := make(chan error, 1)
	go func() { drained <- s.drain(t.Context()) }()
	ctx := <-closing
	for _, server := range []*http.Server{s.secure, s.plain} {
		if err := server.Shutdown(t.Context()); err != nil { // as drain does
			t.Error(err)
		}
	}
	select {
	case err := <-drained:
		t.Errorf("drain returned %v while streams are closed", err)
	case <-ctx.Done():
		t.Error("the streams are cut, want them closed one by one")
	default:
	}
	close(release)
	if err := <-drained; err != nil {
		t.Errorf("drain: %v", err)
	}
}
