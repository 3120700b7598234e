package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// Append appends a record to a shard, in the tenure in which it was judged, and returns the head after it once it is applied here.
// It sets the head of the record. One record of a shard is under way at a time; others wait.
//
// It returns ErrNever if the record is not in the log and never will be: then this node has applied what came instead, and the caller judges again,
// or asks the home. It returns shard.ErrUnknown if ctx ended before that was known. Then the record may be applied at any later time, also between
// the judging and the append of another one. So the tenure is over, and this node takes the shard again: after its home record the old one is applied, or never will be.
func (n *Node) Append(ctx context.Context, s int, tenure uint64, r record.Record) (shard.Head, error) {
	return n.appendIn(ctx, n.o.Log, s, tenure, r)
}

// appendIn appends a record in a tenure, by a log that is this node's or one for a transfer.
func (n *Node) appendIn(ctx context.Context, log shard.Log, s int, tenure uint64, r record.Record) (shard.Head, error) {
	return n.append(ctx, log, s, func(now replicaState) (record.Record, bool) {
		r.Tenure = tenure
		return r, now.mine && now.applied.Tenure == tenure
	})
}

// Give makes another node the home of a shard, if this one is.
func (n *Node) Give(ctx context.Context, s int, to record.NodeID) error {
	_, err := n.append(ctx, n.o.Log, s, func(now replicaState) (record.Record, bool) {
		return record.Record{Kind: record.Home, Home: to, Tenure: now.applied.Tenure + 1}, now.mine && to != n.o.ID
	})
	return err
}

// append appends the record that build makes, if it makes one, after what is applied here.
func (n *Node) append(ctx context.Context, log shard.Log, s int, build func(replicaState) (record.Record, bool)) (shard.Head, error) {
	r := n.shards[s]
	select {
	case <-r.writing:
	case <-ctx.Done():
		return shard.Head{}, fmt.Errorf("%w: %w", ErrNever, context.Cause(ctx))
	}
	defer func() { r.writing <- struct{}{} }()
	now := r.state()
	if now.broken != nil {
		return shard.Head{}, fmt.Errorf("%w: %w", ErrNever, now.broken)
	}
	next, ok := build(now)
	if !ok {
		return shard.Head{}, ErrNever
	}
	if next.Level, next.Previous = next.Kind.Needs(), now.applied.Digest; next.Level > n.o.Level() {
		return shard.Head{}, fmt.Errorf("%w: a record of the kind %v needs level %d, and the cluster is at %d", ErrNever, next.Kind, next.Level, n.o.Level())
	}
	next.Origin = record.Origin{Node: n.o.ID, Number: n.numbers.Add(1)}
	encoded, err := next.Encode()
	if err != nil {
		return shard.Head{}, fmt.Errorf("%w: %w", ErrNever, err)
	}
	began := n.o.Now()
	head, err := shard.Settle(ctx, log, s, now.applied, now.applied.After(next.Tenure, encoded), encoded)
	switch {
	case errors.Is(err, shard.ErrStale):
		n.o.Metrics.Refused.Add(1)
		// The caller may judge again at once: on what came instead.
		if err := r.reach(ctx, now.applied.Number+1); err != nil {
			return shard.Head{}, fmt.Errorf("%w: %w", ErrNever, err)
		}
		return shard.Head{}, ErrNever
	case errors.Is(err, shard.ErrUnknown):
		r.change(func(now *replicaState) { now.mine = false })
		n.o.Became(s, false)
		return shard.Head{}, err
	case err != nil:
		return shard.Head{}, fmt.Errorf("%w: %w", ErrNever, err)
	}
	entry := shard.Entry{Shard: s, Number: head.Number, Revision: head.Revision, Record: encoded}
	err = n.noteBroken(r, n.apply(r, entry))
	if err = cmp.Or(err, r.state().broken); err != nil {
		return shard.Head{}, fmt.Errorf("%w: %w", shard.ErrUnknown, err)
	}
	n.o.Metrics.Appends.Observe(n.o.Now().Sub(began))
	return head, nil
}
