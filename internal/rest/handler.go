// Package rest is the HTTP front: it parses a request, calls the engine, and
// prints the answer.
//
// A request goes through one Handler from top to bottom: method and path,
// parameters, database, credential, then the verb in read.go or write.go. The
// first thing that is wrong is answered, in this order, so that a stranger
// learns as little as possible. One parsed path serves everything; data paths
// never go through http.ServeMux, which would redirect some of them.
//
// The package holds no rule of the database: what a write means is decided in
// tree, whether it may be made in engine. All answers with an error come from
// errors.go, the only place that knows status codes.
package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// Options configure a Handler.
type Options struct {
	Catalog *catalog.Catalog
	Logger  *slog.Logger
	Now     func() time.Time

	// DefaultDatabase is the database of a request that names none; empty for
	// none. Domain and HostMap name databases by the host.
	DefaultDatabase string
	Domain          string
	HostMap         map[string]string

	// Dev makes `owner` an administrator. Create, if set, makes a database that
	// is written to and not there; reads of it show no data.
	Dev    bool
	Create func(ctx context.Context, name string) (*engine.Database, error)
	// Dialect is that of databases that have none of their own; spec by default.
	Dialect string
	// Streams holds the open streams, Operations those who profile; both may be
	// shared.
	Streams    *Streams
	Operations *Operations
	// MaxBody is the largest body, MaxBodies what all bodies may take in memory
	// at a time.
	MaxBody   int64
	MaxBodies int64
	// BodyBytes, if set, is kept at what bodies take in memory.
	BodyBytes *atomic.Int64
}

// A Handler serves the databases of a catalog.
type Handler struct {
	opts   Options
	bodies budget
}

// New returns a handler.
func New(opts Options) *Handler {
	if opts.BodyBytes == nil {
		opts.BodyBytes = &atomic.Int64{}
	}
	return &Handler{opts: opts, bodies: budget{limit: opts.MaxBodies, total: opts.BodyBytes}}
}

// A call is one request on its way.
type call struct {
	*Handler
	w http.ResponseWriter
	r *http.Request

	verb     verb
	target   target
	params   params
	name     string           // of the database
	database *engine.Database // nil if it is not there, and would be made
	who      auth.Identity

	charged int64 // of the budget for bodies
	used    int64 // by what was decoded so far
	unread  bool  // the body was not read to its end
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.setHeaders(w.Header(), r)
	if r.Method == http.MethodOptions {
		preflight(w)
		return
	}
	c := &call{Handler: h, w: w, r: r}
	defer c.release()
	if answer := h.tool(r); answer != nil {
		answer(c)
		return
	}
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

// serve finds out what is asked for, checks it in the order that behaviour is
// written down in, and does it.
func (c *call) serve() error {
	var err error
	if c.verb, err = verbOf(c.r.Method); err != nil {
		return err
	}
	values, err := parseQuery(c.r.URL.RawQuery)
	if err != nil {
		return err
	}
	if c.verb, err = override(c.verb, c.r.Header, values); err != nil {
		return err
	}
	if c.target, err = parseTarget(escapedPath(c.r.URL)); err != nil {
		return err
	}
	if c.target.upload {
		if c.verb != post {
			return errUploadMethod
		}
		c.verb = put
	}
	if err := c.findDatabase(values); err != nil {
		return err
	}
	if err := c.identify(values); err != nil {
		return err
	}
	if c.params, err = parseParams(c.target, c.verb, values, c.dialect()); err != nil {
		return err
	}
	if err := c.overrideIdentity(); err != nil {
		return err
	}
	switch {
	case c.target.rules:
		return c.rules()
	case c.target.option != "":
		return c.option()
	case c.target.inspect:
		return c.inspect()
	case c.target.profile:
		return c.profile()
	case c.verb == get && wantsStream(c.r.Header):
		return c.watch()
	case c.params.resume:
		return fault.New(fault.Invalid, "resume works with streams only: send Accept: text/event-stream")
	case c.params.explain:
		return c.explain()
	case c.verb.reads():
		return c.read()
	default:
		return c.write()
	}
}

// findDatabase sets the database of the call.
func (c *call) findDatabase(values values) error {
	name, err := c.databaseName(values["ns"], c.r.Host)
	if err != nil {
		return err
	}
	c.name = name
	c.database, err = c.opts.Catalog.Database(name)
	if fault.KindOf(err) == fault.NotFound && c.opts.Create != nil {
		return nil // a read shows no data, a write makes it
	}
	if err == nil {
		note(c.w, c.target.route(), name)
	}
	return err
}

// create makes the database of a write that nothing is wrong with.
func (c *call) create() (err error) {
	if c.database != nil {
		return nil
	}
	if c.database, err = c.opts.Create(c.r.Context(), c.name); err == nil {
		note(c.w, c.target.route(), c.name)
	}
	return err
}

// path returns the location that the call is about.
func (c *call) path() tree.Path { return c.target.path }

// abort ends the connection: the client must not take what it has for the whole.
func abort() { panic(http.ErrAbortHandler) }

// waiting returns what is closed when nobody waits for the answer any more, nil if
// that is not told. HTTP/2 has a frame for it. Over HTTP/1.1 the end of a client's
// sending is no proof: it may still read.
func (c *call) waiting() <-chan struct{} {
	if c.r.ProtoMajor != 2 {
		return nil
	}
	return c.r.Context().Done()
}

// isTakenBack reports whether nobody waits for the answer any more.
func (c *call) isTakenBack() bool { return c.r.ProtoMajor == 2 && c.r.Context().Err() != nil }

// isGone reports whether an error means that the client has left.
func isGone(r *http.Request, err error) bool {
	return r.Context().Err() != nil || errors.Is(err, errGone) || errors.Is(err, http.ErrHandlerTimeout)
}
