//go:build !no_cluster

package assembly_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/cluster/assembly"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/freeaddr"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// A node is one with its databases.
type node struct {
	*assembly.Assembly
	store   *store.Store
	catalog *catalog.Catalog
}

// start starts the only node of a cluster.
func start(t *testing.T, data, addr string, key peer.Key) *node {
	t.Helper()
	a, err := assembly.Enter(t.Context(), assembly.Options{
		Data: data, List: []string{addr}, Addr: addr, Key: key, Election: 100 * time.Millisecond, Extra: func() []string { return nil },
		Fatal: func(text string) { t.Error(text) }, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Version: "v1",
	})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Assembly: a}
	if n.store, err = store.Open(data, store.Options{Replicated: true, BallastBytes: -1}); err != nil {
		t.Fatal(err)
	}
	log, err := a.Log(n.store, func(int, bool) {})
	if err != nil {
		t.Fatal(err)
	}
	n.catalog = catalog.New(n.store, engine.Options{
		Clock: state.NewClock(time.Now, rand.Reader, n.store.LastMillis()), Metrics: &state.Metrics{}, Streams: watch.NewBudget(1 << 20), Log: log,
		Deadline: time.Minute,
	})
	if err := a.Start(t.Context(), n.store, n.catalog); err != nil {
		t.Fatal(err)
	}
	return n
}

// stop ends a node in order.
func (n *node) stop(t *testing.T) {
	t.Helper()
	n.HandOver(t.Context())
	n.catalog.Close()
	n.Close()
	if err := n.store.Close(); err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, d *engine.Database, value int64) {
	t.Helper()
	w := tree.Put(tree.Path{}.Child("a"), tree.LeafNode(tree.IntegerLeaf(value)))
	if _, err := d.Write(t.Context(), engine.Request{Write: w, Who: auth.Identity{Admin: true}}); err != nil {
		t.Fatal(err)
	}
}

// single reads the databases of a directory as a single server does.
func single(t *testing.T, data string) (epoch, position uint64) {
	t.Helper()
	s, err := store.Open(data, store.Options{BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	id, found, err := s.Find("one")
	if err != nil || !found {
		t.Fatalf("the database is there: %v, %v", found, err)
	}
	view := s.View()
	defer view.Release()
	if position, err = view.Tree(id).Position(); err != nil {
		t.Fatal(err)
	}
	return s.Epoch(), position
}

// TestOneNode founds a cluster of one node, ends it, goes on, and makes it a single server again, by each of the two ways.
func TestOneNode(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs etcd")
	}
	key := newKey(t)
	ways := map[string]func(context.Context, string, func() time.Time, *slog.Logger) error{
		"remove the others": assembly.BecomeSingle, "recover": assembly.Recover,
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			data, addr := t.TempDir(), freeaddr.One(t)
			n := start(t, data, addr, key)
			d, err := n.catalog.Create("one")
			if err != nil {
				t.Fatal(err)
			}
			put(t, d, 1)
			told := n.Status(t.Context())
			for late := time.Now().Add(time.Minute); len(told.Nodes) == 1 && told.Nodes[0].Leads < 16 && time.Now().Before(late); {
				_ = pause.For(t.Context(), 10*time.Millisecond) // it becomes the home of one shard after the other
				told = n.Status(t.Context())
			}
			if len(told.Nodes) != 1 || !told.Quorum || told.Nodes[0].State != status.Ready || told.Nodes[0].Leads != 16 || len(told.Problems) > 0 {
				t.Errorf("the status of one node is %+v", told)
			}
			n.stop(t)
			n = start(t, data, addr, key)
			if d, err = n.catalog.Database("one"); err != nil {
				t.Fatal(err)
			}
			put(t, d, 2)
			epoch := n.store.Epoch()
			n.stop(t)

			if err := way(t.Context(), data, time.Now, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if membership.IsNode(data) {
				t.Error("the directory is still that of a node")
			}
			after, position := single(t, data)
			if position != 2 {
				t.Errorf("the database is at position %d of 2", position)
			}
			if renewed := after != epoch; renewed != (name == "recover") {
				t.Errorf("the epoch was %d and is %d", epoch, after)
			}
		})
	}
}
