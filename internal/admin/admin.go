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
//     reaches the port and show names and states only; all else needs the
//     credential.
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
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/exchange"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// maxBodyBytes bounds the body of a request.
const maxBodyBytes = 64 << 10

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
	// Console answers below /console/, for everybody; nil for none.
	Console http.Handler
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
}

// A Handler answers the operator's requests.
type Handler struct {
	opts     Options
	mux      *http.ServeMux
	registry *prometheus.Registry

	secrets sync.Mutex // held while secrets are read and replaced
	backup  sync.Mutex // held while a backup is made
}

// New returns a handler.
func New(opts Options) *Handler {
	h := &Handler{opts: opts, mux: http.NewServeMux(), registry: prometheus.NewRegistry()}
	h.registry.MustRegister(newCollector(opts))
	opts.Requests.register(h.registry)
	h.mux.HandleFunc("GET /livez", livez)
	h.mux.HandleFunc("GET /readyz", h.readyz)
	h.mountConsole()
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET /metrics":                              promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{}).ServeHTTP,
		"GET /v1/databases":                         h.listDatabases,
		"POST /v1/databases":                        h.createDatabase,
		"GET /v1/databases/{name}":                  h.showDatabase,
		"DELETE /v1/databases/{name}":               h.dropDatabase,
		"GET /v1/databases/{name}/secrets":          h.listSecrets,
		"POST /v1/databases/{name}/secrets":         h.addSecret,
		"DELETE /v1/databases/{name}/secrets/{id}":  h.removeSecret,
		"GET /v1/databases/{name}/accounts":         h.listAccounts,
		"POST /v1/databases/{name}/accounts":        h.addAccount,
		"DELETE /v1/databases/{name}/accounts/{id}": h.revokeAccount,
		"POST /v1/backup":                           h.makeBackup,
		"POST /v1/verified":                         h.noteVerified,
		"GET /v1/operations":                        streaming(h.operations),
		"GET /v1/status":                            h.status,
		// Not /debug/pprof/cmdline, which shows the arguments of the process.
		"GET /debug/pprof/":        h.profile,
		"GET /debug/pprof/profile": streaming(pprof.Profile),
		"GET /debug/pprof/symbol":  pprof.Symbol,
		"GET /debug/pprof/trace":   streaming(pprof.Trace),
		"/":                        notFound,
	} {
		h.mux.HandleFunc(pattern, h.withCredential(handler))
	}
	return h
}

// mountConsole has the page answered, which holds nothing of the server and is for
// everybody who reaches it.
func (h *Handler) mountConsole() {
	if h.opts.Console == nil {
		h.mux.HandleFunc("/console/", func(w http.ResponseWriter, _ *http.Request) {
			exchange.Fail(w, http.StatusNotFound, "this server has no console")
		})
		return
	}
	h.mux.Handle("/console/", h.opts.Console)
	h.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/console/", http.StatusSeeOther)
	})
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !allowedHost(r.Host, h.opts.Hosts) {
		exchange.Fail(w, http.StatusMisdirectedRequest, "the admin listener is not called that: use its address or localhost")
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
	h.mux.ServeHTTP(w, r)
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
