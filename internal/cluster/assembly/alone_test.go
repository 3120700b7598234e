//go:build !no_cluster

package assembly_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/fulldisk"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/layout"
)

// TestWithoutLog: a node whose log was set aside, and that waits to join again, is no single server; once the others are lost for good, it is recovered
// from what its store has.
func TestWithoutLog(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs etcd")
	}
	key := newKey(t)
	data := t.TempDir()
	n := start(t, data, freeaddr.One(t), key)
	d, err := n.catalog.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, 1)
	epoch := n.store.Epoch()
	n.stop(t)
	if _, err := membership.SetCorruptAside(data); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	if err := assembly.BecomeSingle(t.Context(), data, time.Now, logger); !errors.Is(err, assembly.ErrNotAlone) {
		t.Errorf("a node without a log becomes a single server: %v", err)
	}
	if _, err := os.Stat(membership.LogDir(data)); err == nil || !membership.IsNode(data) {
		t.Errorf("the directory has changed: %v", err)
	}
	// What cannot be removed ends it half-way.
	ballast := filepath.Join(data, fulldisk.BallastFile)
	if err := errors.Join(os.RemoveAll(ballast), os.MkdirAll(filepath.Join(ballast, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := assembly.Recover(t.Context(), data, time.Now, logger); err == nil || !membership.IsNode(data) {
		t.Errorf("a recover that ends half-way says %v", err)
	}
	if after, _ := single(t, data); after == epoch {
		t.Error("the epoch is what it was, and only the directory has to be that of no node")
	}
	if err := os.RemoveAll(ballast); err != nil {
		t.Fatal(err)
	}
	if err := assembly.Recover(t.Context(), data, time.Now, logger); err != nil {
		t.Fatal(err)
	}
	if after, position := single(t, data); membership.IsNode(data) || after == epoch || position != 1 {
		t.Errorf("after recover the database is at position %d of 1, and its epoch is %d after %d", position, after, epoch)
	}
}

// TestLogIsTrimmedBeyondTheStore: a node whose log does not begin where its store ends is told so, and not that it took too long.
func TestLogIsTrimmedBeyondTheStore(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs etcd")
	}
	key, data, addr := newKey(t), t.TempDir(), freeaddr.One(t)
	n := start(t, data, addr, key)
	if _, err := n.catalog.Create("one"); err != nil {
		t.Fatal(err)
	}
	n.stop(t)
	pebble, old := filepath.Join(data, layout.PebbleDir), filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(pebble)); err != nil {
		t.Fatal(err)
	}
	n = start(t, data, addr, key)
	d, err := n.catalog.Database("one")
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, 1)
	put(t, d, 2)
	n.stop(t)
	if err := errors.Join(os.RemoveAll(pebble), os.CopyFS(pebble, os.DirFS(old)), os.RemoveAll(filepath.Join(data, datadir.DurableFile)), trimAll(t, data)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = assembly.BecomeSingle(t.Context(), data, time.Now, slog.New(slog.DiscardHandler))
	if !errors.Is(err, cluster.ErrBroken) || !membership.IsNode(data) {
		t.Errorf("a node whose log was trimmed becomes a single server: %v after %v, want %v", err, time.Since(began), cluster.ErrBroken)
	}
}

// trimAll leaves only the newest record of each shard in the log of a node that does not run.
func trimAll(t *testing.T, data string) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	member, err := etcdlog.Start(etcdlog.Options{
		Dir: membership.LogDir(data), Peer: "127.0.0.1:1", Listen: "127.0.0.1:0", Members: []string{"127.0.0.1:1"}, Fatal: func(text string) { t.Error(text) },
	})
	if err != nil {
		return err
	}
	defer member.Stop()
	heads, err := member.Heads(ctx)
	for err != nil && pause.For(ctx, 10*time.Millisecond) == nil {
		heads, err = member.Heads(ctx)
	}
	if err != nil {
		return err
	}
	var below shard.Numbers
	for s, head := range heads {
		below[s] = head.Number
	}
	return member.Trim(ctx, below)
}

// TestDirectoryOfARunningNode: nobody makes the directory of a node that runs that of a single server, and who tries is told so at once.
func TestDirectoryOfARunningNode(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs etcd")
	}
	key := newKey(t)
	data := t.TempDir()
	n := start(t, data, freeaddr.One(t), key)
	defer n.stop(t)
	logger := slog.New(slog.DiscardHandler)
	for name, err := range map[string]error{
		"alone": assembly.BecomeSingle(t.Context(), data, time.Now, logger), "recover": assembly.Recover(t.Context(), data, time.Now, logger),
	} {
		if !errors.Is(err, store.ErrInUse) || !membership.IsNode(data) {
			t.Errorf("%s beside the node that runs: %v, want that it is in use", name, err)
		}
	}
}

// TestFoundingIsTakenBack: a server whose founding of a cluster was cut short before there was a log is a single server again without the flags of
// the cluster.
func TestFoundingIsTakenBack(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, membership.FileName), []byte(`{"cluster":"c1","node":"10.0.0.2:9100","founder":"10.0.0.2:9100","founding":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := assembly.BecomeSingle(t.Context(), data, time.Now, slog.New(slog.DiscardHandler)); err != nil || membership.IsNode(data) {
		t.Errorf("a directory in which no cluster was founded yet stays that of a node: %v", err)
	}
}

// TestNothingToRecover: a directory without store and log is refused, and stays as it is.
func TestNothingToRecover(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, membership.FileName), []byte(`{"cluster":"c1","node":"10.0.0.2:9100"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := assembly.Recover(t.Context(), data, time.Now, slog.New(slog.DiscardHandler)); err == nil || !membership.IsNode(data) {
		t.Errorf("a directory without anything is recovered: %v", err)
	}
}
