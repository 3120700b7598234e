package cluster_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/shardtest"
	"github.com/livetree/livetree/internal/pause"
)

// fill appends records to a shard, and returns the head after each.
func fill(ctx context.Context, t *testing.T, log shard.Log, s, n int) (heads []shard.Head) {
	t.Helper()
	heads = append(heads, shard.Head{})
	for i := range n {
		base := heads[i]
		r := record.Record{Kind: record.Check, Origin: record.Origin{Node: 9, Number: uint64(i)}, Tenure: 1, Previous: base.Digest}
		encoded, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		head, err := shard.Settle(ctx, log, s, base, base.After(1, encoded), encoded)
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, head)
	}
	return heads
}

// holed leaves one record out of the pages and watches of shard 2.
type holed struct{ shard.Log }

func (l holed) Page(ctx context.Context, s int, from uint64) (shard.Page, error) {
	page, err := l.Log.Page(ctx, s, from)
	if s == 2 && len(page.Entries) > 4 {
		page.Entries = append(page.Entries[:3:3], page.Entries[4:]...)
	}
	return page, err
}

// TestDataThatDoesNotBelongToTheLog has nodes whose data and log differ, in one shard. It is not served from, or written to, and the
// others are.
func TestDataThatDoesNotBelongToTheLog(t *testing.T) {
	const records = 2*shard.PageEntries + 5
	tests := []struct {
		name string
		data func(heads []shard.Head) shard.Head
		wrap func(shard.Log) shard.Log
		well bool
	}{
		{"nothing is wrong", func(heads []shard.Head) shard.Head { return heads[7] }, nil, true},
		{"from the beginning", func(heads []shard.Head) shard.Head { return heads[0] }, nil, true},
		{"the last record is another", func(heads []shard.Head) shard.Head {
			heads[7].Digest[0]++
			return heads[7]
		}, nil, false},
		{"the newest record is another", func(heads []shard.Head) shard.Head {
			heads[records].Digest[0]++
			return heads[records]
		}, nil, false},
		{"more is applied than the log has", func(heads []shard.Head) shard.Head {
			heads[records].Number += 3
			return heads[records]
		}, nil, false},
		{"a record is missing", func(heads []shard.Head) shard.Head { return heads[0] }, func(l shard.Log) shard.Log { return holed{l} }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
				fake := shardtest.New(shardtest.Options{Seed: 1, Members: 1})
				var all sync.WaitGroup
				defer all.Wait()
				defer cancel()
				all.Go(func() { fake.Run(ctx) })
				log := fake.Log(0)
				heads := fill(ctx, t, log, 2, records)
				fill(ctx, t, log, 3, 3)
				data := &lists{}
				data.now[2].head = test.data(heads)
				if test.wrap != nil {
					log = test.wrap(log)
				}
				n := cluster.New(cluster.Options{ID: 1, Log: log, Applier: data, Now: time.Now})
				all.Go(func() { _ = n.Run(ctx) })
				n.SetUp([]record.NodeID{1})
				err := n.Barrier(ctx, 2)
				if test.well != (err == nil) || err != nil && !errors.Is(err, cluster.ErrBroken) {
					t.Fatalf("Barrier = %v", err)
				}
				for _, s := range []int{2, 3} {
					wantHome(ctx, t, n, s, s == 3 || test.well)
				}
				if _, err := n.Applied(2); test.well != (err == nil) {
					t.Errorf("Applied = %v", err)
				}
			})
		})
	}
}

// wantHome waits until a node is home of a shard, or long enough to say that it will not be.
func wantHome(ctx context.Context, t *testing.T, n *cluster.Node, s int, want bool) {
	t.Helper()
	for range 600 {
		if _, ok := n.Home(s); ok == want && want {
			return
		} else if ok {
			t.Fatalf("the node is home of shard %d, which is broken", s)
		}
		_ = pause.For(ctx, 100*time.Millisecond)
	}
	if want {
		t.Errorf("the node does not take shard %d", s)
	}
}
