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
	"errors"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/machine"
	"github.com/livetree/livetree/internal/owneronly"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/supervisor"
	"github.com/livetree/livetree/internal/watch"
)

// Run serves until ctx ends, and then stops: what was accepted is answered,
// committed and flushed before it returns.
func Run(ctx context.Context, c Config) error {
	if err := errors.Join(c.Supervisor.UseSocket(supervisor.Addr, &c.Addr), c.Supervisor.UseSocket(supervisor.HTTPAddr, &c.HTTPAddr), c.check()); err != nil {
		return err
	}
	if err := assembly.CheckLevel(c.Data); err != nil {
		return err
	}
	defer c.Supervisor.KeepWatch()()
	memory := machine.Memory()
	c.shareMemory(memory)
	limitMemory(c, memory)
	keepPrivate(c)
	if c.ClockOffset != 0 {
		c.Logger.Warn("the clock of this server is shifted: that is for drills", "by", c.ClockOffset.String())
	}
	c.bound, c.metrics = new(atomic.Pointer[string]), new(cluster.Metrics)
	for {
		if addr := c.bound.Load(); addr != nil {
			c.Addr = *addr // clients know it
		}
		err := runOnce(ctx, c, memory)
		if !errors.Is(err, errRepair) && !endedFull(err) || ctx.Err() != nil {
			return err
		}
		if errors.Is(err, errRepair) {
			c.metrics.Repairs.Add(1)
		}
	}
}

// maxSpread is how many times the memory that a large write takes its rows may take on disk: they have the keys of all nodes above
// them, each, and each index has one for every child.
const maxSpread = 64

// runOnce is Run until a node of a cluster has to begin again with a copy of its data.
func runOnce(ctx context.Context, c Config, memory int64) error {
	c.others = new(atomic.Int64)
	operator, err := openAdmin(&c)
	if err != nil {
		return err
	}
	if c.node, err = enterCluster(ctx, &c, operator); err != nil {
		return errors.Join(err, operator.close())
	}
	defer c.leaveCluster()
	tables, connections := shareFiles(c.OpenFiles, c.MaxConnections)
	options := store.Options{
		Logger: c.Logger, CacheBytes: c.CacheBytes, MaxTables: tables, LogKeep: c.LogKeep, Scrub: c.Scrub, Replicated: c.node != nil, Now: c.now,
		Foreground: &operator.metrics.Foreground, Spread: maxSpread,
	}
	if c.node != nil {
		options.Fatal = c.endNode
	}
	if c.Disturb != nil {
		c.Disturb(&options)
	}
	s, err := store.Open(c.Data, options)
	if err != nil {
		return errors.Join(c.repaired(ctx, err), operator.close())
	}
	tellMemory(c, memory)
	tellFiles(c.Logger, c.OpenFiles, c.MaxConnections, connections)
	c.MaxConnections = connections
	err = errors.Join(runStore(ctx, c, s, operator), operator.close())
	if errors.Is(err, errHandlersRunning) {
		return err // the store is in use; the next start replays its log
	}
	return c.repaired(ctx, errors.Join(err, s.Close()))
}

// keepPrivate takes from others what they may do in the data directory: secrets are
// in every file of the store. It does not keep the server from starting, which may
// not own what an operator has put there. A directory of somebody else, which is refused
// later, stays as it is.
func keepPrivate(c Config) {
	if foreign, err := datadir.IsForeign(c.Data); foreign || err != nil {
		return
	}
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
	defer c.leaveCluster() // it applies to the store
	archiving, err := newArchiving(ctx, c, s)
	if err != nil {
		return err
	}
	defer archiving.stop() // when the databases are closed: it sends the last of their commits
	clock := state.NewClock(c.now, rand.Reader, s.LastMillis())
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
	defer databases.Close()
	if err := joinCluster(ctx, c, s, databases, archiving); err != nil {
		return err
	}
	ctx, whyEnded := untilFailed(ctx, c, s)
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
	fronts := openFronts(&c, f, operator, archiving, tlsConfig, acme)
	defer fronts.close()
	serving, front := fronts.serving, fronts.rest
	if err := operator.serve(ctx, adminParts{c, s, f, verifier, serving, front, streamBudget, scans, absolute(caFile), archiving, triggers.hooks, fronts.passing}); err != nil {
		return err
	}
	c.runLeft(ctx, databases)
	triggers.expirer.Start(databases, databases.Due)
	// The authority asks back, so the ports have to be open.
	listening := func() {
		operator.listening(serving.addr())
		c.tellNodes(serving.addr())
		keeper.Go(func() { acme.Run(keeping) })
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
	return auth.New(auth.Options{Now: c.now, Issuers: c.Issuers, Logger: c.Logger, AccessKey: accessKey})
}

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
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
	c.Supervisor.Ready("serving https://"+serving.addr().String(), serving.probe)
	<-ctx.Done()
	c.Supervisor.Stopping("answering the requests that are running")
	forget()
	ready.stopping()
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
