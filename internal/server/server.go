// Package server builds a Livetree server from a Config, runs it, and stops it
// in order.
//
// Run reads from top to bottom as the server comes up: the store, the databases,
// the certificates, the ports. It comes down the other way round: no new
// connections, the requests that are running, the databases, the store.
package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/loopback"
	"github.com/livetree/livetree/internal/machine"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/owneronly"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
	"github.com/livetree/livetree/internal/wire"
)

// Defaults of a Config.
const (
	DefaultAddr      = "127.0.0.1:9000"
	DefaultMaxBody   = 256 << 20
	DefaultMaxBodies = 512 << 20
	// DefaultScrubEvery and DefaultScrubRate are those of the command.
	DefaultScrubEvery = 7 * 24 * time.Hour
	DefaultScrubRate  = 5 << 20
)

// A Config is all that a server can be told. Fields that are zero get their
// defaults, but for Data, Logger and Out, which must be set.
type Config struct {
	// Data is the data directory.
	Data string
	// Addr is where HTTPS is served; HTTPAddr, if not empty, a second port for
	// plain HTTP, which is answered 404 unless AllowHTTP is set.
	Addr, HTTPAddr string
	AllowHTTP      bool
	// AdminAddr is where the admin listener is; empty for none. It has TLS unless
	// only programs on this machine can reach it.
	AdminAddr string
	// Console is the web console on the admin listener. Settings are shown there, and
	// Terminal says that a person starts the server, who may see a link that signs in.
	Console  Console
	Settings []admin.Setting
	Terminal bool
	// Version is told to the operator.
	Version string
	// TLSCert and TLSKey are PEM files; without them a certificate is made.
	TLSCert, TLSKey string
	// ACME gets certificates for public names.
	ACME ACME

	// DefaultDatabase is made if it is missing; empty for none. Domain and
	// HostMap name databases by the host of a request.
	DefaultDatabase string
	Domain          string
	HostMap         map[string]string
	// Secret becomes the app secret of the default database when it is made;
	// without it one is generated.
	Secret string

	// TrustedProxies are proxies in front of the server: their connections are not
	// limited by their address, and X-Forwarded-For says which client a request of theirs
	// comes from.
	TrustedProxies clientaddr.Proxies

	// Dialect is that of databases that have none of their own; spec by default.
	Dialect string

	// Issuers are identity providers whose tokens are accepted.
	Issuers []auth.Issuer

	// Dev is for trying out, on this machine only. DevHosts and DevOrigins are names
	// of the server, and origins of web pages, that it then also answers to.
	Dev                  bool
	DevHosts, DevOrigins []string
	// MaxBody and MaxBodies bound the size of one body and the memory of all.
	MaxBody, MaxBodies int64
	// CacheBytes is the size of the block cache. By default it and MaxBodies are parts of the memory
	// that the process may use.
	CacheBytes int64
	// Scrub says how the tables are read again in the background; not at all by
	// default.
	Scrub store.Scrub
	// Cluster says which cluster the server is a node of; none by default.
	Cluster Cluster
	// Archive is where every commit goes; nowhere by default. Hooks say how webhooks deliver.
	Archive Archive
	Hooks   Hooks
	Limits

	// NoLane leaves all of HTTP to net/http.
	NoLane bool
	// AccessLog logs every request. Observers are told of it, too.
	AccessLog bool
	Observers []Observer

	// Logger is told what happens. Out gets the lines that people and scripts
	// wait for.
	Logger *slog.Logger
	Out    io.Writer
	// Abort, when it is closed, ends a drain that is under way. What clients have left to be
	// written is then written at the next start.
	Abort <-chan struct{}
	// Disturb, if set, gives the store a disk or a clock that fails. Only tests do.
	Disturb func(*store.Options)

	node      *assembly.Assembly // nil for a single server
	tenures   *catalog.Tenures   // nil for a single server
	memory    *budget.Memory     // that all fronts share
	clients   *outbox.Clients
	sdks      *wire.Front
	postponed *catalog.Postponed
	patience  context.Context // ends with Abort
	// operations are told to those who profile a database.
	operations *rest.Operations
}

