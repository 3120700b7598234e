package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/client"
)

// fullDisk is a writer that has no room.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, fmt.Errorf("write: %w", syscall.ENOSPC) }

// plainServer runs a handler over plain HTTP and returns its URL.
func plainServer(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// clientOf returns a client of a server that the test has made, with the secret.
func clientOf(t testing.TB, url string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: url, Auth: secret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// transportTo returns a transport that trusts a server.
func transportTo(t testing.TB, i *instance) *http.Transport {
	t.Helper()
	pem, err := os.ReadFile(i.ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func TestLocation(t *testing.T) {
	t.Parallel()
	tests := []struct{ path, want string }{
		{"/", "/.json"}, {"", "/.json"}, {"a/b", "/a/b.json"}, {"//a//b/", "/a/b.json"},
		{"/a b/ä%", "/a%20b/%C3%A4%25.json"}, {"/a/.priority", "/a/.priority.json"}, {".priority", "/.priority.json"}, {"/.priority", "/.priority.json"},
	}
	for _, test := range tests {
		if got, err := client.Location(test.path); err != nil || got != test.want {
			t.Errorf("Location(%q) = %q, %v, want %q", test.path, got, err, test.want)
		}
	}
	for _, path := range []string{"a.json", "/a/.value", "/.priority/a", "a#", strings.Repeat("a/", 33)} {
		_, err := client.Location(path)
		if _, ok := errors.AsType[*client.UsageError](err); !ok {
			t.Errorf("Location(%q): %v, want a UsageError", path, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	server := startServer(t, "127.0.0.1:0")
	get := client.Request{Method: http.MethodGet, Path: "/a.json"}
	tests := []struct {
		name       string
		opts       client.Options
		req        client.Request
		code       int
		want, hint string
	}{
		{"a wrong secret", client.Options{URL: server.url, CA: server.ca, Auth: "correct-horse"}, get, client.ExitDenied, "answered 401", "not one of this database"},
		{"no secret", client.Options{URL: server.url, CA: server.ca}, get, client.ExitDenied, "answered 403: Permission denied", "set LIVETREE_AUTH"},
		{"no such database", client.Options{URL: server.url, CA: server.ca, Database: "other", Auth: secret}, get, client.ExitOther, "answered 404", "database of this name"},
		{"not trusted", client.Options{URL: server.url, Auth: secret}, get, client.ExitProtocol, "certificate", "--ca"},
		{"plain HTTP", client.Options{URL: strings.Replace(server.url, "https", "http", 1), Auth: secret}, get, client.ExitOther, "HTTPS", "https://"},
		{"a text without quotes", client.Options{URL: server.url, CA: server.ca, Auth: secret},
			client.Request{Method: http.MethodPut, Path: "/a.json", Body: strings.NewReader("hello")}, client.ExitData, "answered 400", "quotes"},
		{"a wrong secret of a source", client.Options{URL: server.url, CA: server.ca, Auth: "correct-horse", Source: true}, get,
			client.ExitDenied, "the source answered 401", "has expired: look at LIVETREE_FROM_AUTH"},
		{"a source that is not trusted", client.Options{URL: server.url, Source: true}, get, client.ExitProtocol, "certificate", "--from-ca"},
		{"no source there", client.Options{URL: "https://127.0.0.1:1", Source: true}, get, client.ExitUnavailable, "cannot be reached", "--from"},
		{"nobody there", client.Options{URL: "https://127.0.0.1:1", Auth: "correct-horse"}, get, client.ExitUnavailable, "cannot be reached", "doctor"},
		{"a bad body", client.Options{URL: server.url, CA: server.ca, Auth: secret},
			client.Request{Method: http.MethodPut, Path: "/a.json", Body: strings.NewReader("{")}, client.ExitData, "answered 400", ""},
	}
	for _, test := range tests {
		test.opts.Attempts = 1
		c, err := client.New(test.opts)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		_, err = c.Bytes(t.Context(), test.req)
		c.Close()
		if err == nil || !strings.Contains(err.Error(), test.want) || client.ExitCode(err) != test.code || !strings.Contains(client.Hint(err), test.hint) {
			t.Errorf("%s: %v, hint %q, exit %d; want %q, %q, %d", test.name, err, client.Hint(err), client.ExitCode(err), test.want, test.hint, test.code)
		}
		if err != nil && (strings.Contains(err.Error(), "correct-horse") || strings.Contains(err.Error(), secret)) {
			t.Errorf("%s: the error shows the secret: %v", test.name, err)
		}
	}
}

// TestRetries: only what is safe is sent again.
func TestRetries(t *testing.T) {
	t.Parallel()
	busy := func(w http.ResponseWriter) { http.Error(w, `{"error":"busy"}`, http.StatusServiceUnavailable) }
	dies := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	tests := []struct {
		name       string
		method     string
		repeatable bool
		answer     func(http.ResponseWriter)
		want       int64
	}{
		{"POST to a busy server", http.MethodPost, false, busy, 3},
		{"GET from one that dies", http.MethodGet, true, dies, 3},
		{"POST to one that dies", http.MethodPost, false, dies, 1},
		{"a refusal", http.MethodPut, true, func(w http.ResponseWriter) { http.Error(w, "no", http.StatusBadRequest) }, 1},
	}
	for _, test := range tests {
		var asked atomic.Int64
		c := clientOf(t, plainServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			test.answer(w)
		})))
		_, err := c.Bytes(t.Context(), client.Request{Method: test.method, Path: "/a.json", Body: strings.NewReader("1"), Repeatable: test.repeatable})
		if err == nil || asked.Load() != test.want {
			t.Errorf("%s: %d requests, %v; want %d", test.name, asked.Load(), err, test.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := clientOf(t, plainServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "100")
		busy(w)
		cancel()
	})))
	if _, err := c.Bytes(ctx, client.Request{Method: http.MethodGet, Path: "/a.json"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that waits when it is given up: %v", err)
	}
}

// TestStalledAnswer: an answer of which nothing comes any more is given up.
func TestStalledAnswer(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	begun := struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader("some"), r), r}
	body := client.IdleBody(clientOf(t, "http://127.0.0.1:1"), begun, 10*time.Millisecond)
	defer body.Close()
	text, err := io.ReadAll(body)
	if _, ok := errors.AsType[*client.ConnectionError](err); !ok || string(text) != "some" || !strings.Contains(err.Error(), "nothing came for too long") {
		t.Errorf("an answer that stalls: %q, %v", text, err)
	}
}
