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
		var numbers, keep shard.Numbers
		numbers[s] = r.Uint64()
		if i%3 > 0 { // now and then it keeps nothing
			keep[s] = r.Uint64()
		}
		level := uint16(r.Uint32())
		if err := shard.Publish(ctx, log, shard.Flushed{Node: id, Numbers: numbers, Level: level, Keep: keep}); err != nil {
			return err
		}
		row, err := rowOf(ctx, other, id)
		if err != nil {
			return err
		}
		if row.Numbers != numbers || row.Level != level || row.Keep != keep {
			return fmt.Errorf("node %d has flushed %v, knows level %d and keeps %v, and the log says %v, %d and %v", id, numbers, level, keep, row.Numbers, row.Level, row.Keep)
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
	return testForgotten(ctx, c, record.NodeID(1000*s))
}

// testForgotten has the row of a node deleted: not by one who knows an older row, and then so that every member sees it.
func testForgotten(ctx context.Context, c Cluster, id record.NodeID) error {
	_, log := c.Log(0)
	_, other := c.Log(c.Size() - 1)
	row, err := rowOf(ctx, log, id)
	if err != nil {
		return err
	}
	old := shard.Flushed{Node: id, Revision: row.Revision - 1}
	if err := shard.Repeat(ctx, func(ctx context.Context) error { return log.ForgetFlushed(ctx, old) }); !errors.Is(err, shard.ErrStale) {
		return fmt.Errorf("an older row of node %d is forgotten: %v, want ErrStale", id, fmt.Sprint(err))
	}
	err = shard.Repeat(ctx, func(ctx context.Context) error { return log.ForgetFlushed(ctx, row) })
	if err != nil && !errors.Is(err, shard.ErrStale) { // stale: by one whose outcome was not known
		return fmt.Errorf("the row of node %d is not forgotten: %w", id, err)
	}
	if row, err = rowOf(ctx, other, id); err != nil || row.Revision != 0 {
		return fmt.Errorf("node %d still has a row after it was forgotten: %+v, %w", id, row, err)
	}
	return nil
}
