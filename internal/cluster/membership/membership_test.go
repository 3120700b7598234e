//go:build !no_cluster

package membership_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

func heavy(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts etcd several times")
	}
}

// TestThreeEmptyNodes founds a cluster, and starts it again.
func TestThreeEmptyNodes(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 3)
	w.startAll(w.nodes...)
	w.wantVoters(w.nodes...)
	first := slices.MinFunc(w.nodes, func(a, b *node) int { return slices.Compare([]string{a.addr}, []string{b.addr}) })
	var ids []uint64
	for _, n := range w.nodes {
		if n.Founded() != (n == first) || n.Copied() == n.Founded() {
			t.Errorf("%s has founded: %v, copied: %v", n.addr, n.Founded(), n.Copied())
		}
		if n.rows() != "made by the founder of "+first.Cluster() {
			t.Errorf("%s has the rows %q", n.addr, n.rows())
		}
		ids = append(ids, n.Log().ID())
	}
	w.until("the copies were sent", func(context.Context) error {
		first.mu.Lock()
		defer first.mu.Unlock()
		if first.sent != 2 || first.keeping != 0 {
			return fmt.Errorf("%d were, and the log is kept for %d", first.sent, first.keeping)
		}
		return nil
	})
	w.until("a record is taken", func(ctx context.Context) error { return first.append(ctx, 1) })
	for _, n := range w.nodes {
		n.stop()
	}
	w.startAll(w.nodes...)
	w.wantVoters(w.nodes...)
	for i, n := range w.nodes {
		if n.Founded() || n.Copied() || n.Log().ID() != ids[i] {
			t.Errorf("%s, started again, has founded: %v, copied: %v, and is %x instead of %x", n.addr, n.Founded(), n.Copied(), n.Log().ID(), ids[i])
		}
	}
}

// TestLostDiskIsReplaced empties the directory of a node while records are appended.
func TestLostDiskIsReplaced(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 3)
	w.startAll(w.nodes...)
	w.wantVoters(w.nodes...)
	lost := w.nodes[1]
	id := lost.Log().ID()
	ctx, cancel := context.WithCancel(t.Context())
	var appended atomic.Int64
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			if w.nodes[0].append(ctx, 2) == nil {
				appended.Add(1)
			}
		}
	})
	lost.stop()
	if err := os.RemoveAll(lost.data); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(lost.data, 0o700); err != nil {
		t.Fatal(err)
	}
	before := appended.Load()
	w.startAll(lost)
	w.wantVoters(w.nodes...)
	during := appended.Load() - before
	cancel()
	writer.Wait()
	if lost.Log().ID() == id || !lost.Copied() || lost.rows() != w.nodes[0].rows() {
		t.Errorf("the node that was replaced is %x, was %x, copied: %v, and has %q", lost.Log().ID(), id, lost.Copied(), lost.rows())
	}
	if during == 0 {
		t.Error("nothing was appended meanwhile")
	}
	// Any other node may die now.
	w.nodes[2].stop()
	w.until("a record is taken", func(ctx context.Context) error { return lost.append(ctx, 3) })
}

// TestDataFounds: the one node that has data founds and serves, whatever the order is, and the others have its data.
func TestDataFounds(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 3)
	slices.SortFunc(w.nodes, func(a, b *node) int { return slices.Compare([]string{a.addr}, []string{b.addr}) })
	w.nodes[2].write("of one server")
	w.startAll(w.nodes...)
	w.wantVoters(w.nodes...)
	for i, n := range w.nodes {
		if n.Founded() != (i == 2) || n.rows() != "of one server" {
			t.Errorf("%s has founded: %v, and has %q", n.addr, n.Founded(), n.rows())
		}
	}
}

// TestJoinsLaterAndIsRemoved: a cluster of one gets a second node and loses it again.
func TestJoinsLaterAndIsRemoved(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 2)
	one, two := w.nodes[0], w.nodes[1]
	one.list, two.list = []string{one.addr}, []string{one.addr}
	w.startAll(one)
	if err := os.MkdirAll(filepath.Join(one.data, "tls"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(one.data, "tls", "ca.pem"), []byte("authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := one.Remove(t.Context(), one.addr); !saying(err, "last node") {
		t.Errorf("the last node is removed: %v", err)
	}
	w.startAll(two)
	w.wantVoters(one, two)
	if text, err := os.ReadFile(filepath.Join(two.data, "tls", "ca.pem")); string(text) != "authority" {
		t.Errorf("the file beside the store comes as %q, %v", text, err)
	}
	if err := one.Remove(t.Context(), "10.0.0.1:1"); !saying(err, "10.0.0.1:1 is no node") || !errors.Is(err, membership.ErrNoNode) {
		t.Errorf("a node that is none is removed: %v", err)
	}
	w.until("the second is removed", func(ctx context.Context) error { return one.Remove(ctx, two.addr) })
	w.wantVoters(one)
	w.until("the second is told", func(context.Context) error {
		two.mu.Lock()
		defer two.mu.Unlock()
		if !errors.Is(two.ran, membership.ErrRemoved) {
			return errors.Join(errors.New("not yet"), two.ran)
		}
		return nil
	})
	two.stop()
	if err := two.start(); !errors.Is(err, membership.ErrRemoved) {
		t.Errorf("a node that was removed starts again with %v, want ErrRemoved", err)
	}
	two.stop()
	if err := os.RemoveAll(two.data); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(two.data, 0o700); err != nil {
		t.Fatal(err)
	}
	w.startAll(two)
	w.wantVoters(one, two)
}

// TestRemoveKeepsTheMajority also looks at who counts as up: neither a node that is not ready nor one that is gone.
func TestRemoveKeepsTheMajority(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 3)
	w.startAll(w.nodes...)
	w.wantVoters(w.nodes...)
	w.nodes[2].SetReady(false)
	w.wantUp(w.nodes[0], 2)
	w.nodes[2].SetReady(true)
	w.wantUp(w.nodes[0], 3)
	w.nodes[2].stop()
	w.wantUp(w.nodes[0], 2)
	w.until("the node is missed", func(context.Context) error {
		if members := w.nodes[0].Members(); slices.ContainsFunc(members, func(m membership.Member) bool { return m.Addr == w.nodes[2].addr && m.Up }) {
			return errors.New("it is up")
		}
		return nil
	})
	// The one that was stopped may have led the log.
	w.until("a node is not removed without which there is no majority", func(ctx context.Context) error {
		if err := w.nodes[0].Remove(ctx, w.nodes[1].addr); !saying(err, "1 of 2 nodes would be up") {
			return fmt.Errorf("it says %w", cmp.Or(err, errors.New("that it is removed")))
		}
		return nil
	})
	w.until("the dead one is removed", func(ctx context.Context) error { return w.nodes[0].Remove(ctx, w.nodes[2].addr) })
	w.wantVoters(w.nodes[0], w.nodes[1])
}

