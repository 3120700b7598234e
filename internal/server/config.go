package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/acmecert"
	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/clientaddr"
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/loopback"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/supervisor"
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
	// Terminal says that a person starts the server, who may see a link that signs in and
	// is given the line Try to paste.
	Console  Console
	Settings []admin.Setting
	Terminal bool
	Try      string
	// Version is told to the operator.
	Version string
	// TLSCert and TLSKey are PEM files; without them a certificate is made.
	TLSCert, TLSKey string
	// ACME gets certificates for public names.
	ACME acmecert.Config

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
	// CacheBytes is the size of the cache of blocks, rows and answers. By default it and MaxBodies are parts of the memory
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

	// Supervisor is who started the process. It may have opened the ports: then Addr and HTTPAddr are
	// those of its sockets.
	Supervisor *supervisor.Supervisor

	// Logger is told what happens. Out gets the lines that people and scripts
	// wait for.
	Logger *slog.Logger
	Out    io.Writer
	// Abort, when it is closed, ends a drain that is under way. What clients have left to be
	// written is then written at the next start.
	Abort <-chan struct{}
	// ClockOffset is by how much the server's clock is ahead of the machine's. It is for drills.
	ClockOffset time.Duration
	// Disturb, if set, gives the store a disk or a clock that fails. Only tests do.
	Disturb func(*store.Options)

	node      *assembly.Assembly      // nil for a single server
	bound     *atomic.Pointer[string] // where the last start of a node has listened
	metrics   *cluster.Metrics        // of the node, over all of its starts
	others    *atomic.Int64           // how many other nodes were well when this one could not go on
	tenures   *catalog.Tenures        // nil for a single server
	memory    *budget.Memory          // that all fronts share
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
	if err := checkData(c.Data); err != nil {
		return err
	}
	if min(c.CacheBytes, c.MaxBody, c.MaxBodies, c.Scrub.BytesPerSecond, int64(c.Scrub.Every)) < 0 {
		return errors.New("a limit for bodies, the cache or the scrub cannot be negative")
	}
	if err := c.Limits.check(); err != nil {
		return err
	}
	if err := c.ACME.Check(c.TLSCert); err != nil {
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
	h, guard := c.hosts(), dev.Guard{Names: c.DevHosts, Origins: c.DevOrigins}
	if err := h.Check(); err != nil {
		return err
	}
	if err := guard.CheckNames(); err != nil || !c.Dev {
		return err
	}
	for _, addr := range []string{c.Addr, c.HTTPAddr, c.AdminAddr} {
		if addr != "" && !loopback.Address(addr) {
			return fmt.Errorf("--dev gives everybody access and works on this machine only: listen on 127.0.0.1 instead of %s, or leave --dev out", addr)
		}
	}
	return nil
}

// checkData refuses what cannot be a data directory. It need not be there.
func checkData(data string) error {
	if data == "" { // which is the working directory to some of what comes later, and nothing to the rest
		return errors.New("--data is empty: name a directory")
	}
	if info, err := os.Stat(data); err == nil && !info.IsDir() {
		return fmt.Errorf("--data %s is not a directory: name one", data)
	}
	if _, err := os.ReadDir(data); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("--data %s: %w: run the server as the user that owns it", data, err)
	}
	return nil
}

// now is the time by the server's clock. What is measured, and the deadlines of connections, go by the machine's.
func (c *Config) now() time.Time { return time.Now().Add(c.ClockOffset) }

func mapValues(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for _, v := range m {
		list = append(list, v)
	}
	return list
}
