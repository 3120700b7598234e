// Package client is what the client commands need to work with a Livetree, or
// with any server that speaks the same interface.
//
// The types to know:
//
//   - Client, one database on one server. It sends the credential, trusts the
//     right certificates, and sends a request again where that is safe.
//   - Watch, which follows the events of a location across broken connections,
//     and Cache, which applies them.
//   - Splitter, which cuts a JSON text of any size into assignments that one
//     request each, or many together, can carry; Import sends them.
//   - Export, which never leaves a file that is not whole.
//   - Migration, which copies a database and keeps the copy up to date.
//
// Three things hold everywhere: memory does not grow with the data, a credential
// is in no error and no log, and an error says what to do next (Hint) and has one
// exit code (ExitCode).
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/loopback"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// maxAnswer bounds an answer that is kept in memory; a rules document in an
	// error text is the longest.
	maxAnswer = 4 << 20
	// headTimeout bounds the wait for the head of an answer: a server may have
	// a large tree to delete before it has one.
	headTimeout = 2 * time.Minute
	// idleTimeout bounds the wait for the next bytes of an answer.
	idleTimeout = time.Minute
)

// Options say which database of which server. URL must be set.
type Options struct {
	// URL is that of the server; it may name the database as ?ns=NAME. Without it the server is
	// the one that the user has logged in to or else the one that runs on Data, which then tells
	// what else is left out.
	URL string
	// Server is the name of a server that the user has logged in to, and Logins the file with all of
	// them; empty for none. Without a name it is the default one of the file, if that has one.
	Server, Logins string
	// Data is the data directory of a server on this machine.
	Data string
	// Database is its name; empty for what the URL or the server says.
	Database string
	// Auth is the credential: a secret or a token.
	Auth string
	// CA is a PEM file with a certificate to trust beside those of the system;
	// without it that of the data directory is, as far as local.Authority goes.
	CA string
	// Authority is such a certificate as text, for a server without a CA.
	Authority string
	// Attempts bounds how often a request is sent; 0 for DefaultAttempts.
	Attempts int
	// Source is set for the server that a migration copies from: hints name the
	// flags that belong to it.
	Source bool
	// Now is the clock; nil for that of the system.
	Now func() time.Time

	loggedIn bool // the URL is that of a login
}

// DefaultAttempts is how often a request is sent until it is given up.
const DefaultAttempts = 3

// A Client is one database on one server. It may be used by many goroutines.
type Client struct {
	address address
	auth    string
	source  bool
	http    *http.Client
	retry   backoff
	now     func() time.Time
}