// TestTwoWithDataRefuse: all say so, and change nothing.
func TestTwoWithDataRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	texts := []string{"one", "two", ""}
	var all sync.WaitGroup
	for i, n := range w.nodes {
		if texts[i] != "" {
			n.write(texts[i])
		}
		all.Go(func() {
			if err := n.enter(t.Context()); !errors.Is(err, membership.ErrRefused) || !saying(err, w.nodes[0].addr, w.nodes[1].addr) {
				t.Errorf("%s enters with %v, want a refusal that names both", n.addr, err)
			}
		})
	}
	all.Wait()
	for i, n := range w.nodes {
		if _, err := os.Stat(filepath.Join(n.data, membership.FileName)); n.rows() != texts[i] || !os.IsNotExist(err) {
			t.Errorf("%s has %q, and %v", n.addr, n.rows(), err)
		}
	}
}

// TestNeverFoundsAgain: a directory that was in a cluster waits for that, even if the list has no other node.
func TestNeverFoundsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	n := w.nodes[0]
	name := filepath.Join(n.data, membership.FileName)
	if err := os.WriteFile(name, []byte(`{"cluster":"0123","founder":"`+n.addr+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := n.enter(ctx); !errors.Is(err, context.DeadlineExceeded) || !saying(err, "for a member of the cluster 0123") {
		t.Errorf("it enters with %v", err)
	}
	if _, err := os.Stat(filepath.Join(n.data, "etcd")); !os.IsNotExist(err) {
		t.Errorf("etcd was started: %v", err)
	}
	if err := os.WriteFile(name, []byte(`{"cluster":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.enter(t.Context()); !saying(err, name, "cannot be read") {
		t.Errorf("with a file that is cut it enters with %v", err)
	}
}

// TestFoundingThatWasCutShort begins again: no other node can have joined.
func TestFoundingThatWasCutShort(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 1)
	n := w.nodes[0]
	if err := os.WriteFile(filepath.Join(n.data, membership.FileName), []byte(`{"cluster":"0123","founder":"`+n.addr+`","founding":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(n.data, "etcd", "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.data, "etcd", "member", "wal", "0.tmp"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.startAll(n)
	if !n.Founded() || n.Cluster() == "0123" {
		t.Errorf("founded: %v, the cluster %s", n.Founded(), n.Cluster())
	}
	// The store was never made, and no other node has joined: the founder makes it after all.
	n.stop()
	if err := os.RemoveAll(filepath.Join(n.data, "pebble")); err != nil {
		t.Fatal(err)
	}
	w.startAll(n)
	if n.rows() == "" {
		t.Error("the founder of an empty cluster makes no store")
	}
}

// TestStoreThatIsGivenUp: a member without a store fetches one and stays the member that it is; one whose etcd is gone joins
// with the store that it has.
func TestStoreThatIsGivenUp(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 3)
	w.startAll(w.nodes...)
	n := w.nodes[2]
	id := n.Log().ID()
	before := shard.Flushed{Node: record.NodeID(id), Numbers: shard.Numbers{7}, Level: 1}
	if err := shard.Publish(t.Context(), n.Log(), before); err != nil {
		t.Fatal(err)
	}
	n.stop()
	if err := os.RemoveAll(filepath.Join(n.data, "pebble")); err != nil {
		t.Fatal(err)
	}
	w.startAll(n)
	w.wantVoters(w.nodes...)
	told, err := n.Log().Flushed(t.Context())
	if err != nil || len(told) != 1 || told[0].Node != before.Node || told[0].Numbers != (shard.Numbers{}) {
		t.Errorf("the log knows of flushes %+v, %v, of a node whose store was lost", told, err)
	}
	if n.Log().ID() != id || !n.Copied() || n.rows() != w.nodes[0].rows() {
		t.Errorf("it is %x instead of %x, copied: %v, and has %q", n.Log().ID(), id, n.Copied(), n.rows())
	}
	n.stop()
	n.write("its own")
	if err := os.RemoveAll(filepath.Join(n.data, "etcd")); err != nil {
		t.Fatal(err)
	}
	w.startAll(n)
	w.wantVoters(w.nodes...)
	if n.Log().ID() == id || n.Copied() || n.rows() != "its own" {
		t.Errorf("it is %x again, copied: %v, and has %q", n.Log().ID(), n.Copied(), n.rows())
	}
}
