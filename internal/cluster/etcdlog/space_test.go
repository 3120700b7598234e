//go:build !no_cluster && unix

package etcdlog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// TestLogComesThroughItsQuota writes several times as much as the quota of the log. At first nodes flush nothing, until the log is full; then
// they do, and all goes on without a hand: what was acknowledged is at every node once, and what never was is not.
func TestLogComesThroughItsQuota(t *testing.T) {
	t.Parallel()
	const s, quota, bytes = 4, 64 << 20, 400 << 10
	size, writes := 1, 2*quota/bytes
	if *long {
		size, writes = 3, 5*quota/bytes
	}
	c := found(t, size, func(c *members) { c.quota = quota })
	var ids []record.NodeID
	for i := range size {
		ids = append(ids, record.NodeID(i+1))
	}
	var full, cleared atomic.Bool
	var all sync.WaitGroup
	defer all.Wait()
	nodes, data := make([]*cluster.Node, size), make([]*sums, size)
	for i, id := range ids {
		m := c.lives[i].Member
		data[i] = &sums{all: map[record.Digest]int{}}
		flush := func() (numbers shard.Numbers, err error) {
			if m.Full() {
				full.Store(true)
			}
			if !full.Load() {
				return numbers, nil
			}
			for s := range numbers {
				numbers[s] = data[i].Applied(s).Number
			}
			return numbers, nil
		}
		nodes[i] = cluster.New(cluster.Options{ID: id, Log: m, Applier: data[i], Now: time.Now, AppendTime: 2 * time.Second, Upkeep: cluster.Upkeep{
			Flush: flush, Members: func() []record.NodeID { return ids }, File: m,
		}})
		defer c.lives[i].end()
		all.Go(func() {
			if err := nodes[i].Run(c.lives[i].ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("node %d ends with %v", i, err)
			}
		})
		nodes[i].SetUp(ids)
	}
	told, deadline := map[string]error{}, time.Now().Add(3*time.Minute)
	home := int(cluster.Order(s, ids)[0]) - 1
	for i, written := 0, 0; written < writes; i++ {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d writes are acknowledged after three minutes", written, writes)
		}
		token := fmt.Sprintf("%0*d", bytes, i)
		tenure, ok := nodes[home].Home(s)
		if !ok {
			_ = pause.For(t.Context(), 10*time.Millisecond)
			continue
		}
		err := nodes[home].AppendGroup(t.Context(), s, tenure, record.Group{Database: 4, Commits: []record.Commit{{Effect: []byte(token)}}})
		told[token] = err
		if err == nil {
			written++
			cleared.Store(full.Load())
		}
	}
	if !cleared.Load() {
		t.Error("the log was never full, so this has shown nothing")
	}
	unknown := 0
	for i := range nodes {
		c.until("a node has everything", func(ctx context.Context) error { return nodes[i].Barrier(ctx, s) })
		for token, err := range told {
			times := data[i].count([]byte(token))
			switch {
			case err == nil && times != 1, errors.Is(err, cluster.ErrNever) && times > 0, times > 1:
				t.Errorf("node %d: %v was told, and it is there %d times", i, err, times)
			case errors.Is(err, shard.ErrUnknown):
				unknown++
			}
		}
	}
	for i, l := range c.lives {
		c.until("the file is within its quota", func(context.Context) error {
			if file, _ := l.Size(); file >= quota || l.Full() {
				return fmt.Errorf("that of member %d has %d bytes", i, file)
			}
			return nil
		})
	}
	t.Logf("%d writes of %d bytes were sent, and the outcome of %d was not known", len(told), bytes, unknown/size)
}
