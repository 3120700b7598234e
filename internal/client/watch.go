package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// ErrCancelled and ErrRevoked are how a server ends a stream for good.
var (
	ErrCancelled = errors.New("the rules no longer allow to read this")
	ErrRevoked   = errors.New("the credential is no longer valid")
)

const (
	// streamIdle bounds the silence of a stream: a keep-alive comes every 30
	// seconds.
	streamIdle = 75 * time.Second
	// DefaultMaxEvent is the largest event by default.
	DefaultMaxEvent = 64 << 20
	// maxRedirects bounds how often a stream is sent elsewhere.
	maxRedirects = 5
)

// A Watch follows a location.
type Watch struct {
	Path  string
	Query url.Values
	// MaxEvent bounds the data of an event; one that is longer is Truncated. 0
	// for DefaultMaxEvent.
	MaxEvent int
	// After is the ID of the last event that was seen, if there is one.
	After string
	// Lost is told why a connection broke, and how long until the next.
	Lost func(err error, wait time.Duration)
	// Connected is told of each connection that was made.
	Connected func()
}

// Watch tells handle of every event until ctx ends, handle returns an error, or
// the server ends the stream for good. A broken connection is made again. Then the
// server tells what was missed, or, if it does not know, begins with a put at /.
func (c *Client) Watch(ctx context.Context, w Watch, handle func(Event) error) error {
	at, err := Location(w.Path)
	if err != nil {
		return err
	}
	if w.MaxEvent == 0 {
		w.MaxEvent = DefaultMaxEvent
	}
	s := &stream{Watch: w, client: c, at: at, resume: true, handle: handle}
	for attempt := 1; ; attempt++ {
		err := s.run(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.heard {
			attempt, s.heard = 1, false
		}
		wait, again := s.again(attempt, err)
		if !again {
			return err
		}
		if w.Lost != nil {
			w.Lost(err, wait)
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// A stream is a watch across its connections.
type stream struct {
	Watch
	client *Client
	at     string
	handle func(Event) error
	resume bool // the server is asked for IDs
	opened bool // there was a connection
	heard  bool // there was an event on this one
}

// A handlerError is one of the caller, which ends the watch.
type handlerError struct{ error }

func (e handlerError) Unwrap() error { return e.error }

// again decides whether a stream that ended is opened again. One that never was
// open gets only the attempts of a request.
func (s *stream) again(attempt int, err error) (time.Duration, bool) {
	if _, ok := errors.AsType[handlerError](err); ok || errors.Is(err, ErrCancelled) || errors.Is(err, ErrRevoked) {
		return 0, false
	}
	retry := s.client.retry
	wait, again := retry.after(attempt, true, err)
	if s.opened && !again {
		status, isStatus := errors.AsType[*StatusError](err)
		_, isConnection := errors.AsType[*ConnectionError](err)
		again = isConnection || isStatus && status.Status >= 500
		wait = backoff{first: retry.first, longest: 30 * time.Second, random: retry.random}.wait(attempt)
	}
	return wait, again
}

// run reads events from one connection until it ends.
func (s *stream) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, err := s.open(ctx, cancel)
	if err != nil {
		return err
	}
	defer body.Close()
	s.opened = true
	if s.Connected != nil {
		s.Connected()
	}
	frames := newFrameReader(body, s.MaxEvent)
	for {
		frame, err := frames.next()
		if err != nil {
			return s.client.failure(err)
		}
		event, err := frame.event()
		if err != nil {
			return handlerError{err}
		}
		s.heard = true
		if err := s.take(event); err != nil {
			return err
		}
	}
}

// take handles one event.
func (s *stream) take(event Event) error {
	switch event.Name {
	case EventCancel:
		return ended(ErrCancelled, event)
	case EventAuthRevoked:
		return ended(ErrRevoked, event)
	}
	if err := s.handle(event); err != nil {
		return handlerError{err}
	}
	if event.ID != "" {
		s.After = event.ID
	}
	return nil
}

func ended(reason error, event Event) error {
	if text := event.Text(); text != "" {
		return fmt.Errorf("%w: %s", reason, text)
	}
	return reason
}

// open opens the stream, at the address that the server sends it to.
func (s *stream) open(ctx context.Context, cancel context.CancelCauseFunc) (io.ReadCloser, error) {
	target := s.client.address.target(s.at, s.query())
	for range maxRedirects {
		resp, err := s.client.send(ctx, target, Request{Method: http.MethodGet, Header: s.header()})
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode == http.StatusOK:
			if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
				resp.Body.Close()
				return nil, badData("the server does not stream: it answered with %.60q", kind)
			}
			return s.client.idle(ctx, resp.Body, cancel, streamIdle), nil
		case isRedirect(resp.StatusCode):
			resp.Body.Close()
			if target, err = s.redirected(resp); err != nil {
				return nil, err
			}
		case resp.StatusCode == http.StatusBadRequest && s.resume && !s.opened:
			// Others may not know this parameter.
			resp.Body.Close()
			s.resume = false
			target = s.client.address.target(s.at, s.query())
		default:
			defer resp.Body.Close()
			return nil, s.client.refusal(resp)
		}
	}
	return nil, badData("the stream is redirected more than %d times", maxRedirects)
}

func (s *stream) query() url.Values {
	query := url.Values{}
	for name, list := range s.Query {
		query[name] = list
	}
	if s.resume {
		query.Set("resume", "true")
	}
	return query
}

func (s *stream) header() http.Header {
	h := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	if s.After != "" && s.resume {
		h.Set("Last-Event-Id", s.After)
	}
	return h
}

func isRedirect(status int) bool {
	return status == http.StatusMovedPermanently || status == http.StatusFound ||
		status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
}

// redirected returns where a stream goes on: at another address of the same server
// and nowhere else. Another host is told no secret, and nothing that it says is
// believed.
func (s *stream) redirected(resp *http.Response) (*url.URL, error) {
	target, err := resp.Location()
	if err != nil {
		return nil, badData("the server redirects to nowhere")
	}
	if own := resp.Request.URL; target.Scheme != own.Scheme || target.Host != own.Host {
		return nil, badData("the server redirects to %s://%s, where the secret is not sent: if you trust that server, name it by --url", target.Scheme, target.Host)
	}
	return target, nil
}
