package assembly

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/fulldisk"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
)

// ErrNotAlone says that a data directory is that of one of several nodes.
var ErrNotAlone = errors.New("other nodes have the same databases")

const (
	// leftDir is where etcd's files are kept aside.
	leftDir = "etcd.left"
	// aloneTime is how long the last node of a cluster may take to become its leader.
	aloneTime = 15 * time.Second
	// alonePause is how often it is asked meanwhile.
	alonePause = 100 * time.Millisecond
)

// BecomeSingle makes the data directory of the last node of a cluster that of a single server: it applies the log to its end, and sets
// etcd's files aside. It fails with ErrNotAlone, and changes nothing, if the cluster has other nodes. Nobody may have the directory open.
func BecomeSingle(ctx context.Context, data string, now func() time.Time, logger *slog.Logger) error {
	return becomeSingle(ctx, data, false, now, logger)
}

// Recover is BecomeSingle for when a majority of the nodes is lost for good: what those have acknowledged without this node having
// it is lost. The store gets another epoch, as a restored one does.
func Recover(ctx context.Context, data string, now func() time.Time, logger *slog.Logger) error {
	return becomeSingle(ctx, data, true, now, logger)
}

// checkUnused returns store.ErrInUse if another process has a data directory open. etcd would wait for it without end.
func checkUnused(data string) error {
	lock, err := store.LockDirectory(data, store.Options{})
	if errors.Is(err, store.ErrForeign) {
		return nil // it has no store
	}
	if err != nil {
		return err
	}
	return lock.Close()
}

func becomeSingle(ctx context.Context, data string, force bool, now func() time.Time, logger *slog.Logger) error {
	if err := CheckLevel(data); err != nil {
		return err
	}
	if err := checkUnused(data); err != nil {
		return err
	}
	if etcdlog.WasRemoved(membership.LogDir(data)) {
		return membership.RemovedError(data)
	}
	if !membership.HasLog(data) {
		return withoutLog(data, force, logger)
	}
	fatal := func(text string) { logger.Error("the log of the cluster failed", "error", text) }
	member, err := etcdlog.Start(etcdlog.Options{
		Dir: membership.LogDir(data), Peer: "127.0.0.1:1", Listen: "127.0.0.1:0", Members: []string{"127.0.0.1:1"}, Alone: force, Fatal: fatal, Log: logger,
	})
	if err != nil {
		return err
	}
	defer member.Stop()
	leading, cancel := context.WithTimeout(ctx, aloneTime)
	defer cancel()
	peers, err := member.Peers(leading)
	for isPassing(err) && pause.For(leading, alonePause) == nil { // it is about to lead itself
		peers, err = member.Peers(leading)
	}
	switch {
	case err != nil && finds(member, etcdlog.ErrRemoved):
		return membership.RemovedError(data) // the log tells only now
	case err != nil:
		return fmt.Errorf("%w: its log does not answer alone: %w", ErrNotAlone, err)
	case len(peers) != 1:
		return fmt.Errorf("%w: the cluster has %d nodes", ErrNotAlone, len(peers))
	}
	if err := applyAll(ctx, data, member, now, logger); err != nil {
		return err
	}
	member.Stop()
	return endCluster(data, force, logger)
}

// withoutLog is becomeSingle for a directory without a log: that was set aside, or the node has fetched a copy and was not taken in yet. What it has is in its
// store, and others may have more. Where no cluster was founded yet there are no others.
func withoutLog(data string, force bool, logger *slog.Logger) error {
	founding, err := membership.IsFounding(data)
	if err != nil {
		return err
	}
	if founding {
		return endCluster(data, force, logger)
	}
	if !force {
		return fmt.Errorf("%w: it waits to join them, and has no log of its own", ErrNotAlone)
	}
	if _, err := os.Stat(filepath.Join(data, layout.PebbleDir)); err != nil {
		return fmt.Errorf("%s has neither a store nor a log: take the directory of another node: %w", data, err)
	}
	s, err := store.Open(data, store.Options{Logger: logger, Replicated: true})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil { // it has all that it will have
		return err
	}
	return endCluster(data, force, logger)
}

// endCluster makes a data directory that of no node, after its store has got another epoch if something may be lost: who is stopped in between tries again, and clients never
// go on from what is not there any more.
func endCluster(data string, force bool, logger *slog.Logger) error {
	if force {
		if err := store.RenewEpoch(data, store.Options{Logger: logger}); err != nil {
			return err
		}
	}
	return leaveCluster(data)
}

// leaveCluster makes a data directory that of no node: the log of which all was applied, if there is one, is set aside.
func leaveCluster(data string) error {
	if err := fulldisk.RemoveBallast(data); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(data, leftDir)); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(data, membership.FileName)); err != nil {
		return err
	}
	err := os.Rename(membership.LogDir(data), filepath.Join(data, leftDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// finds says whether a member has ended by itself for a reason. It may notice a little after its calls fail.
func finds(member etcdlog.Member, reason error) bool {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case err := <-member.Failed():
		return errors.Is(err, reason)
	case <-late.C:
		return false
	}
}

// applyAll applies the log of a node to its end.
func applyAll(ctx context.Context, data string, member etcdlog.Member, now func() time.Time, logger *slog.Logger) error {
	s, err := store.Open(data, store.Options{Logger: logger, Replicated: true})
	if err != nil {
		return err
	}
	d, err := databases.New(databases.Options{Store: s, Logger: logger})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	c := catalog.New(s, engine.Options{Clock: state.NewClock(now, rand.Reader, s.LastMillis()), Log: d})
	node := cluster.New(cluster.Options{ID: record.NodeID(member.ID()), Log: member, Applier: d, Now: now, Became: d.Became, Logger: logger})
	d.Bind(node, c)
	running, end := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end(node.Run(running)) // nobody waits for what it cannot apply
	}()
	for n := range shard.Count {
		if err = node.Barrier(running, n); err != nil {
			break
		}
	}
	end(nil)
	<-ended
	c.Close()
	return errors.Join(err, s.Close())
}
