package acmecert

import (
	"context"
	"errors"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// A Cluster is what the nodes share certificates by.
type Cluster struct {
	Notes Notes
	// IsHome says that this node is the one that orders.
	IsHome func() bool
	// Look is how often a node looks whether there is another certificate, 10 s.
	Look time.Duration
	Now  func() time.Time
}

// sharedLook is how often a node looks at what it has itself of the notes.
const sharedLook = 10 * time.Second

// Share has the certificates be those of a cluster. It is called before all else.
func (c *Certificates) Share(cluster Cluster) {
	if c == nil {
		return
	}
	cache := Cache{Notes: cluster.Notes, Authority: c.authority}
	c.manager.Cache = cache
	c.look = sharedLook
	if cluster.Look > 0 {
		c.look = cluster.Look
	}
	c.keeper = &keeper{
		cache: cache, files: c.files, isHome: cluster.IsHome, manager: c.newManager, http: func() bool { return c.http }, now: cluster.Now,
	}
}

// keepShared has the certificate of the cluster for a domain until ctx ends, and orders it if this node is the one that does.
func (c *Certificates) keepShared(ctx context.Context, domain string) {
	retry, next := c.firstPause, time.Time{}
	for ctx.Err() == nil {
		order := !c.keeper.now().Before(next)
		cert, err := c.keeper.certificate(ctx, domain, order)
		if ctx.Err() != nil {
			return
		}
		if cert != nil {
			c.show(domain, cert)
		}
		switch {
		case err == nil && order:
			retry = c.firstPause
		case err != nil && !errors.Is(err, errNone) && c.keeper.isHome():
			c.complain(domain, err, retry)
			next = c.keeper.now().Add(retry)
			retry = min(2*retry, longestPause)
		}
		_ = pause.For(ctx, c.look)
	}
}
