package server

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/livetree/livetree/internal/acmecert"
	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/dev"
	"github.com/livetree/livetree/internal/google"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/passon"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/wire"
)

// hosts returns what the names of hosts lead to.
func (c *Config) hosts() hosts.Hosts {
	return hosts.Hosts{DefaultDatabase: c.DefaultDatabase, Domain: c.Domain, HostMap: c.HostMap}
}

// messageShare is what the messages of SDKs may take beside all bodies: 1/4 as much.
const messageShare = 4

// newSDKFront returns the front of the SDKs. There is one for HTTPS and plain HTTP: a
// client may come back by the other.
func newSDKFront(c Config, f *founder, rates *rateLimiter, requests *admin.Requests) *wire.Front {
	opts := wire.Options{
		Catalog: f.Catalog,
		Logger:  c.Logger,
		Now:     time.Now,
		Hosts:   c.hosts(),
		Dev:     dev.Guard{On: c.Dev, Hosts: c.hosts(), Names: c.DevHosts, Origins: c.DevOrigins},
		Clients: c.clients,
		MaxBody: c.MaxBody,

		Patience:    c.patience,
		Postponed:   c.postponed,
		Tenures:     c.tenures,
		MaxMessages: c.MaxBodies / messageShare,
		Memory:      c.memory,
		Recorder:    sdkRecorder{c.operations, requests},
	}
	if c.AccessLog {
		opts.AccessLog = c.Logger
	}
	if rates.limit.PerSecond > 0 {
		opts.Rate = rates
	}
	if c.Dev {
		opts.Create = f.create
	}
	return wire.New(opts)
}

// newREST returns the HTTP front. There is one for all ports: what its requests may
// take in memory is counted once.
func newREST(c Config, f *founder, rulesSet func(ctx context.Context, database, by string), a *archiving) *rest.Handler {
	names := c.hosts()
	opts := rest.Options{
		Catalog: f.Catalog,
		Logger:  c.Logger,
		Now:     time.Now,
		Hosts:   names,
		Endpoint: google.New(google.Options{
			Catalog: f.Catalog, Hosts: names, Creates: c.Dev, Logger: c.Logger, Now: time.Now,
		}),
		Dev:        c.Dev,
		DevHosts:   c.DevHosts,
		DevOrigins: c.DevOrigins,
		MaxBody:    c.MaxBody,
		Memory:     c.memory,
		Streams:    c.clients,
		Operations: c.operations,
		Dialect:    c.Dialect,
		RulesSet:   rulesSet,
		Past:       a.open(),
		Reads:      c.reads(),
	}
	if c.Dev {
		opts.Create = f.create
	}
	return rest.New(opts)
}

// plainHandler returns the handler for plain HTTP, which is refused unless the
// operator allows it.
func plainHandler(c Config, front http.Handler) http.Handler {
	if !c.AllowHTTP {
		return http.HandlerFunc(rest.RefusePlainHTTP)
	}
	if !c.Dev { // with it nothing leaves this machine
		c.Logger.Warn("plain HTTP is served: credentials and data travel unprotected unless a proxy in front encrypts them")
	}
	return front
}

// fronts are what answers clients.
type fronts struct {
	rest    *rest.Handler
	serving *serving
	passing *passon.Passing // nil for a single server
	close   func()          // does nothing after a drain
}

// openFronts returns the fronts of a server. They do not listen yet.
func openFronts(c *Config, f *founder, operator *adminSide, archiving *archiving, tlsConfig *tls.Config, acme *acmecert.Certificates) fronts {
	c.clients = outbox.New(outbox.Options{
		MaxStreams: c.MaxStreams, MaxSockets: c.MaxClients, PerNetwork: c.MaxConnectionsPerAddress, KeepAlive: c.KeepAlive,
	})
	rates := newRateLimiter(c.RateLimit, time.Now)
	c.sdks = newSDKFront(*c, f, rates, operator.requests)
	front := newREST(*c, f, operator.rulesSet, archiving)
	passing, door := c.newPassing(f.Catalog)
	both := passing.Handler(c.sdks.Handler(front))
	return fronts{
		rest:    front,
		passing: passing,
		serving: newServing(servingOptions{
			secure:     rates.wrap(both),
			plain:      acme.Answering(c.HTTPAddr, rates.wrap(plainHandler(*c, both))),
			tls:        tlsConfig,
			logger:     c.Logger,
			limits:     c.serving(),
			proxies:    c.TrustedProxies,
			answers:    c.memory.Reads,
			observe:    c.observing(),
			noLane:     c.NoLane,
			supervisor: c.Supervisor,
			door:       door,
			passed:     c.sdks.Handler(front),
			endAll: func(ctx context.Context) {
				passing.Close()
				c.clients.Close(ctx)
			},
		}),
		close: func() {
			_ = door.Close()
			passing.Close()
			c.clients.Close(ended())
		},
	}
}