// check fills in defaults and refuses what cannot be run.
func (c *Config) check() error {
	setDefault(&c.Addr, DefaultAddr)
	if min(c.CacheBytes, c.MaxBody, c.MaxBodies, c.Scrub.BytesPerSecond, int64(c.Scrub.Every)) < 0 {
		return errors.New("a limit for bodies, the cache or the scrub cannot be negative")
	}
	if err := c.Limits.check(); err != nil {
		return err
	}
	if err := c.ACME.check(c); err != nil {
		return err
	}
	if err := c.Cluster.check(c); err != nil {
		return err
	}
	setDefault(&c.Dialect, rest.SpecDialect)
	if !rest.KnowsDialect(c.Dialect) {
		return fmt.Errorf("there is no dialect %q: choose %s or %s", c.Dialect, rest.SpecDialect, rest.FirebaseDialect)
	}
	for _, name := range append([]string{c.DefaultDatabase}, mapValues(c.HostMap)...) {
		if name == "" {
			continue
		}
		if err := catalog.CheckName(name); err != nil {
			return err
		}
	}
	if !c.Dev {
		return nil
	}
	for _, addr := range []string{c.Addr, c.HTTPAddr, c.AdminAddr} {
		if addr != "" && !loopback.Address(addr) {
			return fmt.Errorf("--dev gives everybody access and works on this machine only: listen on 127.0.0.1 instead of %s, or leave --dev out", addr)
		}
	}
	return nil
}

