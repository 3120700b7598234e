package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/store"
)

// This file has a node of a cluster whose data is damaged, or is not that of the log, begin again with a copy of
// another node's. What it had is kept aside.

const (
	// damagedDir is where data that was damaged is kept, until the next repair.
	damagedDir = "store.damaged"
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
	if c.node == nil || ctx.Err() != nil || !errors.Is(err, cluster.ErrBroken) && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	aside := filepath.Join(c.Data, damagedDir)
	if info, statErr := os.Stat(aside); statErr == nil && time.Since(info.ModTime()) < repairEvery {
		c.Logger.Error("the data of this node is damaged again within an hour: check its disk; then remove the directory that was set aside, and start again", "aside", aside, "error", err)
		return err
	}
	if c.others.Load() == 0 && c.node.OthersWell(ctx) == 0 {
		c.Logger.Error("the data of this node is damaged, and no other node is well that could give it a copy: start the others first", "error", err)
		return err
	}
	c.leaveCluster()
	if asideErr := store.SetAside(c.Data, aside, time.Now()); asideErr != nil {
		return errors.Join(err, asideErr)
	}
	c.Logger.Error("the data of this node is damaged: it is set aside, and a copy is fetched from another node", "aside", aside, "error", err)
	return errRepair
}
