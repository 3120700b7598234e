//go:build !no_cluster

package membership_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/cluster/membership"
)

// TestLevelOfADirectory: a version that does not know the level of a directory refuses it, in one line, and changes nothing.
func TestLevelOfADirectory(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := membership.CheckLevel(data, 1); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	name := filepath.Join(data, membership.FileName)
	const text = `{"cluster":"c1","node":"10.0.0.1:9100","level":2}`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := membership.CheckLevel(data, 2); err != nil {
		t.Errorf("a level that is known: %v", err)
	}
	err := membership.CheckLevel(data, 1)
	if !errors.Is(err, membership.ErrTooOld) || !saying(err, "level 2", "levels up to 1", "start the version") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a level that is not known: %v", err)
	}
	if after, err := os.ReadFile(name); err != nil || string(after) != text {
		t.Errorf("the file is %q after it, %v", after, err)
	}
}

// TestOlderVersionDoesNotJoin: the level of a cluster is noted on all nodes, and a node whose version does not know it neither joins nor starts.
func TestOlderVersionDoesNotJoin(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 2)
	founder, guest := w.nodes[0], w.nodes[1]
	founder.list, founder.known = []string{founder.addr}, 2
	w.startAll(founder)
	if err := membership.NoteLevel(founder.Membership, 2); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	guest.known = 1
	if err := guest.enter(ctx); !errors.Is(err, membership.ErrTooOld) || !saying(err, "the cluster is at level 2") {
		t.Errorf("an older version joins: %v", err)
	}
	guest.stop()
	if names, err := os.ReadDir(filepath.Join(guest.data, "etcd")); err == nil {
		t.Errorf("it has begun a log: %v", names)
	}
	guest.known = 2
	w.startAll(guest)
	w.wantVoters(w.nodes...)
	guest.stop()
	guest.known = 1
	if err := guest.enter(ctx); !errors.Is(err, membership.ErrTooOld) || !saying(err, "level 2") {
		t.Errorf("an older version is started on the directory of a node: %v", err)
	}
	founder.stop()
}

// TestFoundersWaitForEachOther: in a cluster that was just founded no node counts as up before all do, so that no shard is given from one to the next.
func TestFoundersWaitForEachOther(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 3)
	w.startAll(w.nodes...)
	w.wantVoters(w.nodes...)
	for _, n := range w.nodes {
		n.mu.Lock()
		if n.firstUp != 3 {
			t.Errorf("%s was first told of %d nodes that are up, want 3", n.addr, n.firstUp)
		}
		n.mu.Unlock()
	}
}
