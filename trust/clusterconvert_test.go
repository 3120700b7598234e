//go:build unix

package trust_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/proof"
)

// TestClusterConvert makes three nodes out of one server under load, one server out of them, and three nodes again. Nothing that was
// acknowledged is lost. Positions stay: a stream of the first server goes on by its last id through all of it, with no event missed, and is sent everything once.
func TestClusterConvert(t *testing.T) {
	count := drill(t, 1)
	for range count {
		v := newConversion(t)
		for _, convert := range []func() (int, error){v.toThree, v.toOne, v.toThree} {
			if err := v.round(convert); err != nil {
				t.Fatal(err)
			}
		}
		v.spread(t)
		if err := v.awaitReady(); err != nil {
			t.Fatal(err)
		}
		if err := v.round(v.kill(1)); err != nil {
			t.Fatal(err)
		}
		v.diary.end()
		for _, s := range v.diary.streams {
			if err := s.judge(v.diary.last); err != nil {
				t.Error(err)
			}
		}
		v.report(t, "clusterconvert")
		figures.Report(t, "clusterconvertstreams", proof.Count("events", v.diary.last), proof.Count("moves", v.diary.moves()), proof.Count("most_away_ms", millis(v.away, 1)))
	}
}

// A conversion is a server that becomes a cluster, and back. All clients use that server until spread.
type conversion struct {
	*clusterLoop
	three *cluster // the server is the first node
	diary *clusterDiary

	alone, joined []string        // flags of the server by itself, and as a node
	away          []time.Duration // from when it was asked to end until it served again
}

func newConversion(t *testing.T) *conversion {
	t.Helper()
	c := &cluster{addrs: freeaddr.List(t, 3), sight: &sightings{}}
	c.makeNodes(t, c.addrs, nil)
	one := c.nodes[0]
	v := &conversion{three: c, alone: []string{"--admin-addr", "127.0.0.1:0"}, joined: one.flags}
	one.flags = v.alone
	if err := one.start(); err != nil {
		t.Fatal(err)
	}
	single := &cluster{nodes: []*process{one, one, one}, addrs: c.addrs, sight: c.sight}
	v.clusterLoop = newClusterLoop(t, single, seed(t), 1)
	v.clients = nil // there is nothing to compare
	const database = "diary"
	if err := single.create(0, database); err != nil {
		t.Fatal(err)
	}
	v.diary = startDiaryOf(t, []*process{one}, []*client{single.client(t, 0, 1)}, database, 2)
	return v
}

// restart has the server end, and serve with other flags.
func (v *conversion) restart(flags []string) error {
	one, began := v.three.nodes[0], time.Now()
	if err := one.terminate(); err != nil {
		return fmt.Errorf("the server ends with %w, want in order", err)
	}
	one.flags = flags
	if err := one.start(); err != nil {
		return err
	}
	v.away = append(v.away, time.Since(began))
	return nil
}

// toThree makes a cluster of the server and two empty nodes.
func (v *conversion) toThree() (int, error) {
	others := make(chan error, 2)
	for _, p := range v.three.nodes[1:] {
		p.kill() // it was removed
		if err := os.RemoveAll(p.dir); err != nil {
			return allNodes, err
		}
		go func() { others <- p.start() }()
	}
	err := v.restart(v.joined)
	for range v.three.nodes[1:] {
		if otherErr := <-others; err == nil {
			err = otherErr
		}
	}
	return allNodes, err
}

// toOne removes the other nodes, and makes a server of the one that is left.
func (v *conversion) toOne() (int, error) {
	for _, addr := range v.three.addrs[1:] {
		if err := runCommand("cluster", "remove", addr, "--data", v.three.nodes[0].dir); err != nil {
			return allNodes, err
		}
	}
	return allNodes, v.restart(v.alone)
}

// spread has the clients use all nodes from now on.
func (v *conversion) spread(t *testing.T) {
	t.Helper()
	v.cluster = v.three
	for i := range v.three.nodes {
		v.clients = append(v.clients, v.three.client(t, i, 1))
	}
	for i, w := range v.witnesses {
		w.client = v.three.client(t, i%3, 1+i/3%2)
	}
}

// runCommand runs a command of Livetree.
func runCommand(args ...string) error {
	file, err := command.File()
	if err != nil {
		return err
	}
	if out, err := exec.Command(file, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
