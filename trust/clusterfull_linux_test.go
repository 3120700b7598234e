package trust_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
)

const (
	// fullTime is how long the disk of a node stays full.
	fullTime = 30 * time.Second
	// fillStep is how much of it is filled at a time, with fillPause in between: 256 MiB a second.
	fillStep  = 32 << 20
	fillPause = 125 * time.Millisecond
)

// TestClusterFullDisk fills the disk of one node under load, and makes room again. The others go on, and their status says that the node is full. The node says so
// itself, waits, and comes back without a supervisor. Every second time the disk is full in an instant, before the node can notice: then a write may fail, and the
// process begins again. It needs the right to mount a file system.
func TestClusterFullDisk(t *testing.T) {
	count := drill(t, 2)
	mount := t.TempDir()
	if err := syscall.Mount("livetree-test", mount, "tmpfs", 0, "size=2000m,mode=0700"); err != nil {
		t.Skipf("a full disk is NOT tested: a tmpfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{addrs: freeaddr.List(t, 3), sight: &sightings{}}
	c.makeNodes(t, c.addrs, nil)
	const victim = 1
	c.nodes[victim].dir = filepath.Join(mount, "data")
	ports := freeaddr.List(t, 2) // a process that begins again is found where it was
	c.nodes[victim].flags = append(c.nodes[victim].flags, "--addr", ports[0], "--admin-addr", ports[1])
	if err := c.each(func(p *process) error { return p.start() }); err != nil {
		t.Fatal(err)
	}
	l := newClusterLoop(t, c, seed(t), 3)
	for i := range count {
		if err := l.round(l.full(victim, mount, i%2 == 1)); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if err := l.awaitReady(); err != nil {
			t.Fatal(err)
		}
		if l.helped > 0 {
			t.Errorf("round %d: the node has ended", i)
		}
		l.helped = 0
	}
	t.Logf("the process began again %d times", strings.Count(c.nodes[victim].log.String(), "the process begins again"))
	l.report(t, "clusterfulldisk")
}

// full returns the accident that the disk of a node is full for a while.
func (l *clusterLoop) full(victim int, mount string, inAnInstant bool) accident {
	return func() (int, error) {
		filler := filepath.Join(mount, "filler")
		pause := fillPause
		if inAnInstant {
			pause = 0
		}
		if err := fill(mount, filler, pause); err != nil {
			return victim, err
		}
		full := time.After(fullTime)
		if err := l.await(100); err != nil {
			return victim, fmt.Errorf("with the disk of node %d full: %w", victim+1, err)
		}
		back, err := l.awaitFull(victim)
		if err != nil {
			return victim, err
		}
		<-full
		began := time.Now()
		defer func() { l.starts = append(l.starts, time.Since(began)) }()
		if err := os.Remove(filler); err != nil {
			return victim, err
		}
		return victim, back()
	}
}

// awaitFull returns when a node says that its disk is full, both to health checks and to clients, and what waits until the node is well again. It is
// started again if it has ended; then it can only say so in its log, since it has no space to note where it listens.
func (l *clusterLoop) awaitFull(victim int) (back func() error, err error) {
	p := l.cluster.nodes[victim]
	back = func() error { return l.revive(victim) }
	waits := func() int { return strings.Count(p.log.String(), "it waits, and the other nodes go on") }
	before := waits()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { //nolint:forbidigo // real processes
		if l.helped == 0 && p.isGone() {
			l.helped++
			l.t.Logf("node %d has ended before it noticed; it is started again", victim+1)
			started := make(chan error, 1)
			go func() { started <- p.start() }()
			back = func() error { return <-started }
		}
		state, err := p.clusterState()
		a, _, askErr := l.clients[victim].send(request{method: "GET", target: target("trust-0", nil, false)})
		switch {
		case l.helped > 0 && waits() > before:
			return back, nil
		case state == "full" && askErr == nil && a.status == http.StatusServiceUnavailable:
			return back, l.awaitState(victim, "full")
		case time.Since(began) > patience/3:
			return nil, fmt.Errorf("node %d does not say that its disk is full, but %q, %w; and to a client %d %s, %w", victim+1, state, err, a.status, a.body, askErr)
		}
	}
}

// awaitState returns when another node says of a node that it is in some state.
func (l *clusterLoop) awaitState(node int, want string) error {
	return waitUntil(patience/3, func() error {
		var told struct {
			Nodes    []struct{ Node, State string }
			Problems []string
		}
		if err := l.cluster.nodes[(node+1)%3].ask("GET", "/v1/cluster", "", &told); err != nil {
			return err
		}
		for _, n := range told.Nodes {
			if n.Node == l.cluster.addrs[node] && n.State == want {
				return nil
			}
		}
		return fmt.Errorf("the status says %+v", told)
	})
}

// clusterState returns what the check cluster of a node's readiness says.
func (p *process) clusterState() (string, error) {
	addr, err := os.ReadFile(filepath.Join(p.dir, "admin", "addr"))
	if err != nil {
		return "", err
	}
	answer, err := http.Get(strings.TrimSpace(string(addr)) + "/readyz")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var said struct {
		Checks []struct{ Name, State string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		return "", err
	}
	for _, c := range said.Checks {
		if c.Name == "cluster" {
			return c.State, nil
		}
	}
	return "", nil
}

// fill leaves no space on a file system. It takes a pause after each step, and all at once without one.
func fill(mount, name string, pause time.Duration) error {
	var usage syscall.Statfs_t
	if err := syscall.Statfs(mount, &usage); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	size, step := int64(0), int64(usage.Bavail)*int64(usage.Bsize)
	if pause > 0 {
		step = fillStep
	}
	// The server is writing: what is free now may not be in a moment.
	for step >= int64(usage.Bsize) {
		if err := syscall.Fallocate(int(file.Fd()), 0, size, step); err != nil {
			step /= 2
			continue
		}
		size += step
		time.Sleep(pause) //nolint:forbidigo // the pace of a disk
	}
	return nil
}
