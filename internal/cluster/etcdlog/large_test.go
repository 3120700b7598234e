//go:build !no_cluster && unix

package etcdlog_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// sums is data that is the digest of each effect of a shard.
type sums struct {
	mu    sync.Mutex
	heads shard.Heads
	all   map[record.Digest]int
}

func (d *sums) Applied(s int) shard.Head {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.heads[s]
}

func (d *sums) Apply(s int, r record.Record, after shard.Head) error {
	var none record.Digest
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heads[s] = after
	for _, g := range r.Groups {
		for _, c := range g.Commits {
			d.all[none.Next(c.Effect)]++
		}
	}
	return nil
}

func (d *sums) count(effect []byte) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[record.Digest{}.Next(effect)]
}

// TestLargeGroupOnEtcd writes one large group while others write small ones. Every node gets it whole, one that starts later too. With -long it has
// 200 MB, and no member loses the lead meanwhile.
func TestLargeGroupOnEtcd(t *testing.T) {
	const large, small = 2, 7
	bytes := 3 << 20
	if *long {
		bytes = 200e6
	}
	c := found(t, 3, func(c *members) { c.election = etcdlog.DefaultElection })
	ids := []record.NodeID{1, 2, 3}
	var data [3]*sums
	var nodes [3]*cluster.Node
	var all sync.WaitGroup
	defer all.Wait()
	start := func(i int) {
		data[i] = &sums{all: map[record.Digest]int{}}
		nodes[i] = cluster.New(cluster.Options{ID: ids[i], Log: c.lives[i].Member, Applier: data[i], Now: time.Now})
		all.Go(func() {
			if err := nodes[i].Run(c.lives[i].ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("node %d ends with %v", i, err)
			}
		})
	}
	for i := range 2 {
		defer c.lives[i].end()
		start(i)
	}
	defer c.lives[2].end()
	nodes[0].SetUp(ids[:1])
	for _, s := range []int{large, small} {
		c.until("the node is home", func(context.Context) error {
			if _, ok := nodes[0].Home(s); !ok {
				return cluster.ErrNever
			}
			return nil
		})
	}
	effect := make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(effect)
	leader, before := c.lives[0].Leader(), memory(t)
	over, end := context.WithCancel(t.Context())
	var written int
	var longest time.Duration
	var writers sync.WaitGroup
	defer end()
	writers.Go(func() { written, longest = writeSmall(over, nodes[0], small) })
	begun := time.Now()
	tenure, _ := nodes[0].Home(large)
	err := nodes[0].AppendGroup(t.Context(), large, tenure, record.Group{Database: 2, Commits: []record.Commit{{Effect: effect}}})
	if err != nil {
		t.Errorf("a group of %d bytes: %v", bytes, err)
	}
	took := time.Since(begun)
	start(2)
	for i := range nodes {
		c.until("a node has everything", func(ctx context.Context) error { return nodes[i].Barrier(ctx, large) })
		if data[i].count(effect) != 1 {
			t.Errorf("node %d has not the effect that was written", i)
		}
	}
	everywhere := time.Since(begun)
	end()
	writers.Wait()
	if now := c.lives[0].Leader(); now != leader && *long {
		t.Errorf("member %x led before, and %x after", leader, now)
	}
	t.Logf("%d bytes: written after %v, at all nodes after %v; %d MiB more at most; %d small writes meanwhile, %v apart at most",
		bytes, took, everywhere, (memory(t)-before)>>20, written, longest)
}

// writeSmall writes one small group after the other, and returns how many and the longest time that one took.
func writeSmall(ctx context.Context, n *cluster.Node, s int) (written int, longest time.Duration) {
	for ctx.Err() == nil {
		begun := time.Now()
		tenure, _ := n.Home(s)
		if n.AppendGroup(ctx, s, tenure, record.Group{Database: 7, Commits: []record.Commit{{Effect: []byte("small")}}}) == nil {
			written++
			longest = max(longest, time.Since(begun))
		}
		_ = pause.For(ctx, time.Millisecond)
	}
	return written, longest
}

// memory is how much this process has used at most.
func memory(t *testing.T) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return int64(used.Maxrss) << 10
}
