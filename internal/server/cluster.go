package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/cluster/doctor"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/owneronly"
	"github.com/livetree/livetree/internal/passon"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/store"
)

// This file makes a server a node of a cluster. Without a list of nodes nothing of it runs.

// A Cluster says which cluster the server is a node of; of none if List is empty.
type Cluster struct {
	// List are the addresses of its nodes, Addr that of this one, and Listen where it listens if that differs.
	List         []string
	Addr, Listen string
	// KeyFile has the key of the cluster, unless Key is it.
	KeyFile, Key string
	// JoinFile has an invitation to the cluster, unless Invitation is it: instead of List and the key.
	JoinFile, Invitation string
	// Reads says how new what is read has to be where the request does not.
	Reads string
	// LogBytes is how large the log of the cluster may grow, Election how long a leader that is silent is waited for.
	LogBytes int64
	Election time.Duration
}

func (c Cluster) isOn() bool { return len(c.List) > 0 || c.isInvited() }

// isInvited says that the server gets the list and the key from the cluster.
func (c Cluster) isInvited() bool { return c.JoinFile != "" || c.Invitation != "" }

// hosts are the names or addresses of the nodes. The certificate of each has all of them: the authority that makes
// it is the same on all nodes.
func (c Cluster) hosts() (hosts []string) {
	for _, addr := range c.List {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// check refuses what cannot be run.
func (c Cluster) check(server *Config) error {
	if (c.Reads != "" || c.isOn()) && c.Reads != string(rest.Linearizable) && c.Reads != string(rest.Local) {
		return fmt.Errorf("--reads is %q: it must be %s or %s", c.Reads, rest.Linearizable, rest.Local)
	}
	if !c.isOn() {
		if c.Addr != "" || c.KeyFile != "" {
			return errors.New("--cluster, --cluster-addr and --cluster-key are given together, or none of them")
		}
		return nil
	}
	if err := assembly.Available(); err != nil {
		return err
	}
	switch {
	case c.isInvited() && (len(c.List) > 0 || c.KeyFile != "" || c.Key != ""):
		return errors.New("--cluster-join is given instead of --cluster and --cluster-key: leave those out")
	case c.isInvited() && c.Addr == "":
		return errors.New("--cluster-join needs --cluster-addr: the address by which the other nodes reach this one")
	case c.isInvited():
	case c.Addr == "" || c.KeyFile == "" && c.Key == "":
		return errors.New("--cluster, --cluster-addr and --cluster-key are given together, or none of them")
	}
	if server.Dev {
		return errors.New("--dev does not work with --cluster")
	}
	return assembly.CheckAddrs(append([]string{c.Addr}, c.List...))
}

// key reads the key of the cluster.
func (c Cluster) key() (peer.Key, error) {
	key, err := peer.ReadKey(c.Key, c.KeyFile)
	if err != nil {
		return peer.Key{}, fmt.Errorf("--cluster-key: %w", err)
	}
	return key, nil
}

// enterCluster makes the server a node of its cluster, if it is to be one. It returns nil if not.
func enterCluster(ctx context.Context, c *Config, operator *adminSide) (*assembly.Assembly, error) {
	if !c.Cluster.isOn() {
		return nil, becomeSingle(ctx, *c)
	}
	key, err := c.clusterKey(ctx)
	if err != nil {
		return nil, err
	}
	if c.Cluster.Key == "" && owneronly.IsForAll(c.Cluster.KeyFile) {
		c.Logger.Warn("all users of this machine can read the key of the cluster, and whoever has it is a node: run chmod 600 on the file; if others use this machine, change the key", "file", c.Cluster.KeyFile)
	}
	c.Logger.Info("entering the cluster", "node", c.Cluster.Addr, "nodes", strings.Join(c.Cluster.List, ","), "key", key.Fingerprint())
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, err
	}
	values := make(map[string]string, len(c.Settings))
	for _, s := range c.Settings {
		values[s.Name] = s.Value
	}
	o := assembly.Options{
		Data: c.Data, List: c.Cluster.List, Addr: c.Cluster.Addr, Listen: c.Cluster.Listen, Key: key,
		Election: c.Cluster.Election, LogBytes: c.Cluster.LogBytes,
		Extra:   func() []string { return assembly.FirstWhole(c.Data, authorityFiles) },
		Version: c.Version, Settings: values, Metrics: c.metrics, Now: c.now, Logger: c.Logger,
		KeyFile: c.Cluster.KeyFile, CheckRate: c.Scrub.BytesPerSecond, Certificates: func() []doctor.Certificate { return shownCertificates(*c) },
		Fatal: func(text string) {
			c.Logger.Error("the log of the cluster failed: stopping, so that nothing is acknowledged that is not stored; check the disk, then start again", "error", text, "exit", store.ExitIO)
			c.endNode(store.ExitIO)
		},
	}
	if err := awaitSpace(ctx, *c, operator, o); err != nil {
		return nil, err
	}
	return assembly.Enter(ctx, o)
}

// clusterKey returns the key of the cluster. A server that was invited gets it, and the list of nodes, from the cluster.
func (c *Config) clusterKey(ctx context.Context) (key peer.Key, err error) {
	if !c.Cluster.isInvited() {
		return c.Cluster.key()
	}
	key, c.Cluster.List, err = assembly.Guest{
		Data: c.Data, Addr: c.Cluster.Addr, Code: c.Cluster.Invitation, CodeFile: c.Cluster.JoinFile, Now: time.Now, Logger: c.Logger,
	}.Join(ctx)
	return key, err
}

// becomeSingle makes the directory of the last node of a cluster that of a single server. It does nothing for any other.
func becomeSingle(ctx context.Context, c Config) error {
	if !membership.IsNode(c.Data) {
		return nil
	}
	if err := membership.CheckLeft(c.Data); err != nil {
		return err
	}
	c.Logger.Info("the data directory is that of a node of a cluster: looking whether it is the last one")
	err := assembly.BecomeSingle(ctx, c.Data, c.now, c.Logger)
	if errors.Is(err, assembly.ErrNotAlone) {
		return fmt.Errorf("%s is the directory of a node of a cluster: start it with --cluster, --cluster-addr and --cluster-key, or remove the other nodes first (%w)", c.Data, err)
	}
	if err != nil {
		return fmt.Errorf("make %s that of a single server: %w", c.Data, err)
	}
	c.Logger.Info("the last node of a cluster is a single server from now on")
	return nil
}

// authorityFiles are the files that nodes which join need to be trusted by the clients of this one: the authority, which signs a certificate for
// each. One without its key, as it is in a backup, cannot: then all nodes get the certificate that it has signed before. If there is none, they make an
// authority of their own.
var authorityFiles = [][]string{
	{"tls/" + authorityCert, "tls/" + authorityKey},
	{"tls/" + authorityCert, "tls/" + serverCert, "tls/" + serverKey},
}

// joinCluster has a node apply what the others have written. From then on what is committed is archived.
func joinCluster(ctx context.Context, c Config, s *store.Store, databases *catalog.Catalog, archiving *archiving) error {
	if c.node == nil {
		archiving.start()
		return nil
	}
	if _, _, _, err := newTLS(c); err != nil { // nodes that join get the authority with their copy
		return err
	}
	c.Logger.Info("catching up with the cluster")
	if err := c.node.Start(ctx, s, databases); err != nil {
		c.others.Store(int64(c.node.OthersWell(ctx)))
		return fmt.Errorf("catch up with the cluster: %w", err)
	}
	archiving.start()
	return nil
}

// leaveCluster ends the node. It may be called twice.
func (c *Config) leaveCluster() {
	if c.node != nil {
		c.node.Close()
	}
}

// clusterLog has the databases of a store agree with the other nodes, if there are some.
func (c *Config) clusterLog(s *store.Store) (engine.Log, error) {
	if c.node == nil {
		return nil, nil
	}
	c.tenures = catalog.NewTenures(c.node.Tenure)
	return c.node.Log(s, func(shard int, _ bool) { c.tenures.Changed(shard) })
}

// runLeft writes what connections have left, before clients are let in: those of the former process, or those of the former homes of
// databases that have their home here.
func (c *Config) runLeft(ctx context.Context, databases *catalog.Catalog) {
	if c.node == nil {
		databases.RunLeft(ctx, c.Logger, c.postponed)
		return
	}
	c.tenures.Start(shard.Count, func(ctx context.Context, shard int) {
		databases.RunLeftOf(ctx, shard, c.Logger, c.postponed)
	})
}

// newPassing returns what passes sessions of SDKs on to the homes of their databases, and the door for those that others pass
// on; nil for a single server.
func (c *Config) newPassing(databases *catalog.Catalog) (*passon.Passing, *passon.Door) {
	if c.node == nil {
		return nil, nil
	}
	door := passon.NewDoor()
	c.node.HandleConn(passon.Kind, door.Take)
	return passon.New(passon.Options{
		Hosts: c.hosts(), Catalog: databases, Answers: c.memory.Reads, Now: time.Now, Logger: c.Logger,
		Dial: func(ctx context.Context, d *engine.Database, body []byte) (net.Conn, error) {
			return c.node.DialHome(ctx, store.ShardOf(engine.IDOf(d)), passon.Kind, body)
		},
	}), door
}

// foundPause is how often a node looks whether another has founded the default database.
const foundPause = 100 * time.Millisecond

// foundShared makes the default database of a cluster: one node does, and the others wait until it has.
func (f *founder) foundShared(ctx context.Context, c Config) error {
	for {
		database, err := f.Database(c.DefaultDatabase)
		if err == nil && database.HasSecrets() {
			return nil
		}
		if c.node.IsHome() {
			return f.foundDefault(ctx, c)
		}
		if err := pause.For(ctx, foundPause); err != nil {
			return err
		}
	}
}

// foundAll makes the default database, if there is to be one.
func (f *founder) foundAll(ctx context.Context, c Config) error {
	if c.node == nil || c.DefaultDatabase == "" {
		return f.foundDefault(ctx, c)
	}
	return f.foundShared(ctx, c)
}

// reads returns how new what is read has to be; nothing for a single server.
func (c *Config) reads() rest.Consistency {
	if c.node == nil {
		return ""
	}
	return rest.Consistency(c.Cluster.Reads)
}

// untilFailed returns a context that also ends when the node cannot go on, or its data is damaged, and what returns why.
func untilFailed(ctx context.Context, c Config, data *store.Store) (context.Context, func() error) {
	if c.node == nil {
		return ctx, func() error { return nil }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		look := time.NewTicker(damageLook)
		defer look.Stop()
		for {
			select {
			case err := <-c.node.Failed():
				c.others.Store(int64(c.node.OthersWell(ctx)))
				cancel(err)
			case <-c.node.LeaveAsked():
				cancel(assembly.ErrLeaving)
				return
			case <-look.C:
				err := data.Damage()
				if err == nil {
					err = c.node.Broken()
				}
				if err != nil {
					c.others.Store(int64(c.node.OthersWell(ctx)))
					cancel(fmt.Errorf("%w: %w", errDamage, err))
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() error {
		err := context.Cause(ctx)
		cancel(nil)
		if errors.Is(err, assembly.ErrLeaving) {
			return c.node.FinishLeave(context.WithoutCancel(ctx))
		}
		if err == nil || errors.Is(err, context.Canceled) {
			return nil
		}
		return fmt.Errorf("the node cannot go on: %w", err)
	}
}

// Defaults of a Cluster.
const (
	DefaultClusterLog      = assembly.DefaultLogBytes
	DefaultClusterElection = assembly.DefaultElection
)

// catchUp returns when this server has all that was acknowledged before the call.
func (c *Config) catchUp(ctx context.Context) error {
	if c.node == nil {
		return nil
	}
	if err := c.node.CaughtUp(ctx); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the nodes do not agree at present, try again")
	}
	return nil
}

// tellNodes says where this node serves clients.
func (c *Config) tellNodes(addr net.Addr) {
	if c.node != nil {
		text := addr.String()
		c.bound.Store(&text)
		c.node.SetAddr(text)
	}
}

// clusterOf returns what the admin listener tells of the cluster; nil for a single server.
func (c *Config) clusterOf() admin.Cluster {
	if c.node == nil {
		return nil
	}
	return c.node
}

// shownCertificates are those that clients are shown. One that is not kept in files, or cannot be read, is missing.
func shownCertificates(c Config) (all []doctor.Certificate) {
	files := certFiles{c.TLSCert, c.TLSKey}
	if files.cert == "" {
		files = certFiles{filepath.Join(c.Data, "tls", serverCert), filepath.Join(c.Data, "tls", serverKey)}
	}
	if pair, err := readPair(files.cert, files.key); err == nil {
		all = append(all, doctor.Certificate{Name: files.cert, Ends: pair.Leaf.NotAfter})
	}
	return all
}
