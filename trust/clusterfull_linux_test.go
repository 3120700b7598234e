package trust_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// fullTime is how long the disk of a node stays full.
const fullTime = 10 * time.Second

// TestClusterFullDisk fills the disk of one node under load, and makes room again. The others go on, and the node comes
// back by itself, or when its supervisor starts it again. It needs the right to mount a file system.
func TestClusterFullDisk(t *testing.T) {
	count := drill(t, 1)
	mount := t.TempDir()
	if err := syscall.Mount("livetree-test", mount, "tmpfs", 0, "size=1000m,mode=0700"); err != nil {
		t.Skipf("a full disk is NOT tested: a tmpfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{addrs: freeAddrs(t, 3), sight: &sightings{}}
	c.makeNodes(t, c.addrs, nil)
	const victim = 1
	c.nodes[victim].dir = filepath.Join(mount, "data")
	if err := c.each(func(p *process) error { return p.start() }); err != nil {
		t.Fatal(err)
	}
	l := newClusterLoop(t, c, seed(t), 3)
	for i := range count {
		err := l.round(func() (int, error) {
			filler := filepath.Join(mount, "filler")
			if err := fill(mount, filler); err != nil {
				return victim, err
			}
			full := time.After(fullTime)
			if err := l.await(100); err != nil {
				return victim, fmt.Errorf("with the disk of node %d full: %w", victim+1, err)
			}
			<-full
			if err := os.Remove(filler); err != nil {
				return victim, err
			}
			return victim, l.revive(victim)
		})
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if err := l.awaitReady(); err != nil {
			t.Fatal(err)
		}
	}
	l.report(t, "clusterfulldisk")
}

// fill leaves no space on a file system.
func fill(mount, name string) error {
	var usage syscall.Statfs_t
	if err := syscall.Statfs(mount, &usage); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	// The server is writing: what is free now may not be in a moment.
	for size, step := int64(0), int64(usage.Bavail)*usage.Bsize; step >= usage.Bsize; {
		if err := syscall.Fallocate(int(file.Fd()), 0, size, step); err != nil {
			step /= 2
			continue
		}
		size += step
	}
	return nil
}
