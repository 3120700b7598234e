// Package admin is the operator's listener: health, metrics, profiles,
// databases, secrets and backups, on an address of its own and never on that of
// the data.
//
// The types to know:
//
//   - Listener, the port with its credential. It answers health checks from the
//     moment it is opened, and everything else once the server has handed it a
//     Handler.
//   - Handler, which answers requests. /livez and /readyz are for everybody who
//     reaches the port and show names and states only, and so is the page of the
//     console; all else needs the credential, or a session that was begun with it or
//     with the secret of a database.
//   - route, of which routes.go lists all, with who may use them: somebody with the
//     credential, a session of the operator, or one of a single database.
//   - Requests, which is told of every request that the server has answered. It
//     counts them, and keeps paths only while an operator records.
//
// Metrics carry no path, no credential and no label without a bound. The package
// holds no state of the server: the server hands it what it may read, and
// functions for what it may do.
package admin

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/livetree/livetree/internal/archiver"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/console"
	"github.com/livetree/livetree/internal/deliver"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/rows/rowshttp"
	"github.com/livetree/livetree/internal/session"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// Options configure a Handler. Those up to Logger must be set.
type Options struct {
	// Credential is what requests must carry.
	Credential string
	Store      *store.Store
	Catalog    *catalog.Catalog
	// Requests is told of every request; Engine counts those of the databases.
	Requests *Requests
	Engine   *state.Metrics
	Now      func() time.Time
	Logger   *slog.Logger

	// Hosts are names by which the listener may be called beside localhost and
	// addresses; * stands for any.
	Hosts []string
	// Version is told by the metrics.
	Version string
	// Draining reports whether the server is stopping.
	Draining func() bool
	// Dev says that the server runs for trying out.
	Dev bool
	// Sessions are who is signed in; nil if nobody can.
	Sessions *session.Keeper
	// Front answers for the data of a database.
	Front *rest.Handler
	// Console answers below /console/, for everybody; nil for none. Label names the
	// server there.
	Console http.Handler
	Label   console.Label
	// MaxCopy is the largest node that is copied, in bytes of its text, and Writes the memory
	// that copies share with all that is written.
	MaxCopy int64
	Writes  *budget.Budget
	// Past opens a database as it was, until leave is called; nil if there is no archive.
	Past func(ctx context.Context, d *engine.Database, at time.Time) (was *engine.Database, leave func(), err error)
	// Older reads commits that the change log does not hold any more; nil if there is no archive.
	Older rows.Older
	// Cluster is that of which the server is a node; nil if it is none.
	Cluster Cluster
	// Hooks delivers for webhooks; nil if nothing does.
	Hooks *deliver.Runner
	// Audit is told what is done, Settings are shown, and DataURLs returns where the
	// data is served. CAFile is what clients have to trust, if that is a file of ours.
	Audit    *Audit
	Settings []Setting
	DataURLs func() []string
	CAFile   string
	// DefaultDatabase is that of a secret that is shown without one.
	DefaultDatabase string
	Actions
	Sources
}

// Actions are what the listener can do beside looking. One that is nil is
// answered 501.
type Actions struct {
	// Create makes a database and its secret, and returns the file that the
	// secret is in; a fault.Conflict error if there is one already.
	Create func(ctx context.Context, name string) (secretFile string, err error)
	// Drop removes a database and its secrets.
	Drop func(ctx context.Context, name string) error
	// SetSecrets replaces the secrets of a database, at once and for good; a
	// fault.NotFound error if it is not the one of that name any more.
	SetSecrets func(ctx context.Context, database *engine.Database, name string, secrets []string) error
	// Backup makes a backup in a directory of the server's machine. What it
	// returns is answered as JSON.
	Backup func(ctx context.Context, request BackupRequest) (any, error)
	// Verified notes that a backup was verified just now, of the store with an
	// epoch; a fault.Conflict error if that is another store.
	Verified func(epoch string) error
}

// Sources are where metrics come from that the server counts. Those that are
// nil count nothing.
type Sources struct {
	Streams      func() StreamStats
	Clients      func() ClientStats
	AuthFailures func() map[string]uint64 // by reason
	Rejected     func() map[string]uint64 // by reason, beside those that Requests sees
	Panics       func() uint64
	Scans        func() uint64    // long ones, for queries without an index
	BodyBytes    func() int64     // that all bodies take in memory
	LastBackup   func() time.Time // zero if there was none
	LastVerified func() time.Time // when one was verified, likewise
	OpenRequests func() int64
	Passed       func() PassedStats     // nil for a single server
	Archive      func() archiver.Status // nil if there is none
	HookStats    func() []deliver.Stat
}

