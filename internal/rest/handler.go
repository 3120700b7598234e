// Package rest is the HTTP front of the data: it reads a request, asks the engine, and
// prints the answer. It speaks the REST interface of the Firebase Realtime Database,
// with its event streams.
//
// A Handler serves the databases of a catalog. Each request is a call, which serve
// takes from top to bottom. The first thing that is wrong is answered, so that a
// stranger learns as little as possible, in this order:
//
//  1. with --dev, whether a stranger's web page may have sent it (package dev);
//  2. the method, the query string, a method override and the path, all by their
//     text alone (question.go, target.go);
//  3. the database, by the parameter ns or the host (package hosts);
//  4. the credential, and so who asks (credential.go);
//  5. the parameters, of which the dialect of the database allows more or fewer
//     (params.go, dialect.go), and whether the identity may be overridden; then, if a moment of
//     the past is asked for, the database as it was (past.go);
//  6. what the target is for: data is read (read.go), listed by rows (list.go), written
//     (write.go), explained (explain.go) or watched (stream.go); the rules document (rules.go), options of
//     the database (option.go), the list of databases (inspect.go) and the stream of
//     operations (profile.go) are the operator's.
//
// A path is parsed once and never goes through http.ServeMux, which would redirect
// some. Preflights are answered, and an Endpoint is asked for paths that are not of
// data, between the first two steps.
//
// A call has four parts, each with only what it needs: the question (what is asked),
// the usage (memory that it takes of the budgets in budget.go), the body (read within
// limits of size and speed), and the reply (given once, as content or as an error).
// Streams outlive their call: package outbox holds them. A few goroutines serve all of
// those that are not over HTTP/2, and none of them can hold up another.
//
// The package holds no rule of the database: what a write means is decided in tree,
// whether it may be made in engine. errors.go decides which status a failure is
// answered with; a dialect changes that of what the rules deny. Who stands around a
// Handler learns what a request was by being a Noter.
package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/state"
)

// Options configure a Handler.
type Options struct {
	Catalog *catalog.Catalog
	Logger  *slog.Logger
	Now     func() time.Time

	// Hosts name the database of a request that does not name it itself.
	hosts.Hosts
	// Endpoint, if set, answers requests that are not for data.
	Endpoint Endpoint

	// Dev makes `owner` an administrator, and keeps web pages out, but for those of
	// this machine, of private networks and of DevOrigins. DevHosts are what the
	// server may then be called beside localhost and addresses. Create, if set, makes a database that
	// is written to and not there; reads of it show no data.
	Dev        bool
	DevHosts   []string
	DevOrigins []string
	Create     func(ctx context.Context, name string) (*engine.Database, error)
	// Dialect is that of databases that have none of their own; spec by default.
	Dialect string
	// Streams holds the open streams, Operations those who profile; both may be
	// shared, and Streams with other fronts.
	Streams    *outbox.Clients
	Operations *Operations
	// MaxBody is the largest body.
	MaxBody int64
	// Memory is what bodies and large answers may take in memory; it may be shared with
	// other fronts. If it is nil, MaxBodies is what all bodies may take at a time.
	Memory    *budget.Memory
	MaxBodies int64
	// Reads says, for a node of a cluster, how new what is read has to be where the request does not.
	Reads Consistency
	// RulesSet, if set, is told when the rules document of a database was replaced, and
	// by whom.
	RulesSet func(ctx context.Context, database, by string)
	// Past, if set, opens a database as it was, until leave is called.
	Past func(ctx context.Context, d *engine.Database, at time.Time) (was *engine.Database, leave func(), err error)
}

// A Handler serves the databases of a catalog.
type Handler struct {
	opts    Options
	guard   dev.Guard
	dialect *dialect       // of databases that have none of their own
	bodies  *budget.Budget // of writes
	answers *budget.Budget // to reads

	longReads *turns
	overload  exchange.Seldom
	outlines  *rows.Outlines
}

// New returns a handler.
func New(opts Options) *Handler {
	if opts.Memory == nil {
		opts.Memory = budget.NewMemory(opts.MaxBodies)
	}
	d := dialects[opts.Dialect]
	if d == nil {
		d = dialects[SpecDialect]
	}
	return &Handler{
		opts:    opts,
		guard:   dev.Guard{On: opts.Dev, Hosts: opts.Hosts, Names: opts.DevHosts, Origins: opts.DevOrigins},
		dialect: d,
		bodies:  opts.Memory.Writes,
		answers: opts.Memory.Reads,

		longReads: newTurns(runtime.GOMAXPROCS(0)),
		outlines:  rows.NewOutlines(rows.DefaultOutlineBound()),
	}
}

// A call is one request on its way: what is asked, of which database, by whom. What
// it reads, sends and holds on the way are its body, its reply and its usage.
type call struct {
	*Handler
	question
	w http.ResponseWriter
	r *http.Request

	operator string           // who asks, if it is by ServeOperator
	name     string           // of the database
	database *engine.Database // nil if it is not there, and would be made
	who      auth.Identity
	proved   *state.Settings // by which the credential was good

	usage usage
	body  body
	reply reply
}

