//go:build !no_cluster

package etcdlog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// effects is data that is the list of all effects of a shard.
type effects struct {
	mu    sync.Mutex
	heads shard.Heads
	all   [shard.Count][]string
}

func (e *effects) Applied(s int) shard.Head {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heads[s]
}

func (e *effects) Apply(s int, r record.Record, after shard.Head) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heads[s] = after
	if r.Kind == record.Control {
		e.all[s] = append(e.all[s], string(r.Effect))
	}
	return nil
}

func (e *effects) list(s int) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all[s])
}

// TestNodesOnEtcd has three nodes on three members. The home of a shard is killed while it writes; another
// takes the shard over, and all that was acknowledged is there.
func TestNodesOnEtcd(t *testing.T) {
	const s = 3
	c := found(t, 3, nil)
	ids := []record.NodeID{1, 2, 3}
	var nodes [3]*cluster.Node
	var data [3]*effects
	var all sync.WaitGroup
	defer all.Wait()
	for i, id := range ids {
		data[i] = &effects{}
		nodes[i] = cluster.New(cluster.Options{ID: id, Log: c.lives[i].Member, Applier: data[i], Now: time.Now})
		defer c.lives[i].end()
		all.Go(func() {
			if err := nodes[i].Run(c.lives[i].ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("node %d ends with %v", i, err)
			}
		})
		nodes[i].SetUp(ids)
	}
	home := slices.Index(ids, cluster.Order(s, ids)[0])
	var acknowledged []string
	write := func(ctx context.Context, i int) error {
		tenure, ok := nodes[i].Home(s)
		if !ok {
			return cluster.ErrNever
		}
		text := fmt.Sprint(i, " ", len(acknowledged))
		_, err := nodes[i].Append(ctx, s, tenure, record.Record{Kind: record.Control, Effect: []byte(text)})
		if err == nil {
			acknowledged = append(acknowledged, text)
		}
		return err
	}
	for range 20 {
		c.until("the home writes", func(ctx context.Context) error { return write(ctx, home) })
	}
	killed := time.Now()
	c.lives[home].end()
	c.fronts[home].lead("")
	etcdlog.Kill(c.lives[home].Member)
	ids = slices.Delete(slices.Clone(ids), home, home+1)
	for i := range nodes {
		if i != home {
			nodes[i].SetUp(ids)
		}
	}
	next := int(cluster.Order(s, ids)[0]) - 1
	c.until("the next one writes", func(ctx context.Context) error { return write(ctx, next) })
	t.Logf("the shard was taken over after %v", time.Since(killed))
	for _, id := range ids {
		i := int(id) - 1
		c.until("a node has everything", func(ctx context.Context) error { return nodes[i].Barrier(ctx, s) })
		if got := data[i].list(s); !slices.Equal(got, acknowledged) {
			t.Errorf("node %d has %q, want %q", i, got, acknowledged)
		}
	}
	c.lives = slices.Delete(c.lives, home, home+1)
	c.fronts = slices.Delete(c.fronts, home, home+1)
}
