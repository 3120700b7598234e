package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
)

// This file takes nodes out of a cluster: any of them by its address, or this one, which then knows of its directory that it has left.

// judgeRemoval returns the id of a node's member, or why it must not be removed: what is left would have no majority of nodes that are up.
func judgeRemoval(peers []etcdlog.Peer, up []string, node string) (id uint64, err error) {
	voters, upVoters := 0, 0
	for _, p := range peers {
		switch {
		case p.Address == node:
			id = p.ID
		case p.Voter:
			voters++
			if slices.Contains(up, p.Address) {
				upVoters++
			}
		}
	}
	switch {
	case id == 0:
		return 0, fmt.Errorf("%s %w", node, ErrNoNode)
	case voters == 0:
		return 0, fmt.Errorf("%s is the last node of the cluster: to make it a single server, stop it and start it without the flags of the cluster", node)
	case upVoters < voters/2+1:
		return 0, fmt.Errorf("without %s, %d of %d nodes would be up, which is no majority: start the others first", node, upVoters, voters)
	}
	return id, nil
}

// Removable returns the id of a node's member, or why it must not be removed now.
func Removable(ctx context.Context, m *Membership, node string) (id uint64, err error) {
	peers, err := m.Log().Peers(ctx)
	switch {
	case err != nil && (strings.Contains(err.Error(), "timed out") || strings.Contains(err.Error(), "no leader")): // etcd has a type for each way here
		return 0, fmt.Errorf("no majority of the nodes is reached, and without one none can be taken out: start those that are down (%w)", err)
	case err != nil:
		return 0, fmt.Errorf("the members are not known: %w", err)
	}
	m.setPeers(peers)
	return judgeRemoval(peers, upNodes(m), node)
}

// Remove removes a node from the cluster, alive or dead. It refuses what would leave no majority of nodes that are up.
func (m *Membership) Remove(ctx context.Context, node string) error {
	id, err := Removable(ctx, m, node)
	if err != nil {
		return err
	}
	if err := m.Log().Remove(ctx, id); err != nil {
		return fmt.Errorf("remove %s: %w", node, err)
	}
	m.o.Logger.Info("a node was removed", "node", node)
	return nil
}

// Leave removes this node from its cluster, and notes in its directory that it has left. It may be called again after an error.
func Leave(ctx context.Context, m *Membership) error {
	id, err := Removable(ctx, m, m.o.Front.Addr())
	switch {
	case errors.Is(err, ErrNoNode) || errors.Is(m.failure(), ErrRemoved): // by an earlier call
	case err != nil:
		return err
	default:
		if err := m.Log().Remove(ctx, id); err != nil && !wasRemoved(ctx, m) {
			return fmt.Errorf("remove this node: %w", err)
		}
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	f := fileOf(m)
	f.Left = true
	return m.writeFile(f)
}

// removedTime is how long etcd may take to say that its member was removed.
const removedTime = 3 * time.Second

// wasRemoved says whether this node was removed after all: its etcd may have ended before it answered.
func wasRemoved(ctx context.Context, m *Membership) bool {
	ctx, cancel := context.WithTimeout(ctx, removedTime)
	defer cancel()
	select {
	case <-m.etcd.Done():
	case <-ctx.Done():
	}
	return errors.Is(m.failure(), ErrRemoved)
}

// CheckLeft returns an error if a data directory is that of a node that has left its cluster: it says what may be done with it.
func CheckLeft(data string) error {
	f, err := readFile(data)
	if err == nil && f.Left {
		err = leftError(data, f)
	}
	return err
}

func leftError(data string, f file) error {
	return fmt.Errorf("%w: %s is the directory of the node %s, which has left the cluster %s: to join again, move it away and start with an empty one",
		ErrRefused, data, f.Node, f.Cluster)
}

// RemovedError says of the data directory of a node that the cluster has removed it, and what may be done with it.
func RemovedError(data string) error {
	f, err := readFile(data)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s is the directory of the node %s, which was removed from the cluster %s, and has nothing that was written since: take the directory of a node that was not removed; "+
		"to have this node join again, start it with an empty directory", ErrRefused, data, f.Node, f.Cluster)
}