// PassedStats count the clients of SDKs that a node of a cluster passes on to others.
type PassedStats struct {
	Open     int    // websockets
	Requests uint64 // ever, those for websockets among them
}

// StreamStats are what the streams count.
type StreamStats struct {
	Open, QueueBytes int64
	Events, Resyncs  uint64
	Closed           map[string]uint64 // by reason
	Lag              store.DurationCounts
}

// ClientStats are what the clients of the SDKs count.
type ClientStats struct {
	Open   int64
	Events uint64
	Closed map[string]uint64 // by reason
	SDKs   map[string]uint64 // how many have said which SDK they are
	// Kinds is how many are connected by their User-Agent, and Operations what they have
	// done, by name and by the same.
	Kinds      map[string]int64
	Operations map[string]map[string]uint64
}

// A Handler answers the operator's requests.
type Handler struct {
	opts     Options
	mux      *http.ServeMux
	registry *prometheus.Registry

	data  http.HandlerFunc // of the tree, whose paths are not for the mux
	rows  *rowshttp.Handlers
	door  *door
	gate  gate
	rules *ruleDesk
	hooks *hookDesk

	cluster *clusterDesk

	history *history

	secrets sync.Mutex // held while secrets are read and replaced
	backup  sync.Mutex // held while a backup is made
}

// New returns a handler.
func New(opts Options) *Handler {
	h := &Handler{opts: opts, mux: http.NewServeMux(), registry: prometheus.NewRegistry(), rows: newRows(opts)}
	h.gate = gate{&h.opts}
	h.door = &door{opts: &h.opts, fail: h.failWith, note: h.note, brake: session.NewBrake(), ended: h.rows.EndSession}
	h.history = newHistory(opts.Now, h.opts.count)
	h.hooks = &hookDesk{opts: &h.opts, note: h.audit}
	h.cluster = &clusterDesk{cluster: opts.Cluster, note: h.audit}
	h.rules = newRuleDesk(opts.Catalog, h.failWith)
	h.registry.MustRegister(newCollector(opts))
	opts.Requests.register(h.registry)
	h.mountPublic()
	for _, route := range h.routes() {
		if route.pattern == dataPattern {
			h.data = h.gate.guarded(route)
			continue
		}
		h.mux.HandleFunc(route.pattern, h.gate.guarded(route))
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !allowedHost(r.Host, h.opts.Hosts) {
		exchange.Fail(w, http.StatusMisdirectedRequest, "the admin listener is not called that: use its address or localhost")
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	x, began := exchange.New(w, r), h.opts.Now()
	defer func() { h.observe(x, r, began) }()
	if target, ok := dataTarget(r); ok {
		h.data(x, target)
		return
	}
	h.mux.ServeHTTP(x, r)
}

// Run samples what the server does until the context ends.
func (h *Handler) Run(ctx context.Context) { h.history.run(ctx) }

// HasConsole reports whether there is a console to sign in to.
func (h *Handler) HasConsole() bool { return h.opts.Console != nil && h.opts.Sessions != nil }

// Link returns a link to the console, at the URL of the listener, that signs the
// operator in once, soon.
func (h *Handler) Link(listener string) string { return h.door.link(listener).URL }

// observe counts a request of the console. Others on this listener are not counted: they
// are those who count.
func (h *Handler) observe(x *exchange.Exchange, r *http.Request, began time.Time) {
	if route, _ := x.Noted(); route != routeConsole {
		return
	}
	o := Operation{At: began, Took: h.opts.Now().Sub(began), Route: routeConsole, Verb: r.Method, Status: x.Status()}
	o.BytesIn, o.BytesOut = x.Bytes()
	h.opts.Requests.Observe(o)
}

// allowedHost reports whether a request may be for a host. A page in a browser
// can have its own name resolve to this machine (DNS rebinding), but cannot make
// the browser send another name, or an address, in the header Host.
func allowedHost(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") || net.ParseIP(host) != nil {
		return true
	}
	for _, name := range names {
		if name == "*" || name != "" && strings.EqualFold(host, name) {
			return true
		}
	}
	return false
}

// profile answers with the profiles of the runtime that have no handler of
// their own.
func (h *Handler) profile(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/cmdline") {
		notFound(w, r)
		return
	}
	pprof.Index(w, r)
}
