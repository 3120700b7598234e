package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/shardtest"
)

// counts is data that is how often each effect was applied, and in how many records.
type counts struct {
	mu      sync.Mutex
	heads   shard.Heads
	effects map[string]int
	records int
	most    int // groups of a record
}

func (c *counts) Applied(s int) shard.Head {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heads[s]
}

func (c *counts) Apply(s int, r record.Record, after shard.Head) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heads[s] = after
	for _, g := range r.Groups {
		for _, commit := range g.Commits {
			c.effects[string(commit.Effect[:8])]++
		}
	}
	if r.Kind == record.Groups {
		c.records++
		c.most = max(c.most, len(r.Groups))
	}
	return nil
}

// alone runs a test with one node, which is home of all shards.
func alone(t *testing.T, seed uint64, test func(ctx context.Context, n *cluster.Node, data *counts)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		fake := shardtest.New(shardtest.Options{Seed: seed, Members: 1})
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		all.Go(func() { fake.Run(ctx) })
		data := &counts{effects: map[string]int{}}
		n := cluster.New(cluster.Options{ID: 1, Log: fake.Log(0), Applier: data, Now: time.Now})
		all.Go(func() { _ = n.Run(ctx) })
		n.SetUp([]record.NodeID{1})
		wantHome(ctx, t, n, 2, true)
		test(ctx, n, data)
	})
}

func groupOf(database int, bytes int) record.Group {
	effect := fmt.Appendf(nil, "%08d", database)
	return record.Group{Database: uint32(database), Commits: []record.Commit{{Effect: append(effect, make([]byte, bytes)...)}}}
}

// TestGroupsShareRecords has many databases write at once: each write is made once, in few records, none of which is larger than may be.
func TestGroupsShareRecords(t *testing.T) {
	for _, test := range []struct{ databases, bytes, records int }{
		{300, 10, 20},                         // as many as databases fit
		{20, record.MaxBytes / 4, 20},         // as many as bytes fit
		{3, record.MaxBytes - 64 - 60 - 8, 3}, // one alone
	} {
		for seed := range uint64(5) {
			alone(t, seed, func(ctx context.Context, n *cluster.Node, data *counts) {
				tenure, _ := n.Home(2)
				var writers sync.WaitGroup
				for i := range test.databases {
					writers.Go(func() {
						if err := n.AppendGroup(ctx, 2, tenure, groupOf(i, test.bytes)); err != nil {
							t.Errorf("database %d: %v", i, err)
						}
					})
				}
				writers.Wait()
				for effect, times := range data.effects {
					if times != 1 {
						t.Errorf("effect %s was applied %d times", effect, times)
					}
				}
				if len(data.effects) != test.databases || data.records > test.records || data.most > record.MaxGroups {
					t.Errorf("%d writes are in %d records of up to %d groups; want %d in %d at most", len(data.effects), data.records, data.most, test.databases, test.records)
				}
			})
		}
	}
}

func TestGroupsThatAreNotAppended(t *testing.T) {
	alone(t, 1, func(ctx context.Context, n *cluster.Node, data *counts) {
		tenure, _ := n.Home(2)
		if err := n.AppendGroup(ctx, 2, tenure+1, groupOf(1, 10)); !errors.Is(err, cluster.ErrNever) {
			t.Errorf("a group of another tenure: %v, want ErrNever", err)
		}
		if err := n.AppendGroup(ctx, 2, tenure+1, groupOf(2, record.MaxBytes)); !errors.Is(err, cluster.ErrNever) {
			t.Errorf("a long group of another tenure: %v, want ErrNever", err)
		}
		over, cancel := context.WithCancel(ctx)
		cancel()
		err := n.AppendGroup(over, 2, tenure, groupOf(3, 10))
		if err != nil && !errors.Is(err, cluster.ErrNever) && !errors.Is(err, shard.ErrUnknown) {
			t.Errorf("a group whose caller is gone: %v", err)
		}
		if err := n.AppendGroup(ctx, 2, tenure, groupOf(4, 10)); err != nil {
			t.Errorf("a group after that: %v", err)
		}
		if data.effects["00000001"]+data.effects["00000002"] > 0 || errors.Is(err, cluster.ErrNever) && data.effects["00000003"] > 0 {
			t.Errorf("what never was is there: %v", data.effects)
		}
	})
}