// newCall returns the call of a request of which nothing is known yet.
func (h *Handler) newCall(w http.ResponseWriter, r *http.Request) *call {
	c := &call{Handler: h, w: w, r: r}
	c.usage = usage{r: r, bodies: h.bodies, answers: h.answers, longReads: h.longReads, who: &c.who}
	c.body = body{
		r: r, control: *http.NewResponseController(w), now: h.opts.Now, most: h.opts.MaxBody, usage: &c.usage, judge: c,
	}
	c.reply = reply{
		w: w, r: r, now: h.opts.Now, logger: h.opts.Logger, overload: &h.overload, asked: &c.question, dialect: h.dialect, usage: &c.usage, body: &c.body,
	}
	return c
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	check := h.guard.Check
	if h.guard.On && asksForScript(r) {
		check = h.guard.CheckScript
	}
	if err := check(r); err != nil {
		exchange.Fail(w, http.StatusForbidden, err.Error()) // no page may read it
		return
	}
	h.setHeaders(w.Header(), r)
	if r.Method == http.MethodOptions {
		h.preflight(w)
		return
	}
	c := h.newCall(w, r)
	defer c.usage.release()
	if answer := h.endpoint(r); answer != nil {
		answer(&Request{W: w, R: r, call: c})
		c.reply.settle()
		return
	}
	if err := c.serve(); err != nil {
		c.reply.fail(err)
	}
}

// asksForScript reports whether the answer would be a script, which any page may load.
func asksForScript(r *http.Request) bool {
	values, err := parseQuery(r.URL.RawQuery, nil)
	return err == nil && values.has("callback")
}

// serve finds out what is asked for, checks it in the order that behaviour is
// written down in, and does it.
func (c *call) serve() error {
	if err := c.ask(c.r); err != nil {
		return err
	}
	if err := c.findDatabase(); err != nil {
		return err
	}
	fresh, err := await(c)
	if err != nil {
		return err
	}
	if err := c.identify(); err != nil {
		return err
	}
	if err := awaitPosition(c, fresh); err != nil {
		return err
	}
	return c.answer()
}

// answer does what is asked for, by somebody who is known.
func (c *call) answer() error {
	if err := c.readParams(c.reply.dialect); err != nil {
		return err
	}
	if err := c.overrideIdentity(); err != nil {
		return err
	}
	if c.verb.ignoresBody() {
		if err := c.body.skip(c.w.Header()); err != nil {
			return err
		}
	}
	switch c.target.kind {
	case ofRules:
		return c.rules()
	case ofOption:
		return c.option()
	case ofDatabases:
		return c.inspect()
	case ofOperations:
		return c.profile()
	case ofNode, ofPriority:
		return c.serveData()
	}
	panic(c.target.kind.unknown())
}

// serveData reads, watches or writes a part of the tree.
func (c *call) serveData() error {
	if !c.params.at.IsZero() {
		leave, err := c.goBack()
		if err != nil {
			return err
		}
		defer leave()
	}
	switch {
	case c.params.wantsRows():
		return c.list()
	case c.verb == get && WantsStream(c.r.Header):
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
func (c *call) findDatabase() error {
	name, ok := c.opts.DatabaseOf(c.given.texts("ns"), c.r.Host)
	if !ok {
		return errNoDatabase
	}
	c.name, c.usage.database = name, name
	var err error
	c.database, err = c.opts.Catalog.Database(name)
	if c.opts.Create != nil && (fault.KindOf(err) == fault.NotFound || err == nil && c.database.Published().Position == 0) {
		// A read shows no data, a write makes it; or goes on with making it, if a kill came
		// in between and nothing was ever committed to it.
		c.database = nil
		return nil
	}
	if err != nil {
		return err
	}
	c.found()
	return nil
}

// found takes account of the database that the call is for. A stream keeps its name, which in the request may be a part of a
// long head.
func (c *call) found() {
	c.name = c.database.Name()
	c.usage.database = c.name
	c.reply.dialect = c.dialectOf(c.database)
	note(c.w, c.target.route(), c.name)
}

// create makes the database of a write that nothing is wrong with.
func (c *call) create() (err error) {
	if c.database != nil {
		return nil
	}
	if c.database, err = c.opts.Create(c.r.Context(), c.name); err == nil {
		c.found()
	}
	return err
}

// abort ends the connection: the client must not take what it has for the whole.
func abort() { panic(http.ErrAbortHandler) }

// waiting returns what is closed when nobody waits for the answer any more, nil if
// that is not told. HTTP/2 has a frame for it. Over HTTP/1.1 the end of a client's
// sending is no proof: it may still read.
func waiting(r *http.Request) <-chan struct{} {
	if r.ProtoMajor != 2 {
		return nil
	}
	return r.Context().Done()
}

// isTakenBack reports whether no client waits for the answer any more.
func isTakenBack(r *http.Request) bool { return r.ProtoMajor == 2 && r.Context().Err() != nil }

// isGone reports whether an error means that the client has left.
func isGone(r *http.Request, err error) bool {
	return r.Context().Err() != nil || errors.Is(err, errGone) || errors.Is(err, http.ErrHandlerTimeout)
}
