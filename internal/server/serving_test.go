package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/wire"
)

// A testServing is a server on a port of its own.
type testServing struct {
	*serving
	addr         string
	certificates *certificates
	log          *logBook
	t            *testing.T
}

// startServing serves with the options, and handlers that say what was asked
// unless there are others. At the end of the test all goroutines must be gone.
func startServing(t *testing.T, options servingOptions) *testServing {
	t.Helper()
	checkGoroutines(t)
	log := new(logBook)
	c, err := newCertificates(t.TempDir(), certFiles{}, certNames{needed: []string{"localhost", "127.0.0.1"}}, time.Now, log.logger())
	if err != nil {
		t.Fatal(err)
	}
	setDefault(&options.logger, log.logger())
	setDefault(&options.tls, c.tlsConfig())
	setDefault(&options.limits.opening, patience)
	setDefault(&options.limits.head, patience)
	if options.secure == nil {
		options.secure = echo("secure")
	}
	if options.plain == nil {
		options.plain = echo("plain")
	}
	s := &testServing{serving: newServing(options), certificates: c, log: log, t: t}
	host := ownHost()
	if err := s.listen(host+":0", host+":0"); err != nil {
		t.Fatal(err)
	}
	s.addr = s.serving.addr().String()
	s.serve()
	t.Cleanup(s.close)
	return s
}

// ownHost returns an address of this machine for a server. Where a machine has more
// than one for itself, it is one that nobody else uses: when the server has stopped,
// its port is not taken by another that starts.
func ownHost() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

func echo(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", name, r.Proto, r.URL.Path)
	})
}

// checkGoroutines wants as many goroutines after the test as there are now.
func checkGoroutines(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		deadline := time.After(patience)
		for runtime.NumGoroutine() > before {
			select {
			case <-time.After(time.Millisecond):
			case <-deadline:
				stacks := make([]byte, 1<<20)
				stacks = stacks[:runtime.Stack(stacks, true)]
				t.Fatalf("%d goroutines, want %d as before the test:\n%s", runtime.NumGoroutine(), before, stacks)
			}
		}
	})
}

func (s *testServing) tlsConfig(protocol string) *tls.Config {
	return &tls.Config{RootCAs: roots(s.t, s.certificates.caFile()), ServerName: "localhost", NextProtos: []string{protocol}}
}

// client returns a new client for "http", "https" (HTTP/1.1) or "h2".
func (s *testServing) client(t *testing.T, protocol string) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(protocol != "h2")
	transport.Protocols.SetHTTP2(protocol == "h2")
	if protocol != "http" {
		transport.TLSClientConfig = s.tlsConfig("")
		transport.TLSClientConfig.NextProtos = nil
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// dialTLS returns a connection for HTTP/1.1 by hand.
func (s *testServing) dialTLS(t *testing.T) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", s.addr, s.tlsConfig("http/1.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// get returns the response with its body read. It may be called in any
// goroutine.
func get(client *http.Client, url string) (*http.Response, string, error) {
	response, err := client.Get(url)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, string(body), err
}

func (s *testServing) wantGet(t *testing.T, client *http.Client, url, want string) {
	t.Helper()
	_, body, err := get(client, url)
	if err != nil {
		t.Errorf("GET %s: %v", url, err)
	} else if body != want {
		t.Errorf("GET %s = %q, want %q", url, body, want)
	}
}

func TestServingProtocols(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{})
	s.wantGet(t, s.client(t, "https"), "https://"+s.addr+"/a", "secure HTTP/1.1 /a")
	s.wantGet(t, s.client(t, "h2"), "https://"+s.addr+"/b", "secure HTTP/2.0 /b")
	s.wantGet(t, s.client(t, "http"), "http://"+s.addr+"/c", "plain HTTP/1.1 /c")
	s.wantGet(t, s.client(t, "http"), "http://"+s.httpAddr().String()+"/d", "plain HTTP/1.1 /d")
}

// TestServingByLanes: ordinary requests come from a lane, on each port.
func TestServingByLanes(t *testing.T) {
	t.Parallel()
	from := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, isNetHTTP := r.Context().Value(http.ServerContextKey).(*http.Server)
		fmt.Fprintf(w, "net/http: %t", isNetHTTP)
	})
	s := startServing(t, servingOptions{secure: from, plain: from})
	plain, secure := s.client(t, "http"), s.client(t, "https")
	for range 2 {
		s.wantGet(t, plain, "http://"+s.addr, "net/http: false")
		s.wantGet(t, plain, "http://"+s.httpAddr().String(), "net/http: false")
		s.wantGet(t, secure, "https://"+s.addr, "net/http: false")
		s.wantGet(t, s.client(t, "h2"), "https://"+s.addr, "net/http: true")
	}
}

// TestServingTellsThatAPollIsLeft: a page that is left ends its poll, also on a connection that a lane had.
func TestServingTellsThatAPollIsLeft(t *testing.T) {
	t.Parallel()
	held, left := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == wire.PollPath {
			held <- struct{}{}
			<-r.Context().Done()
			left <- struct{}{}
		}
	})
	s := startServing(t, servingOptions{secure: handler, plain: handler})
	for _, protocol := range []string{"http", "https", "h2"} {
		client, url := s.client(t, protocol), "https://"+s.addr
		if protocol == "http" {
			url = "http://" + s.addr
		}
		s.wantGet(t, client, url, "")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-held
			cancel()
		}()
		request, err := http.NewRequestWithContext(ctx, "GET", url+wire.PollPath+"?id=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			t.Errorf("%s: the poll is answered %s", protocol, response.Status)
		}
		select {
		case <-left:
		case <-time.After(patience):
			t.Fatalf("%s: the poll goes on without its client", protocol)
		}
	}
}

