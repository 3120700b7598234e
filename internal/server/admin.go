package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/backup"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/loopback"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/passon"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/session"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/wholefile"
)

// DefaultAdminAddr is where the command has the admin listener.
const DefaultAdminAddr = admin.DefaultAddr

// An adminSide is the operator's side of a server: the admin listener, and what
// is counted for it. Without a listener it counts for nobody.
type adminSide struct {
	listener *admin.Listener // nil if it is off, or not open yet
	requests *admin.Requests
	metrics  *state.Metrics
	memory   *budget.Memory
	handler  *admin.Handler // nil if there is no listener
	urls     atomic.Pointer[[]string]
}

// openAdmin opens the admin listener, if there is to be one, and has requests
// observed for it. A load balancer can see from here on that the server is alive
// and not ready. A listener with TLS has to wait for the certificate, which is in
// the data directory.
func openAdmin(c *Config) (*adminSide, error) {
	c.memory = budget.NewMemory(c.MaxBodies)
	a := &adminSide{requests: admin.NewRequests(), metrics: &state.Metrics{}, memory: c.memory}
	if c.AdminAddr == "" {
		return a, nil
	}
	c.Observers = append(c.Observers[:len(c.Observers):len(c.Observers)], a.observe)
	if !loopback.Address(c.AdminAddr) {
		return a, nil
	}
	return a, a.listen(*c, nil)
}

// listen opens the listener. It speaks HTTP/1.1 alone: its bounds count connections, of
// which each has one request at a time.
func (a *adminSide) listen(c Config, certificates *tls.Config) (err error) {
	if certificates != nil {
		certificates = certificates.Clone()
		certificates.NextProtos = slices.DeleteFunc(slices.Clone(certificates.NextProtos), func(name string) bool { return name == "h2" })
	}
	a.listener, err = admin.Listen(admin.ListenerOptions{
		Addr:   c.AdminAddr,
		Logger: c.Logger,
		TLS:    certificates,
		Hosts:  adminHosts(c.AdminAddr),
	})
	return err
}

// adminHosts are the names of the admin listener: that which it listens on, and
// the machine's. One with TLS may be called anything: a browser holds the name
// against the certificate.
func adminHosts(addr string) []string {
	if !loopback.Address(addr) {
		return []string{"*"}
	}
	host, _, _ := net.SplitHostPort(addr)
	machine, _ := os.Hostname()
	return []string{host, machine}
}

// adminNames are what a certificate must cover beside the names of the main
// port.
func adminNames(addr string) []string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "" || loopback.Host(host) || net.ParseIP(host).IsUnspecified() {
		return nil
	}
	return []string{host}
}

// smallAnswer is up to how many bytes a read tells how busy the server is.
const smallAnswer = 64 << 10

// observe counts a request.
func (a *adminSide) observe(o Observation) {
	if o.Route == rest.RouteData && o.Method == http.MethodGet && o.BytesOut <= smallAnswer && !o.Aborted {
		a.metrics.Foreground.Observe(pause.Read, o.Start.Add(o.Duration), o.Duration)
	}
	a.requests.Observe(admin.Operation{
		At:       o.Start,
		Took:     o.Duration,
		Route:    o.Route,
		Verb:     o.Method,
		Status:   o.Status,
		Database: o.Database,
		Path:     strings.TrimSuffix(o.Path, ".json"),
		BytesIn:  o.BytesIn,
		BytesOut: o.BytesOut,
	})
}

// adminParts are the parts of a server that the listener tells of.
type adminParts struct {
	Config
	store    *store.Store
	founder  *founder
	verifier *auth.Verifier
	serving  *serving
	front    *rest.Handler
	budget   *hub.Budget // for what streams have not taken yet
	scans    *scan.Pool
	caFile   string // from the root on, or empty

	archiving *archiving
	hooks     *hookRunner
	passing   *passon.Passing // nil for a single server
}

// absolute returns the name of a file from the root on, for those who work elsewhere.
func absolute(name string) string {
	if whole, err := filepath.Abs(name); err == nil && name != "" {
		return whole
	}
	return name
}

// serve lets the listener answer everything. The context ends when the server
// begins to drain.
func (a *adminSide) serve(ctx context.Context, parts adminParts) error {
	if parts.AdminAddr == "" {
		return nil
	}
	if a.listener == nil {
		if err := a.listen(parts.Config, parts.serving.options.tls); err != nil {
			return err
		}
	}
	dir := filepath.Join(parts.Data, admin.Dir)
	credential, err := admin.LoadCredential(dir)
	if err != nil {
		return fmt.Errorf("the credential of the admin listener: %w", err)
	}
	page, err := parts.Console.handler()
	if err != nil {
		return err
	}
	sessions, err := session.Open(session.Options{Credential: credential, File: filepath.Join(dir, endedFile), Now: time.Now})
	if err != nil {
		return err
	}
	a.handler = admin.New(admin.Options{
		Cluster:    parts.clusterOf(),
		Credential: credential,
		Sessions:   sessions,
		Front:      parts.front,
		Console:    page,
		Label:      parts.Console.Label,

		DefaultDatabase: parts.DefaultDatabase,
		MaxCopy:         parts.MaxBody,
		Writes:          a.memory.Writes,
		Hooks:           parts.hooks.Runner,
		Past:            parts.archiving.open(),
		Older:           parts.archiving.older(parts.store.Epoch()),

		Store:    parts.store,
		Catalog:  parts.founder.Catalog,
		Requests: a.requests,
		Engine:   a.metrics,
		Now:      time.Now,
		Logger:   parts.Logger,
		Hosts:    adminHosts(parts.AdminAddr),
		Version:  parts.Version,
		Draining: func() bool { return ctx.Err() != nil },
		Dev:      parts.Dev,
		Actions:  parts.actions(dir, &a.metrics.Foreground),
		Sources:  a.sources(parts, dir),
		Audit:    admin.NewAudit(filepath.Join(dir, auditFile)),
		Settings: parts.Settings,
		DataURLs: a.dataURLs,
		CAFile:   parts.caFile,
	})
	return a.listener.Serve(a.handler, dir)
}

