package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// How requests travel, beside HTTP/1.1 on connections that stay.
const (
	byH2         = "h2"        // as streams of one connection
	byHandshake  = "handshake" // each on a connection of its own
	byResumption = "resumed"   // the same, which goes on with the session of another
)

// h2Streams is how many streams one connection has.
const h2Streams = 100

// A carrier sends one request after the other.
type carrier interface {
	do(s *side, r *request, keep bool) (answer, error)
	SetDeadline(t time.Time) error
	Close() error
}

// carriers opens n of them.
func (s *side) carriers(ctx context.Context, by string, n int) ([]carrier, error) {
	switch by {
	case byH2:
		return s.streamsOfOne(ctx, n)
	case byHandshake, byResumption:
		return s.greeters(ctx, by == byResumption, n)
	}
	conns, err := s.connect(ctx, n)
	list := make([]carrier, len(conns))
	for i, c := range conns {
		list[i] = c
	}
	return list, err
}

func hangUpAll(list []carrier) {
	for _, c := range list {
		_ = c.Close()
	}
}

// An h2Stream sends requests as streams of a connection that it shares.
type h2Stream struct {
	ctx       context.Context
	transport *http.Transport
	credential
	header http.Header
}

var errMoreConnections = errors.New("HTTP/2 needed more than one connection: the server takes fewer streams")

// streamsOfOne returns what shares one connection.
func (s *side) streamsOfOne(ctx context.Context, n int) ([]carrier, error) {
	config := s.tls.Clone()
	config.NextProtos = []string{"h2"}
	var dials atomic.Int32
	transport := &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true,
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if dials.Add(1) > 1 {
				return nil, errMoreConnections
			}
			return dial(ctx, s.addr, config)
		}}
	list := make([]carrier, n)
	for i := range list {
		stream := &h2Stream{ctx: ctx, transport: transport, credential: s.credentialOf(i), header: http.Header{}}
		if name, value, ok := strings.Cut(strings.TrimSpace(stream.headers), ": "); ok {
			stream.header.Set(name, value)
		}
		list[i] = stream
	}
	// The first request makes the connection; others would each begin one.
	a, err := list[0].do(s, &request{method: "GET", target: []byte("/begun.json")}, true)
	if err == nil && a.status >= http.StatusInternalServerError {
		err = fmt.Errorf("the first request is answered %d", a.status)
	}
	return list, err
}

func (h *h2Stream) do(s *side, r *request, keep bool) (answer, error) {
	url := "https://" + s.addr + s.prefix + string(r.target)
	if h.parameter != "" {
		separator := "?"
		if bytes.IndexByte(r.target, '?') >= 0 {
			separator = "&"
		}
		url += separator + h.parameter
	}
	ask, err := http.NewRequestWithContext(h.ctx, r.method, url, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	ask.Header = h.header
	got, err := h.transport.RoundTrip(ask)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	if got.ProtoMajor != 2 {
		return answer{}, errors.New("the server does not speak HTTP/2")
	}
	a := answer{status: got.StatusCode}
	if keep || a.status >= http.StatusMultipleChoices {
		a.body, err = io.ReadAll(got.Body)
		a.bytes = int64(len(a.body))
		return a, err
	}
	a.bytes, err = io.Copy(io.Discard, got.Body)
	return a, err
}

// SetDeadline does nothing: a run that hangs ends with its context.
func (h *h2Stream) SetDeadline(time.Time) error { return nil }

func (h *h2Stream) Close() error {
	h.transport.CloseIdleConnections()
	return nil
}

// A greeter has a connection for each request.
type greeter struct {
	ctx    context.Context
	config *tls.Config
	credential
	resumes  bool
	deadline time.Time
}

// greeters returns n of them. Those that resume have each had a session.
func (s *side) greeters(ctx context.Context, resume bool, n int) ([]carrier, error) {
	list := make([]carrier, 0, n)
	for i := range n {
		g := &greeter{ctx: ctx, config: s.tls.Clone(), credential: s.credentialOf(i), deadline: now().Add(requestTime)}
		if resume {
			g.config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			if _, err := g.do(s, &request{method: "GET", target: []byte("/begun.json")}, true); err != nil {
				return nil, err
			}
			g.resumes = true
		}
		list = append(list, g)
	}
	return list, nil
}

func (g *greeter) do(s *side, r *request, keep bool) (answer, error) {
	dialed, err := dial(g.ctx, s.addr, g.config)
	if err != nil {
		return answer{}, err
	}
	defer dialed.Close()
	if err := dialed.SetDeadline(g.deadline); err != nil {
		return answer{}, err
	}
	if g.resumes {
		if t, ok := dialed.(*tls.Conn); !ok || !t.ConnectionState().DidResume {
			return answer{}, errors.New("the server does not resume a session")
		}
	}
	return newConn(dialed, g.credential).do(s, r, keep)
}

// SetDeadline sets it for all connections to come.
func (g *greeter) SetDeadline(t time.Time) error {
	g.deadline = t
	return nil
}

// Close does nothing: no connection stays.
func (g *greeter) Close() error { return nil }
