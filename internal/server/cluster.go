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

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/engine"
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
	// Reads says how new what is read has to be where the request does not.
	Reads string
	// LogBytes is how large the log of the cluster may grow, Election how long a leader that is silent is waited for.
	LogBytes int64
	Election time.Duration
}

func (c Cluster) isOn() bool { return len(c.List) > 0 }

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
	if !c.isOn() {
		if c.Addr != "" || c.KeyFile != "" {
			return errors.New("--cluster, --cluster-addr and --cluster-key are given together, or none of them")
		}
		return nil
	}
	switch {
	case c.Addr == "" || c.KeyFile == "" && c.Key == "":
		return errors.New("--cluster, --cluster-addr and --cluster-key are given together, or none of them")
	case c.Reads != string(rest.Linearizable) && c.Reads != string(rest.Local):
		return fmt.Errorf("--reads is %q: it must be %s or %s", c.Reads, rest.Linearizable, rest.Local)
	case server.Archive.URL != "":
		return errors.New("--archive does not work with --cluster yet: take backups")
	case server.Dev:
		return errors.New("--dev does not work with --cluster")
	}
	return nil
}

// key reads the key of the cluster.
func (c Cluster) key() (peer.Key, error) {
	text := c.Key
	if text == "" {
		file, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return peer.Key{}, fmt.Errorf("--cluster-key: %w", err)
		}
		text = string(file)
	}
	key, err := peer.ParseKey(text)
	if err != nil {
		return peer.Key{}, fmt.Errorf("the key of the cluster: %w; livetree cluster key makes one", err)
	}
	return key, nil
}

// enterCluster makes the server a node of its cluster, if it is to be one. It returns nil if not.
func enterCluster(ctx context.Context, c Config) (*assembly.Assembly, error) {
	if !c.Cluster.isOn() {
		if _, err := os.Stat(filepath.Join(c.Data, membership.FileName)); err == nil {
			return nil, fmt.Errorf("%s is the directory of a node of a cluster: start it with --cluster, --cluster-addr and --cluster-key", c.Data)
		}
		return nil, nil
	}
	key, err := c.Cluster.key()
	if err != nil {
		return nil, err
	}
	c.Logger.Info("entering the cluster", "node", c.Cluster.Addr, "nodes", strings.Join(c.Cluster.List, ","), "key", key.Fingerprint())
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, err
	}
	return assembly.Enter(ctx, assembly.Options{
		Data: c.Data, List: c.Cluster.List, Addr: c.Cluster.Addr, Listen: c.Cluster.Listen, Key: key,
		Election: c.Cluster.Election, LogBytes: c.Cluster.LogBytes,
		Extra:   []string{"tls/" + authorityCert, "tls/" + authorityKey},
		Version: c.Version, Now: time.Now, Logger: c.Logger,
		Fatal: func(text string) {
			c.Logger.Error("the log of the cluster failed: stopping, so that nothing is acknowledged that is not stored; check the disk, then start again", "error", text, "exit", store.ExitIO)
			os.Exit(store.ExitIO)
		},
	})
}

// joinCluster has a node apply what the others have written.
func joinCluster(ctx context.Context, c Config, s *store.Store, databases *catalog.Catalog) error {
	if c.node == nil {
		return nil
	}
	if _, _, _, err := newTLS(c); err != nil { // nodes that join get the authority with their copy
		return err
	}
	c.Logger.Info("catching up with the cluster")
	if err := c.node.Start(ctx, s, databases); err != nil {
		return fmt.Errorf("catch up with the cluster: %w", err)
	}
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
		Hosts: c.hosts(), Catalog: databases, Now: time.Now, Logger: c.Logger,
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

// untilFailed returns a context that also ends when the node cannot go on, and what returns why.
func untilFailed(ctx context.Context, c Config) (context.Context, func() error) {
	if c.node == nil {
		return ctx, func() error { return nil }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case err := <-c.node.Failed():
			cancel(err)
		case <-ctx.Done():
		}
	}()
	parent := ctx
	return ctx, func() error {
		cancel(nil)
		if err := context.Cause(parent); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the node cannot go on: %w", err)
		}
		return nil
	}
}

// Defaults of a Cluster.
const (
	DefaultClusterLog      = assembly.DefaultLogBytes
	DefaultClusterElection = assembly.DefaultElection
)
