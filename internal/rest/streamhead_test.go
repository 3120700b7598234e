package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/outbox"
)

// A leavingClient of HTTP/2 leaves when it was told something.
type leavingClient struct {
	*httptest.ResponseRecorder
	leave context.CancelFunc
}

func (c *leavingClient) Write(p []byte) (int, error) {
	c.leave()
	return c.ResponseRecorder.Write(p)
}

// TestStreamsKeepNoHead: net/http keeps a request of HTTP/2 for as long as its handler does not return. So a stream
// leaves nothing of a long head in it.
func TestStreamsKeepNoHead(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{})
	ctx, leave := context.WithCancel(t.Context())
	long := strings.Repeat("x", 100_000)
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "https://localhost/a.json?_="+long, nil)
	r.ProtoMajor = 2
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("X-Long", long)
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	w := &leavingClient{httptest.NewRecorder(), leave}
	s.secure.Config.Handler.ServeHTTP(w, r)
	if !strings.HasPrefix(w.Body.String(), "event: put\n") {
		t.Fatalf("the stream is %d %.100s", w.Code, w.Body)
	}
	if n := len(r.RequestURI) + len(r.URL.RawQuery); n > 0 || r.Header.Get("X-Long") != "" {
		t.Errorf("%d bytes of the address are left, and of the headers %.100v", n, r.Header)
	}
	if r.URL.Path != "/a.json" || r.Header.Get("Traceparent") == "" {
		t.Errorf("the path is %q, and the trace %q: the log needs both", r.URL.Path, r.Header.Get("Traceparent"))
	}
}

// TestStreamsLetGoOfParameters: nor is anything that was read from a long query string, or a long host, a part of it for as
// long as a stream lasts, whatever the protocol.
func TestStreamsLetGoOfParameters(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{})
	parts := make(chan weak.Pointer[byte], 2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts <- weak.Make(unsafe.StringData(r.URL.RawQuery))
		parts <- weak.Make(unsafe.StringData(r.Host))
		s.secure.Config.Handler.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		client := &http.Transport{TLSClientConfig: server.Client().Transport.(*http.Transport).TLSClientConfig, ForceAttemptHTTP2: protocol == "HTTP/2.0"}
		t.Cleanup(client.CloseIdleConnections)
		for _, others := range []string{"", "&ns=default", "&ac=1&sse=1&timeout=1s&disableTriggers=true&print=pretty", `&orderBy="$key"&startAt="a"&endAt="b"`} {
			ctx, leave := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/a.json?_="+strings.Repeat("x", 50_000)+others, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = strings.Repeat("x", 50_000)
			r.Header.Set("Accept", "text/event-stream")
			response, err := client.RoundTrip(r)
			if err != nil || response.StatusCode != http.StatusOK || response.Proto != protocol {
				t.Fatalf("%s: the answer is %+v, %v", protocol, response, err)
			}
			for _, what := range []string{"query string", "host"} {
				if !isDropped(<-parts) {
					t.Errorf("%s: a stream of a query string that ends with %q keeps its %s", protocol, others, what)
				}
			}
			leave()
			_ = response.Body.Close()
		}
	}
}

// TestStreamsBehindProxiesKeepNoHead: nor is a part of the head kept for a stream that comes through a trusted proxy, which says by
// what host.
func TestStreamsBehindProxiesKeepNoHead(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{})
	parts := make(chan weak.Pointer[byte], 2)
	proxied := clientaddr.Proxies{netip.MustParsePrefix("127.0.0.0/8")}.Wrap(s.secure.Config.Handler)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts <- weak.Make(unsafe.StringData(r.URL.RawQuery))
		parts <- weak.Make(unsafe.StringData(r.Header.Get("X-Forwarded-Host")))
		proxied.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/a.json?_="+strings.Repeat("x", 50_000), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("X-Forwarded-Host", strings.Repeat("x", 50_000)+", localhost")
	response, err := server.Client().Do(r)
	if err != nil || response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Fatalf("the answer is %+v, %v", response, err)
	}
	defer response.Body.Close()
	for _, what := range []string{"query string", "X-Forwarded-Host"} {
		if !isDropped(<-parts) {
			t.Errorf("a stream keeps its %s", what)
		}
	}
}

// isDropped reports whether a text is given up, as it is when nothing points into it.
func isDropped(text weak.Pointer[byte]) bool {
	for begun := time.Now(); text.Value() != nil; runtime.Gosched() {
		if time.Since(begun) > 10*time.Second {
			return false
		}
		runtime.GC()
	}
	return true
}
