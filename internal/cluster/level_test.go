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
)

// TestNextLevel: a cluster is raised to what all members have said that they know, and not before each has said something.
func TestNextLevel(t *testing.T) {
	t.Parallel()
	members := []record.NodeID{1, 2, 3}
	row := func(id record.NodeID, level uint16) shard.Flushed { return shard.Flushed{Node: id, Level: level} }
	tests := []struct {
		name string
		rows []shard.Flushed
		want uint16
	}{
		{"nobody has said anything", nil, 1},
		{"one has said nothing", []shard.Flushed{row(1, 2), row(2, 2)}, 1},
		{"one knows no later one", []shard.Flushed{row(1, 2), row(2, 2), row(3, 1)}, 1},
		{"all know the next", []shard.Flushed{row(1, 2), row(2, 3), row(3, 2)}, 2},
		{"all know two later ones", []shard.Flushed{row(1, 3), row(2, 3), row(3, 3)}, 3},
		{"one that was removed knows nothing", []shard.Flushed{row(1, 2), row(2, 2), row(3, 2), row(4, 1)}, 2},
		{"a row of a version without levels", []shard.Flushed{row(1, 2), row(2, 2), row(3, 0)}, 1},
	}
	for _, test := range tests {
		if got := cluster.NextLevel(1, members, test.rows); got != test.want {
			t.Errorf("%s: the next level is %d, want %d", test.name, got, test.want)
		}
	}
	if got := cluster.NextLevel(3, members, []shard.Flushed{row(1, 2), row(2, 2), row(3, 2)}); got != 3 {
		t.Errorf("a level of 3 becomes %d", got)
	}
	if got := cluster.NextLevel(1, nil, nil); got != 1 {
		t.Errorf("the level of a cluster whose members are not known becomes %d", got)
	}
}

// TestRecordOfANewerVersion: a node that meets one ends, and does not take its data for damaged. It has applied what came before.
func TestRecordOfANewerVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		fake := shardtest.New(shardtest.Options{Seed: 1, Members: 1})
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		all.Go(func() { fake.Run(ctx) })
		heads := fill(ctx, t, fake.Log(0), 2, 3)
		newer := []byte{9, 99, 0, 7, 1, 2, 3} // another format, another kind
		if _, err := shard.Settle(ctx, fake.Log(0), 2, heads[3], heads[3].After(1, newer), newer); err != nil {
			t.Fatal(err)
		}
		data := &counts{effects: map[string]int{}}
		n := cluster.New(cluster.Options{ID: 1, Log: fake.Log(0), Applier: data, Now: time.Now})
		err := n.Run(ctx)
		var told *cluster.NewerError
		if !errors.Is(err, cluster.ErrNewer) || errors.Is(err, cluster.ErrBroken) || !errors.As(err, &told) || told.Level != 7 {
			t.Errorf("the node ends with %v, want a record of level 7 that needs a newer version", err)
		}
		if _, broken := n.Applied(2); broken != nil || data.Applied(2).Number != 3 {
			t.Errorf("it has applied %d records of 3, broken: %v", data.Applied(2).Number, broken)
		}
	})
}

// TestNoRecordAboveTheLevel: a kind that needs a later level than that of the cluster is not written.
func TestNoRecordAboveTheLevel(t *testing.T) {
	alone(t, 1, func(ctx context.Context, n *cluster.Node, data *counts) {
		tenure, _ := n.Home(0)
		before := data.Applied(0)
		_, err := n.Append(ctx, 0, tenure, record.Record{Kind: record.Mark})
		if !errors.Is(err, cluster.ErrNever) || data.Applied(0) != before {
			t.Errorf("a record of level %d in a cluster of level 1: %v", record.Mark.Needs(), err)
		}
		if _, err := n.Append(ctx, 0, tenure, record.Record{Kind: record.Check}); err != nil {
			t.Errorf("a record of level 1: %v", err)
		}
	})
}
