//go:build unix

package trust_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestClusterEmptyDisk removes all that a node has, under load. It comes back by itself, as a voter; then another node is
// killed.
func TestClusterEmptyDisk(t *testing.T) {
	count := drill(t, 2)
	l := newClusterLoop(t, startCluster(t), seed(t), 3)
	for i := range count {
		victim := l.rng.IntN(3)
		if err := l.round(l.empty(victim)); err != nil {
			t.Fatalf("round %d, node %d is emptied: %v", i, victim+1, err)
		}
		if err := l.awaitReady(); err != nil {
			t.Fatalf("round %d, node %d was emptied: %v", i, victim+1, err)
		}
		if err := l.round(l.kill((victim + 1) % 3)); err != nil {
			t.Fatalf("round %d, after node %d was emptied: %v", i, victim+1, err)
		}
	}
	l.report(t, "clusteremptydisk")
}

// empty returns the accident that a node loses its directory.
func (l *clusterLoop) empty(victim int) accident {
	return func() (int, error) {
		p := l.cluster.nodes[victim]
		p.kill()
		if err := os.RemoveAll(p.dir); err != nil {
			return victim, err
		}
		if err := l.await(100); err != nil {
			return victim, fmt.Errorf("with node %d down: %w", victim+1, err)
		}
		return victim, l.start(p)
	}
}

// awaitReady returns when all nodes are ready and vote.
func (l *clusterLoop) awaitReady() error {
	deadline := time.Now().Add(patience / 3)
	for {
		if l.isFrail {
			if err := l.startGone(); err != nil {
				return err
			}
		}
		s, err := l.cluster.status(0)
		isReady := err == nil && s.Quorum && len(s.Nodes) == len(l.cluster.nodes)
		for _, n := range s.Nodes {
			isReady = isReady && n.State == "ready" && n.Voter
		}
		switch {
		case isReady:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the nodes are not ready after %v: %w %+v, problems %q", patience/3, err, s.Nodes, s.Problems)
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // real processes
	}
}

// standstill is how long a node stands still.
const standstill = 4 * time.Second

// TestClusterPause has nodes stand still under load, one or two of them in turn, and go on. Nothing that they show then is
// old.
func TestClusterPause(t *testing.T) {
	count := drill(t, 2)
	l := newClusterLoop(t, startCluster(t), seed(t), 3)
	for i := range count {
		home, err := l.cluster.home()
		if err != nil {
			t.Fatal(err)
		}
		still := []int{home}
		if i%2 == 1 {
			still = append(still, (home+1)%3)
		}
		if err := l.round(l.stand(still)); err != nil {
			t.Fatalf("round %d, nodes %v stand still: %v", i, still, err)
		}
	}
	l.report(t, "clusterpause")
}

// stand returns the accident that nodes stand still, one after the other.
func (l *clusterLoop) stand(still []int) accident {
	return func() (int, error) {
		for _, node := range still {
			p := l.cluster.nodes[node]
			if err := p.signal(syscall.SIGSTOP); err != nil {
				return node, err
			}
			time.Sleep(standstill) //nolint:forbidigo // real processes
			if err := p.signal(syscall.SIGCONT); err != nil {
				return node, err
			}
		}
		return noNode, nil
	}
}