func mapValues(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// Run serves until ctx ends, and then stops: what was accepted is answered,
// committed and flushed before it returns.
func Run(ctx context.Context, c Config) error {
	if err := c.check(); err != nil {
		return err
	}
	memory := machine.Memory()
	c.shareMemory(memory)
	limitMemory(c, memory)
	keepPrivate(c)
	operator, err := openAdmin(&c)
	if err != nil {
		return err
	}
	if c.node, err = enterCluster(ctx, c); err != nil {
		return errors.Join(err, operator.close())
	}
	defer c.leaveCluster()
	tables, connections := shareFiles(c.OpenFiles, c.MaxConnections)
	options := store.Options{
		Logger: c.Logger, CacheBytes: c.CacheBytes, MaxTables: tables, LogKeep: c.LogKeep, Scrub: c.Scrub, Replicated: c.node != nil,
	}
	if c.Disturb != nil {
		c.Disturb(&options)
	}
	s, err := store.Open(c.Data, options)
	if err != nil {
		return errors.Join(err, operator.close())
	}
	tellMemory(c, memory)
	tellFiles(c.Logger, c.OpenFiles, c.MaxConnections, connections)
	c.MaxConnections = connections
	err = errors.Join(runStore(ctx, c, s, operator), operator.close())
	if errors.Is(err, errHandlersRunning) {
		return err // the store is in use; the next start replays its log
	}
	return errors.Join(err, s.Close())
}

// keepPrivate takes from others what they may do in the data directory: secrets are
// in every file of the store. It does not keep the server from starting, which may
// not own what an operator has put there.
func keepPrivate(c Config) {
	loose, err := owneronly.Tighten(c.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return // it is made, for its owner alone
	}
	if err != nil {
		c.Logger.Warn("the data directory is not for its owner alone, and that cannot be changed: run chmod -R go-rwx on it as its owner", "data", c.Data, "error", err)
	} else if len(loose) > 0 && !slices.Equal(loose, []string{"."}) { // one that is empty held nothing
		c.Logger.Warn("others could read the data directory: its files are for their owner alone now; if others use this machine, replace the secrets", "data", c.Data, "files", len(loose))
	}
}

// runStore is Run with the store open.
func runStore(ctx context.Context, c Config, s *store.Store, operator *adminSide) error {
	archiving, err := newArchiving(ctx, c, s)
	if err != nil {
		return err
	}
	defer archiving.start()() // when the databases are closed: it sends the last of their commits
	clock := state.NewClock(time.Now, rand.Reader, s.LastMillis())
	verifier, err := newVerifier(c, s)
	if err != nil {
		return err
	}
	log, err := c.clusterLog(s)
	if err != nil {
		return err
	}
	streamBudget := watch.NewBudget(debug.SetMemoryLimit(-1) / streamShare)
	scans := scan.NewPool(scan.DefaultBounds())
	databases, triggers, err := openDatabases(&c, s, operator, engine.Options{
		Clock: clock, Verifier: verifier, Metrics: operator.metrics, Streams: streamBudget, Scans: scans, Log: log})
	if err != nil {
		return err
	}
	defer c.leaveCluster() // it applies to the store
	defer databases.Close()
	if err := joinCluster(ctx, c, s, databases); err != nil {
		return err
	}
	ctx, whyEnded := untilFailed(ctx, c)
	defer triggers.expirer.Close()
	patience, cancel := newPatience(c.Abort)
	defer cancel()
	c.patience = patience
	c.postponed = catalog.NewPostponed(c.Logger, &operator.metrics.LeftWaiting, c.tenures)
	defer c.postponed.Close()
	defer c.tenures.Close()
	f := &founder{Catalog: databases, secretsDir: filepath.Join(c.Data, "secrets"), open: c.Dev}
	if err := f.foundAll(ctx, c); err != nil {
		return err
	}
	keeping, stopKeeping := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { watchClock(keeping, clock, clockTolerance, c.Logger) })
	if c.node == nil { // an old file on another node would bring back what was revoked
		keeper.Go(func() { newSecretKeeper(f, c.Logger).run(keeping) })
	}
	keeper.Go(func() { triggers.hooks.Run(keeping) })
	defer keeper.Wait()
	defer stopKeeping()
	tlsConfig, caFile, acme, err := newTLS(c)
	if err != nil {
		return err
	}
	c.clients = outbox.New(outbox.Options{MaxStreams: c.MaxStreams, MaxSockets: c.MaxClients, KeepAlive: c.KeepAlive})
	defer c.clients.Close(ended()) // does nothing after a drain
	rates := newRateLimiter(c.RateLimit, time.Now)
	c.sdks = newSDKFront(c, f, rates, operator.requests)
	front := newREST(c, f, operator.rulesSet, archiving)
	passing, door := c.newPassing(databases)
	defer passing.Close()
	defer door.Close()
	both := passing.Handler(c.sdks.Handler(front))
	serving := newServing(servingOptions{
		secure:  rates.wrap(both),
		plain:   acme.answering(c.HTTPAddr, rates.wrap(plainHandler(c, both))),
		tls:     tlsConfig,
		logger:  c.Logger,
		limits:  c.serving(),
		proxies: c.TrustedProxies,
		observe: c.observing(),
		noLane:  c.NoLane,
		door:    door,
		passed:  c.sdks.Handler(front),
		endAll: func(ctx context.Context) {
			passing.Close()
			c.clients.Close(ctx)
		},
	})
	if err := operator.serve(ctx, adminParts{c, s, f, verifier, serving, front, streamBudget, scans, absolute(caFile), archiving, triggers.hooks, passing}); err != nil {
		return err
	}
	c.runLeft(ctx, databases)
	triggers.expirer.Start(databases, databases.Due)
	// The authority asks back, so the ports have to be open.
	listening := func() {
		operator.listening(serving.addr())
		keeper.Go(func() { acme.run(keeping) })
		keeper.Go(func() { operator.run(keeping) })
	}
	err = runServing(ctx, c, serving, announcement{c, caFile, f, operator.consoleLine(c)}, listening)
	return errors.Join(err, whyEnded())
}

