package trust_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/proof"
)

// startClusterOn runs a cluster of empty nodes, each on a disk of its own.
func startClusterOn(t *testing.T, disks []*realDisk) *cluster {
	t.Helper()
	c := &cluster{addrs: freeaddr.List(t, len(disks)), sight: &sightings{}}
	c.makeNodes(t, c.addrs, nil)
	for i, d := range disks {
		c.nodes[i].dir = filepath.Join(d.mount, "data")
	}
	if err := c.each(func(p *process) error { return p.start() }); err != nil {
		t.Fatal(err)
	}
	return c
}

func newRealDisks(t *testing.T) (disks []*realDisk) {
	t.Helper()
	for range 3 {
		disks = append(disks, newRealDisk(t, 4<<30))
	}
	return disks
}

// TestClusterPowerCut takes the power from a node under load, or from all at once: what they had not synced is gone, of the log in etcd as well
// as of the store. Every node starts by itself, and nothing that was acknowledged is lost.
func TestClusterPowerCut(t *testing.T) {
	count := drill(t, 6)
	disks := newRealDisks(t)
	l := newClusterLoop(t, startClusterOn(t, disks), seed(t), 2)
	all := 0
	for i := range count {
		happen := l.powerCut(disks, l.rng.IntN(3))
		if i%2 == 1 {
			all++
			happen = l.powerCutAll(disks)
		}
		if err := l.round(happen); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	l.report(t, "clusterpowercut")
	figures.Report(t, "clusterpowercuts", proof.Count("of_one", count-all), proof.Count("of_all", all))
}

// powerCut returns the accident that a node loses its power, and gets it again after a while.
func (l *clusterLoop) powerCut(disks []*realDisk, victim int) accident {
	return func() (int, error) {
		p := l.cluster.nodes[victim]
		if err := disks[victim].scatter(l.rng); err != nil {
			return victim, err
		}
		p.kill()
		if err := disks[victim].cut(); err != nil {
			return victim, err
		}
		if err := l.await(50); err != nil {
			return victim, fmt.Errorf("with node %d down: %w", victim+1, err)
		}
		return victim, l.start(p)
	}
}

// powerCutAll is the accident that all nodes lose their power.
func (l *clusterLoop) powerCutAll(disks []*realDisk) accident {
	return func() (int, error) {
		for _, d := range disks {
			if err := d.scatter(l.rng); err != nil {
				return allNodes, err
			}
		}
		if err := l.cluster.each(func(p *process) error { p.kill(); return nil }); err != nil {
			return allNodes, err
		}
		for _, d := range disks {
			if err := d.cut(); err != nil {
				return allNodes, err
			}
		}
		began := time.Now()
		err := l.cluster.each(func(p *process) error { return p.start() })
		l.starts = append(l.starts, time.Since(began))
		return allNodes, err
	}
}

const (
	// slowTime is how long writes are counted, stillTime how long the disk stands still in each second of it.
	slowTime  = 10 * time.Second
	stillTime = 300 * time.Millisecond
)

// TestClusterSlowDisk has the disk of the home of shard 0 stand still for 300 ms of each second. How many of the writes of a calm time are
// acknowledged, and how long none is, is in the figures.
func TestClusterSlowDisk(t *testing.T) {
	count := drill(t, 1)
	disks := newRealDisks(t)
	l := newClusterLoop(t, startClusterOn(t, disks), seed(t), 3)
	for i := range count {
		home, err := l.cluster.home()
		if err != nil {
			t.Fatal(err)
		}
		var calm, slow int
		err = l.round(func() (int, error) {
			calm = l.writesIn(slowTime, nil)
			return noNode, nil
		})
		calmPause := l.pauses[len(l.pauses)-1]
		if err == nil {
			err = l.round(func() (int, error) {
				slow = l.writesIn(slowTime, disks[home])
				return noNode, nil
			})
		}
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		t.Logf("round %d: %d writes while the disk of node %d is slow, %d in calm, whose longest pause was %v", i, slow, home+1, calm, calmPause)
		figures.Report(t, "clusterslow", proof.Count("calm", calm), proof.Count("slow", slow))
	}
	l.report(t, "clusterslowdisk")
}

// writesIn returns how many writes are acknowledged in a time, in which a disk stands still again and again if there is one.
func (l *clusterLoop) writesIn(span time.Duration, d *realDisk) int {
	acknowledged := func() int {
		l.books.mu.Lock()
		defer l.books.mu.Unlock()
		return l.books.acknowledged
	}
	before := acknowledged()
	for range int(span / time.Second) {
		began := time.Now()
		if d != nil {
			if err := d.control(ioctlFreeze, nil); err != nil {
				l.books.problem("the disk does not stand still: %v", err)
			}
			time.Sleep(stillTime) //nolint:forbidigo // real processes
			if err := d.control(ioctlThaw, nil); err != nil {
				l.books.problem("the disk stands still for ever: %v", err)
			}
		}
		time.Sleep(time.Second - time.Since(began)) //nolint:forbidigo // real processes
	}
	return acknowledged() - before
}
