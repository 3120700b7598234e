package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/cluster/fulldisk"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/store"
)

// This file has a node of a cluster begin again in the same process: whose data is damaged, or is not that of the log, with a copy of
// another node's, and whose disk was full, when there is space. Data that was damaged is kept aside.

const (
	// damagedDir is where data that was damaged is kept, until the next repair, behindDir data that is only too old.
	damagedDir = "store.damaged"
	behindDir  = "store.behind"
	// repairEvery is how often a node repairs itself. A disk that damages data more often is not to be trusted.
	repairEvery = time.Hour
	// damageLook is how often a node looks whether damage was met.
	damageLook = time.Second
)

// errRepair says that the node is to begin again.
var errRepair = errors.New("the data of this node was set aside")

// errDamage says that the store has met damage.
var errDamage = fmt.Errorf("%w: the store has met damage", cluster.ErrBroken)

// repaired sets the data of a node aside if an error says that it is damaged, and others have it. Then it returns errRepair, and
// else the error.
func (c *Config) repaired(ctx context.Context, err error) error {
	if c.node != nil && ctx.Err() == nil && errors.Is(err, membership.ErrLogCorrupt) {
		return c.logSetAside(err)
	}
	if c.node == nil || ctx.Err() != nil || !errors.Is(err, cluster.ErrBroken) && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	aside, isAgain := asideFor(c.Data, err)
	if isAgain {
		c.Logger.Error("the data of this node is damaged again within an hour: check its disk; then remove the directory that was set aside, and start again", "aside", aside, "error", err)
		return err
	}
	if c.others.Load() == 0 && c.node.OthersWell(ctx) == 0 {
		c.Logger.Error("this node cannot go on with its data, and no other node is well that could give it a copy: start the others first", "error", err)
		return err
	}
	c.leaveCluster()
	if asideErr := store.SetAside(c.Data, aside, time.Now()); asideErr != nil {
		return errors.Join(err, asideErr)
	}
	if isBehind(err) {
		c.Logger.Warn("this node was away, or took its last copy, for longer than the log is kept: its data is set aside, and a copy is fetched from another node; if this comes again and again, give all nodes more --cluster-log",
			"aside", aside, "error", err)
	} else {
		c.Logger.Error("the data of this node is damaged: it is set aside, and a copy is fetched from another node", "aside", aside, "error", err)
	}
	return errRepair
}

// isBehind reports whether a node has ended only because the log was trimmed beyond its data.
func isBehind(err error) bool {
	return errors.Is(err, shard.ErrTrimmed) && !errors.Is(err, store.ErrDamaged)
}

// asideFor returns where the data of a node is set aside that has ended with an error, and whether it was damaged not long ago: then its disk is not to be trusted. A node
// that was away for too long may be so again at any time.
func asideFor(data string, err error) (aside string, isAgain bool) {
	if isBehind(err) {
		return filepath.Join(data, behindDir), false
	}
	aside = filepath.Join(data, damagedDir)
	info, statErr := os.Stat(aside)
	return aside, statErr == nil && time.Since(info.ModTime()) < repairEvery
}

// logSetAside sets the log of a node aside, so that the node joins as another member with the store that it has. Then it returns errRepair.
func (c *Config) logSetAside(err error) error {
	c.leaveCluster()
	aside, asideErr := membership.SetCorruptAside(c.Data)
	if asideErr != nil {
		return errors.Join(err, asideErr)
	}
	c.Logger.Error("the log of this node was corrupt: it is set aside, and the node joins again; check its disk and its memory", "aside", aside)
	return errRepair
}

// endedFull says that a node has ended because its disk is full, and may start again.
func endedFull(err error) bool {
	return errors.Is(err, fulldisk.ErrFull) && !errors.Is(err, errHandlersRunning)
}

// awaitSpace returns when the disk of a node has space for it.
func awaitSpace(ctx context.Context, c Config, operator *adminSide, o assembly.Options) error {
	return fulldisk.Await(ctx, fulldisk.Options{
		Data: c.Data, Gauge: fulldisk.DiskOf(c.Data), Addr: c.Addr, Now: time.Now, Logger: c.Logger,
		TLS: func() (*tls.Config, error) { config, _, _, err := newTLS(c); return config, err },
		Waiting: func() func() {
			operator.listener.Wait(adminHosts(c.AdminAddr), filepath.Join(c.Data, admin.Dir), admin.Check{Name: "cluster", State: "full", Result: "fail"})
			return assembly.TellFull(o)
		},
	})
}

// endNode ends the process of a node whose disk did not take a write. If it is full, the process begins again and waits for space.
func (c *Config) endNode(code int) {
	fulldisk.End(c.Data, fulldisk.DiskOf(c.Data), code, c.Logger)
}