// New returns a client. Nothing is sent to the database yet.
func New(opts Options) (*Client, error) {
	if err := opts.find(); err != nil {
		return nil, err
	}
	a, err := opts.address()
	if err != nil {
		return nil, err
	}
	roots, err := opts.trusted(a.url.Hostname())
	if err != nil {
		return nil, err
	}
	if opts.Attempts == 0 {
		opts.Attempts = DefaultAttempts
	}
	if opts.Now == nil {
		opts.Now = time.Now //nolint:forbidigo // the default of Options.Now
	}
	return &Client{
		address: a,
		auth:    opts.Auth,
		source:  opts.Source,
		http: &http.Client{
			Transport: &http.Transport{
				Proxy:                 http.ProxyFromEnvironment,
				DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
				TLSClientConfig:       &tls.Config{RootCAs: roots},
				ResponseHeaderTimeout: headTimeout,
				TLSHandshakeTimeout:   10 * time.Second,
				MaxIdleConnsPerHost:   16,
				// Compressing costs more than it saves when nothing is sent far.
				DisableCompression: loopback.Host(a.url.Hostname()),
				ForceAttemptHTTP2:  true,
			},
			// Nobody else is told the secret, or believed.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		retry: backoff{attempts: opts.Attempts, first: 250 * time.Millisecond, longest: 10 * time.Second, random: rand.Float64},
		now:   opts.Now,
	}, nil
}

// Close ends the connections that are kept open.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// String returns where the client works, for people.
func (c *Client) String() string { return c.address.String() }

// RulesPath is where the rules document of a database is.
const RulesPath = "/.settings/rules.json"

// A Request is one request to the database.
type Request struct {
	Method string
	// Path is the path of the URL, as Location returns it.
	Path  string
	Query url.Values
	// Header is added to what every request has.
	Header http.Header
	// Body is what is sent. One that can seek can be sent again.
	Body io.Reader
	// Size is the length of the body if it is known and Body does not tell.
	Size int64
	// Repeatable says that the request may be sent again though the server may
	// have done it. Without it that happens only if it surely has not.
	Repeatable bool
}

// Location returns the path of the URL for a path in the tree, such as a/b, which
// may end in .priority.
func Location(path string) (string, error) {
	rest, isPriority := strings.CutSuffix(strings.TrimRight(path, "/"), "/.priority")
	if path == ".priority" {
		rest, isPriority = "", true
	}
	p, err := tree.ParsePath(rest)
	if err != nil {
		hint := ""
		if strings.HasSuffix(path, ".json") {
			hint = "; write the path without .json"
		}
		return "", usage("the path %.200q: %v%s", path, err, hint)
	}
	at := escape(p)
	if isPriority {
		return strings.TrimSuffix(at, "/") + "/.priority.json", nil
	}
	return at + ".json", nil
}

// escape returns a path as it stands in a URL, the root as a slash.
func escape(p tree.Path) string {
	var b strings.Builder
	for key := range p.Keys() {
		b.WriteString("/" + url.PathEscape(key))
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// Do sends a request, and again where that is safe and promises something. The
// answer is one of success, and its body must be closed; others are a StatusError.
func (c *Client) Do(ctx context.Context, req Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		resp, err := c.once(ctx, req)
		if err == nil {
			return resp, nil
		}
		wait, again := c.retry.after(attempt, req.Repeatable, err)
		if !again || !rewind(req.Body) {
			return nil, err
		}
		if err := pause.For(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// once sends a request one time.
func (c *Client) once(ctx context.Context, req Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	resp, err := c.send(ctx, c.address.target(req.Path, req.Query), req)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	resp.Body = c.idle(ctx, resp.Body, cancel, idleTimeout)
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refusal(resp)
}

// send sends a request to an address.
func (c *Client) send(ctx context.Context, target *url.URL, req Request) (*http.Response, error) {
	if c.auth != "" && c.address.wantsParameter(c.auth) {
		query := target.Query()
		query.Set("auth", c.auth)
		target.RawQuery = query.Encode()
	}
	var body io.Reader
	if req.Body != nil {
		body = req.Body
		if _, ok := body.(*bytes.Reader); !ok { // which http knows the length of
			body = io.NopCloser(body)
		}
	}
	r, err := http.NewRequestWithContext(ctx, req.Method, target.String(), body)
	if err != nil {
		return nil, c.failure(err)
	}
	if req.Size > 0 {
		r.ContentLength = req.Size
	}
	for name, values := range req.Header {
		r.Header[name] = values
	}
	// In a header where possible: addresses end up in logs and error texts.
	if c.auth != "" && !c.address.wantsParameter(c.auth) {
		r.Header.Set("Authorization", "Bearer "+c.auth)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, c.failure(err)
	}
	return resp, nil
}

// refusal turns an answer that is not one of success into an error.
func (c *Client) refusal(resp *http.Response) error {
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // what came is shown
	e := &StatusError{
		Status:     resp.StatusCode,
		Text:       c.hide(errorText(resp, answer)),
		Anonymous:  c.auth == "",
		RetryAfter: retryAfter(resp.Header, c.now()),
		source:     c.source,
	}
	if resp.StatusCode/100 == 3 {
		if to, err := resp.Location(); err == nil {
			e.Text = "it redirects to " + to.Scheme + "://" + to.Host
		}
	}
	return e
}

// Bytes sends a request and returns the body of the answer, of which there must
// be no more than a few megabytes.
func (c *Client) Bytes(ctx context.Context, req Request) ([]byte, error) {
	resp, err := c.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(answer) > maxAnswer {
		return nil, errors.New("the answer is larger than it can be")
	}
	return answer, nil
}

// Copy sends a request and copies the body of the answer to w.
func (c *Client) Copy(ctx context.Context, w io.Writer, req Request) (int64, error) {
	resp, err := c.Do(ctx, req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return io.Copy(&faultWriter{w: w}, resp.Body)
}

// IsEmpty reports whether there is no data at a path. It reads no more of the
// answer than it takes to know.
func (c *Client) IsEmpty(ctx context.Context, path string) (bool, error) {
	at, err := Location(path)
	if err != nil {
		return false, err
	}
	resp, err := c.Do(ctx, Request{Method: http.MethodGet, Path: at, Query: url.Values{"shallow": {"true"}}, Repeatable: true})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	start := make([]byte, len("null"))
	n, err := io.ReadFull(resp.Body, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	return string(start[:n]) == "null", nil
}