// newVerifier returns what tells whose a credential is.
func newVerifier(c Config, s *store.Store) (*auth.Verifier, error) {
	accessKey, err := auth.AccessKey(s.ETagKey())
	if err != nil {
		return nil, err
	}
	return auth.New(auth.Options{Now: time.Now, Issuers: c.Issuers, Logger: c.Logger, AccessKey: accessKey})
}

// newTLS returns how TLS is spoken, the file that clients have to trust, and the
// certificates that somebody has to keep.
func newTLS(c Config) (*tls.Config, string, *acmeCertificates, error) {
	machine, _ := os.Hostname() // only one of the names in the certificate
	names := certificateNames(c.Addr, c.Domain, machine)
	names.needed = append(names.needed, adminNames(c.AdminAddr)...)
	names.needed = append(names.needed, c.Cluster.hosts()...)
	certs, err := newCertificates(filepath.Join(c.Data, "tls"), certFiles{c.TLSCert, c.TLSKey}, names, time.Now, c.Logger)
	if err != nil {
		return nil, "", nil, err
	}
	acme, err := newACME(c.ACME, filepath.Join(c.Data, "acme"), c.Version, c.Logger)
	if err != nil {
		return nil, "", nil, err
	}
	config := certs.tlsConfig()
	acme.join(config)
	return config, certs.caFile(), acme, nil
}

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// foundDefault makes the default database.
func (f *founder) foundDefault(ctx context.Context, c Config) error {
	if c.DefaultDatabase == "" {
		return nil
	}
	if err := f.checkSecret(c); err != nil {
		return err
	}
	database, err := f.found(ctx, c.DefaultDatabase, c.Secret)
	if err != nil {
		return fmt.Errorf("open the database %s in %s: %w", c.DefaultDatabase, c.Data, err)
	}
	if database.IsOpen() && !c.Dev {
		c.Logger.Warn("the rules let everybody read and write everything", "database", c.DefaultDatabase)
	}
	if database.HasWeakSecret() {
		c.Logger.Warn("a secret is short enough to be guessed: replace it by livetree secret add and remove", "database", c.DefaultDatabase)
	}
	if c.Secret != "" && !database.HasSecret(c.Secret) {
		c.Logger.Warn("LIVETREE_SECRET is not used: it counts when the database is made, and this one has other secrets; livetree secret add and remove change them", "database", c.DefaultDatabase)
	}
	return nil
}

// checkSecret refuses a secret that is not fit for a new database. One that the
// database has already is from an older version, and works on.
func (f *founder) checkSecret(c Config) error {
	if c.Secret == "" {
		return nil
	}
	err := auth.CheckSecret(c.Secret)
	if err == nil {
		return nil
	}
	if database, openErr := f.Database(c.DefaultDatabase); openErr == nil && database.HasSecret(c.Secret) {
		return nil
	}
	return fmt.Errorf("LIVETREE_SECRET is %w; leave it out to have one drawn", err)
}

// runServing serves until ctx ends, and drains. It calls listening when it serves.
func runServing(ctx context.Context, c Config, serving *serving, ready announcement, listening func()) error {
	if err := serving.listen(c.Addr, c.HTTPAddr); err != nil {
		serving.close()
		return err
	}
	serving.serve()
	forget := noteAddress(c, serving.addr())
	if err := ready.print(serving.addr()); err != nil {
		serving.close()
		return err
	}
	listening()
	<-ctx.Done()
	forget()
	if c.node != nil {
		c.node.HandOver(c.patience)
	}
	c.Logger.Info("stopping: requests that are running are answered first")
	return serving.drain(c.patience)
}

// newPatience returns a context that ends when nothing is to be waited for any more, and what ends
// its goroutine.
func newPatience(abort <-chan struct{}) (context.Context, context.CancelFunc) {
	patience, cancel := context.WithCancel(context.Background())
	if abort != nil {
		go func() {
			select {
			case <-abort:
				cancel()
			case <-patience.Done():
			}
		}()
	}
	return patience, cancel
}