func TestServingKeepsConnections(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{})
	for _, protocol := range []string{"http", "https", "h2"} {
		client := s.client(t, protocol)
		url := "https://" + s.addr
		if protocol == "http" {
			url = "http://" + s.addr
		}
		reused := false
		trace := &httptrace.ClientTrace{GotConn: func(conn httptrace.GotConnInfo) { reused = conn.Reused }}
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		if !reused {
			t.Errorf("%s: the second request had a new connection, want the first one's", protocol)
		}
	}
}

func TestServingBoundsStreams(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	conns := make(chan string)
	s := startServing(t, servingOptions{secure: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			conns <- r.RemoteAddr
			<-release
		}
	})})
	client := s.client(t, "h2")
	// The first answer tells the client how many streams it may open.
	s.wantGet(t, client, "https://"+s.addr, "")
	var requests sync.WaitGroup
	failed := make(chan error, maxStreamsPerConnection+1)
	used := map[string]int{}
	for range maxStreamsPerConnection + 1 {
		requests.Go(func() {
			if _, _, err := get(client, "https://"+s.addr+"/wait"); err != nil {
				t.Error(err)
				failed <- err
			}
		})
		select {
		case conn := <-conns:
			used[conn]++
		case <-failed:
		}
	}
	close(release)
	requests.Wait()
	most := 0
	for _, n := range used {
		most = max(most, n)
	}
	if most != maxStreamsPerConnection || len(used) != 2 {
		t.Errorf("the connections carried %v streams, want %d and 1", used, maxStreamsPerConnection)
	}
}

// head returns a request whose line and headers are n bytes long.
func head(n int) string {
	const start, end = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: ", "\r\n\r\n"
	return start + strings.Repeat("x", n-len(start)-len(end)) + end
}

func TestServingBoundsTheHead(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{})
	tests := []struct {
		name    string
		request string
		want    int
	}{
		{"at the limit", head(maxHeadBytes), 200},
		{"over the limit", head(maxHeadBytes + 1), 431},
		{"2 MiB", head(2 << 20), 431},
		{"50,000 headers", "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("a: b\r\n", 50_000) + "\r\n", 431},
		{"request line", "GET /" + strings.Repeat("x", maxHeadBytes) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
	}
	for _, test := range tests {
		for _, conn := range []net.Conn{s.dialTLS(t), connect(t, s.addr), connect(t, s.httpAddr().String())} {
			go func() { _, _ = io.WriteString(conn, test.request) }() // it may not be read to its end
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("%s: %v, want an answer", test.name, err)
			} else if response.StatusCode != test.want {
				t.Errorf("%s: status %d, want %d", test.name, response.StatusCode, test.want)
			}
			conn.Close()
		}
	}
}

func TestServingReloadsCertificate(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), newFakeClock()
	clock.now = time.Now()
	install(t, dir, clock)
	c, err := newCertificates("", certFiles{dir + "/cert.pem", dir + "/key.pem"}, certNames{}, clock.Now, new(logBook).logger())
	if err != nil {
		t.Fatal(err)
	}
	s := startServing(t, servingOptions{tls: c.tlsConfig()})
	serial := func() string {
		conn, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	clock.Add(time.Second)
	install(t, dir, clock)
	if serial() == first {
		t.Error("a new connection got the old certificate, want the new one")
	}
}

func TestListenErrors(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{})
	tests := []struct{ name, addr, httpAddr, want string }{
		{"busy", s.addr, "", "listen on " + s.addr + ": the port is in use"},
		{"busy for plain HTTP", "127.0.0.1:0", s.addr, "the port is in use"},
		{"another machine's", "192.0.2.1:0", "", "does not have that address"},
		{"no port", "localhost", "", "missing port in address"},
	}
	for _, test := range tests {
		other := newServing(s.options)
		checkError(t, other.listen(test.addr, test.httpAddr), test.want)
		other.close()
	}
}

// httpAddr returns the address of the port for plain HTTP, or nil.
func (s *serving) httpAddr() net.Addr {
	if s.extra == nil {
		return nil
	}
	return s.extra.Addr()
}

// TestServingBoundsTheHeaders: a request has no more headers than any client needs, whatever room they leave
// in its head.
func TestServingBoundsTheHeaders(t *testing.T) {
	t.Parallel()
	s := startServing(t, servingOptions{})
	for _, protocol := range []string{"http", "https", "h2"} {
		scheme, want := "https://", http.StatusRequestHeaderFieldsTooLarge
		if protocol == "http" {
			scheme = "http://"
		}
		for _, spread := range []bool{true, false} {
			request, err := http.NewRequest(http.MethodGet, scheme+s.addr, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			for i := range maxHeaderLines + 1 {
				if spread {
					request.Header.Set(fmt.Sprintf("X-%d", i), "")
				} else {
					request.Header.Add("X", "")
				}
			}
			response, err := s.client(t, protocol).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != want || !strings.Contains(string(text), `"the request has more than 256 headers"`) {
				t.Errorf("%s: %d headers are answered %d %s, want %d", protocol, maxHeaderLines+1, response.StatusCode, text, want)
			}
		}
	}
}