func (p adminParts) actions(dir string, foreground *pause.Foreground) admin.Actions {
	return admin.Actions{
		Create:     p.founder.createNew,
		Drop:       p.founder.drop,
		SetSecrets: p.founder.replaceSecrets,
		Backup: func(ctx context.Context, request admin.BackupRequest) (any, error) {
			if err := p.catchUp(ctx); err != nil { // a backup has all that was acknowledged before, at whatever node
				return nil, err
			}
			manifest, err := backup.Take(ctx, p.store, p.Data, request.Target,
				backup.Options{Version: p.Version, Logger: p.Logger, AuthorityKey: request.AuthorityKey, Foreground: foreground})
			if err == nil {
				err = wholefile.Write(filepath.Join(dir, backupFile), 0o600, []byte(request.Target+"\n"))
			}
			return manifest, err
		},
		Verified: func(epoch string) error {
			if own := backup.FormatEpoch(p.store.Epoch()); epoch != own {
				return fault.New(fault.Conflict, "that backup is not of this server: its epoch is %.20q, that of the server %q", epoch, own)
			}
			return wholefile.Write(filepath.Join(dir, verifiedFile), 0o600, []byte(epoch+"\n"))
		},
	}
}

// auditFile has what was done, and by whom.
const auditFile = "audit.jsonl"

// endedFile has the sessions that were ended before their time.
const endedFile = "ended-sessions.json"

// backupFile tells by its time when the newest backup was made, and verifiedFile
// when one was last verified.
const (
	backupFile   = "last-backup"
	verifiedFile = "last-verified"
)

// modified returns when a file was written, zero if there is none.
func modified(name string) time.Time {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (a *adminSide) sources(parts adminParts, dir string) admin.Sources {
	return admin.Sources{
		Streams: func() admin.StreamStats { return a.streamStats(parts) },
		Clients: func() admin.ClientStats { return clientStats(parts) },
		Rejected: func() map[string]uint64 {
			open := parts.serving.connections
			return map[string]uint64{"connections": open.full.Load(), "address": open.overShare.Load(), "idle": open.shed.Load(),
				"resets": parts.serving.resets.cuts.Load()}
		},
		AuthFailures: parts.verifier.Failures,
		Panics:       parts.serving.guard.panics.Load,
		Scans:        parts.scans.Passes,
		BodyBytes:    a.memory.Bytes,
		OpenRequests: parts.serving.guard.running.Count,
		Passed:       passedStats(parts.passing),
		Archive:      parts.archiving.status(),
		HookStats:    parts.hooks.Stats,
		LastBackup:   func() time.Time { return modified(filepath.Join(dir, backupFile)) },
		LastVerified: func() time.Time { return modified(filepath.Join(dir, verifiedFile)) },
	}
}

// passedStats returns what counts the clients that are passed on; nil for a single server.
func passedStats(p *passon.Passing) func() admin.PassedStats {
	if p == nil {
		return nil
	}
	return func() admin.PassedStats {
		open, requests := p.Stats()
		return admin.PassedStats{Open: open, Requests: requests}
	}
}

// streamStats are what the streams count.
func (a *adminSide) streamStats(p adminParts) admin.StreamStats {
	stats := p.clients.Stats(outbox.Stream)
	return admin.StreamStats{
		Open: int64(stats.Open), QueueBytes: p.budget.Used(), Closed: closedOf(stats),
		Events: stats.Events, Resyncs: a.metrics.Resyncs.Load(), Lag: stats.Lag,
	}
}

// clientStats are what the clients of the SDKs count.
func clientStats(p adminParts) admin.ClientStats {
	stats := p.clients.Stats(outbox.Socket)
	return admin.ClientStats{Open: int64(stats.Open), Events: stats.Events, Closed: closedOf(stats), SDKs: p.sdks.SDKs(),
		Kinds: p.sdks.Kinds(), Operations: p.sdks.Operations()}
}

// closedOf returns how many clients have ended, by reason.
func closedOf(stats outbox.Stats) map[string]uint64 {
	closed := make(map[string]uint64, len(stats.Closed))
	for reason, n := range stats.Closed {
		closed[reason] = uint64(n)
	}
	return closed
}

// close ends the listener. The store may be closed afterwards, unless the error
// is errHandlersRunning.
func (a *adminSide) close() error {
	err := a.listener.Close()
	if errors.Is(err, admin.ErrRunning) {
		return errors.Join(errHandlersRunning, err)
	}
	return err
}
