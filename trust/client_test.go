//go:build unix

package trust_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A request is what a client sends.
type request struct {
	method string
	target string   // path and query
	header []string // name, value, name, value, …
	body   string
}

func (r request) String() string {
	text := r.method + " " + r.target
	for i := 0; i < len(r.header); i += 2 {
		text += " [" + r.header[i] + ": " + r.header[i+1] + "]"
	}
	return text + " " + r.body
}

// An answer is what comes back, whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// A client sends requests to one server.
type client struct {
	base string // https://host:port
	http *http.Client
}

// newClient returns a client by one version of HTTP.
func newClient(t *testing.T, p *process, major int) *client {
	t.Helper()
	c := dialClient(t, p.dir, p.address(), major)
	// A process that was started again is somewhere else.
	c.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.address())
	}
	return c
}

// dialClient returns a client of the server with this data directory and address.
func dialClient(t *testing.T, dir, addr string, major int) *client {
	t.Helper()
	trusted, err := authority(dir)
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(major == 1)
	protocols.SetHTTP2(major == 2)
	transport := &http.Transport{
		TLSClientConfig:       &tls.Config{RootCAs: trusted},
		Protocols:             &protocols,
		DisableCompression:    true,
		MaxIdleConnsPerHost:   100,
		ResponseHeaderTimeout: patience,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{base: "https://" + addr, http: &http.Client{Transport: transport}}
}

// A sending is how far a request came.
type sending struct {
	isSent bool      // the server may have seen it
	all    time.Time // when all of it was on its way; zero if it may not have been
}

// send sends a request and reads the answer. If there is none, it returns how far
// the request came.
func (c *client) send(r request) (a answer, s sending, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var last atomic.Pointer[sending]
	// The transport gets a connection again only when it knows that nobody has
	// seen the request.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { last.Store(&sending{}) },
		WroteHeaders: func() { last.Store(&sending{isSent: true}) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				last.Store(&sending{isSent: true, all: time.Now()})
			}
		},
	})
	req, err := r.build(ctx, c.base)
	if err != nil {
		return answer{}, sending{}, err
	}
	got, err := c.http.Do(req)
	if last := last.Load(); last != nil {
		s = *last
	}
	if err != nil {
		return answer{}, s, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header, string(body)}, s, err
}

func (r request) build(ctx context.Context, base string) (*http.Request, error) {
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, base+r.target, body)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(r.header); i += 2 {
		req.Header.Add(r.header[i], r.header[i+1])
	}
	return req, nil
}

// must sends a request that has to be answered with 200.
func (c *client) must(t *testing.T, r request) answer {
	t.Helper()
	a, _, err := c.send(r)
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	if a.status != http.StatusOK {
		t.Fatalf("%s = %d %s, want 200", r, a.status, a.body)
	}
	return a
}
