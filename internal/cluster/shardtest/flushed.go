package shardtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// rowOf waits for what a node has flushed.
func rowOf(ctx context.Context, log shard.Log, id record.NodeID) (shard.Flushed, error) {
	for {
		rows, err := log.Flushed(ctx)
		for _, row := range rows {
			if row.Node == id {
				return row, nil
			}
		}
		if err == nil {
			return shard.Flushed{Node: id}, nil
		}
		if ended := pause.For(ctx, time.Millisecond); ended != nil {
			return shard.Flushed{}, fmt.Errorf("what nodes have flushed is not told: %w, %w", ended, err)
		}
	}
}

// testFlushed has nodes tell what they have flushed, also less than before; every member sees it at once, and a put after an old one is refused.
func testFlushed(ctx context.Context, c Cluster, s int, r *rand.Rand) error {
	var before []shard.Flushed
	for i := range 12 {
		id := record.NodeID(1000*s + i%2)
		_, log := c.Log(i % c.Size())
		_, other := c.Log((i + 1) % c.Size())
		var numbers shard.Numbers
		numbers[s] = r.Uint64()
		if err := shard.Publish(ctx, log, id, numbers); err != nil {
			return err
		}
		row, err := rowOf(ctx, other, id)
		if err != nil {
			return err
		}
		if row.Numbers != numbers {
			return fmt.Errorf("node %d has flushed %v, and the log says %v", id, numbers, row.Numbers)
		}
		for _, old := range before {
			err := shard.Repeat(ctx, func(ctx context.Context) error { return log.SetFlushed(ctx, old) })
			if !errors.Is(err, shard.ErrStale) {
				return fmt.Errorf("what node %d had flushed before is put again: %v, want ErrStale", old.Node, fmt.Sprint(err))
			}
		}
		if i >= 2 {
			before = append(before, shard.Flushed{Node: id, Revision: row.Revision - 1})
		}
	}
	return nil
}
