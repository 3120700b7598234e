//go:build unix

package trust_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/freeaddr"
)

// TestClusterInvite has a fourth node join with an invitation, restart, and leave, while writes go on: all are answered, and the
// process ends with 0. The invitation is good for no other node.
func TestClusterInvite(t *testing.T) {
	drill(t, 1)
	l := newClusterLoop(t, startCluster(t), seed(t), 3)
	livetree := func(args ...string) (string, error) {
		file, err := command.File()
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(file, args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	code, err := livetree("cluster", "invite", "--data", l.cluster.nodes[1].dir)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	join := filepath.Join(dir, "join")
	if err := os.WriteFile(join, []byte(code+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	guest := func(name string) *process {
		p := &process{dir: filepath.Join(dir, name)}
		p.flags = []string{"--admin-addr", "127.0.0.1:0", "--cluster-addr", freeaddr.One(t), "--cluster-join", join}
		p.watchOver(t)
		return p
	}
	fourth := guest("fourth")
	err = l.round(func() (int, error) {
		if err := fourth.start(); err != nil {
			return noNode, err
		}
		if err := fourth.terminate(); err != nil {
			return noNode, err
		}
		return noNode, fourth.start()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := guest("fifth").start(); err == nil {
		t.Error("a second node has joined with the same invitation")
	}
	info, err := os.Stat(filepath.Join(fourth.dir, "cluster-key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key that the node was given: %v, %v; want mode 0600", info, err)
	}
	l.awaitNodes(t, 4)
	err = l.round(func() (int, error) {
		_, err := livetree("cluster", "leave", "--data", fourth.dir)
		return noNode, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := fourth.awaitEnd(patience / 6); err != nil {
		t.Errorf("the node that has left ended with %v", err)
	}
	l.awaitNodes(t, 3)
	if err := fourth.start(); err == nil {
		t.Error("a node that has left starts again")
	}
	if len(l.wrong) > 0 {
		t.Errorf("clients of the other nodes saw: %q", l.wrong)
	}
	if diagnosis, err := livetree("cluster", "doctor", "--json", "--data", l.cluster.nodes[0].dir); !json.Valid([]byte(diagnosis)) {
		t.Errorf("cluster doctor = %s, %v", diagnosis, err)
	}
}

// awaitNodes waits until the first node knows of so many nodes: it looks at their list every second.
func (l *clusterLoop) awaitNodes(t *testing.T, want int) {
	t.Helper()
	deadline := time.Now().Add(patience / 6)
	for {
		s, err := l.cluster.status(0)
		switch {
		case err != nil:
			t.Fatal(err)
		case len(s.Nodes) == want:
			return
		case time.Now().After(deadline):
			t.Fatalf("there are %d nodes, want %d: %+v", len(s.Nodes), want, s.Nodes)
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // real processes
	}
}

// awaitEnd waits until the process has ended by itself, and returns how.
func (p *process) awaitEnd(limit time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	late := time.AfterFunc(limit, func() { _ = p.command.Process.Kill() })
	defer late.Stop()
	err := p.command.Wait()
	p.command = nil
	return err
}
