package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// A replica is one shard as this node has it.
type replica struct {
	shard int
	// applying and writing are held by taking what is in them: by who applies a record, and by who has one
	// of this node under way. The latter takes as long as the log does, and records of others are applied meanwhile.
	applying, writing chan struct{}

	mu      sync.Mutex
	now     replicaState
	changed chan struct{} // closed, and another made, with each change of now
	// lost is how often the shard was taken from this node lately, and lostAt when it was last.
	lost   int
	lostAt time.Time
}

// replicaState is what a replica knows at one moment.
type replicaState struct {
	applied shard.Head
	home    record.NodeID // 0 if not known yet
	mine    bool          // this process is the home, by a record of its own
	broken  error
}

func newReplica(s int, a Applier) *replica {
	r := &replica{shard: s, applying: make(chan struct{}, 1), writing: make(chan struct{}, 1), changed: make(chan struct{})}
	r.applying <- struct{}{}
	r.writing <- struct{}{}
	r.now.applied = a.Applied(s)
	return r
}

func (r *replica) state() replicaState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// watch returns the state, and a channel that is closed when it is another.
func (r *replica) watch() (replicaState, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now, r.changed
}

// change makes the state another.
func (r *replica) change(change func(*replicaState)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.now)
	close(r.changed)
	r.changed = make(chan struct{})
}

// stop notes that the shard is broken, and says whether that is new.
func (r *replica) stop(err error) (first bool) {
	r.change(func(now *replicaState) {
		if first = now.broken == nil; first {
			now.broken = err
		}
	})
	return first
}

// reach waits until a number is applied.
func (r *replica) reach(ctx context.Context, number uint64) error {
	for {
		now, changed := r.watch()
		switch {
		case now.broken != nil:
			return now.broken
		case now.applied.Number >= number:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// apply applies the next record of the log, and skips one that it has applied before. It returns ErrBroken if the
// record is not the one that comes next.
func (n *Node) apply(r *replica, e shard.Entry) error {
	<-r.applying
	defer func() { r.applying <- struct{}{} }()
	now := r.state()
	if now.broken != nil || e.Number < now.applied.Number || e.Number == now.applied.Number && now.home != 0 {
		return nil
	}
	if e.Number > now.applied.Number+1 {
		return fmt.Errorf("%w: %w: record %d comes after %d", ErrBroken, errHole, e.Number, now.applied.Number)
	}
	if level := record.LevelOf(e.Record); level > n.o.Known {
		return &NewerError{Shard: r.shard, Number: e.Number, Level: level, Known: n.o.Known}
	}
	next, err := record.Decode(e.Record)
	if err != nil {
		return fmt.Errorf("%w: record %d: %w", ErrBroken, e.Number, err)
	}
	if e.Number == now.applied.Number {
		return r.recognize(e, next, now)
	}
	if next.Previous != now.applied.Digest {
		return fmt.Errorf("%w: %w: record %d follows %v, and %v was applied", ErrBroken, errFork, e.Number, next.Previous, now.applied.Digest)
	}
	after := now.applied.After(next.Tenure, e.Record)
	after.Revision = e.Revision
	began := n.o.Now()
	n.assembling.Add(int64(next.Transfer.Bytes))
	defer n.assembling.Add(-int64(next.Transfer.Bytes))
	applied, err := n.assembled(next)
	if err != nil {
		return fmt.Errorf("record %d of shard %d: %w", e.Number, r.shard, err)
	}
	err = n.o.Applier.Apply(r.shard, applied, after)
	if errors.Is(err, ErrEarly) && r.shard != 0 {
		if err = applyFirst(n); err == nil {
			err = n.o.Applier.Apply(r.shard, applied, after)
		}
	}
	if err != nil {
		return fmt.Errorf("record %d of shard %d: %w", e.Number, r.shard, err)
	}
	n.o.Metrics.Applies.Observe(n.o.Now().Sub(began))
	n.change(r, next, after)
	n.noteApplied(r.shard, e.Number, int64(len(e.Record))+int64(next.Transfer.Bytes))
	return nil
}

// change makes the state the one after a record that was applied, and tells whether this process has become the home with it, is it in
// another tenure, or is it no more. Whether it was is looked at in the same moment: an append whose outcome is not known ends it at any time.
func (n *Node) change(r *replica, applied record.Record, after shard.Head) {
	var mine, was, same bool
	r.change(func(now *replicaState) {
		was, same = now.mine, now.applied.Tenure == after.Tenure
		now.applied, now.home = after, homeAfter(applied)
		mine = now.home == n.o.ID && n.own(applied.Origin) && (was || applied.Kind == record.Home)
		now.mine = mine
	})
	if was && !mine && !n.own(applied.Origin) {
		r.noteLost(n.o.Now())
	}
	if mine != was || mine && !same {
		n.o.Became(r.shard, mine)
	}
}

// applyFirst applies all records of shard 0 that this node has.
func applyFirst(n *Node) error {
	for {
		page, err := n.o.Log.Page(n.life, 0, n.Next(0))
		if errors.Is(err, shard.ErrTrimmed) || errors.Is(err, shard.ErrDamaged) {
			return fmt.Errorf("%w: %w", ErrBroken, err)
		}
		if err != nil {
			if err := pause.For(n.life, barrierPause); err != nil {
				return err
			}
			continue
		}
		for _, e := range page.Entries {
			if err := n.Take(e); err != nil {
				return err
			}
		}
		if page.Last {
			return nil
		}
	}
}

// recognize looks at the record that was applied last, by an earlier process.
func (r *replica) recognize(e shard.Entry, last record.Record, now replicaState) error {
	if last.Previous.Next(e.Record) != now.applied.Digest {
		return fmt.Errorf("%w: %w: record %d is another in the log", ErrBroken, errFork, e.Number)
	}
	r.change(func(now *replicaState) {
		now.home = homeAfter(last)
		now.applied.Revision = e.Revision
	})
	return nil
}

// homeAfter is the node that is home after a record: the one that the record names, or
// the one that wrote it.
func homeAfter(r record.Record) record.NodeID {
	if r.Kind == record.Home {
		return r.Home
	}
	return r.Origin.Node
}

const (
	// lostPause is how much longer a node waits with each time that a shard was taken from it.
	lostPause = time.Second
	// lostMost is the longest wait.
	lostMost = 10 * time.Second
	// lostSpan is how long it remembers.
	lostSpan = time.Minute
)

func (r *replica) noteLost(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.lostAt) > lostSpan {
		r.lost = 0
	}
	r.lost, r.lostAt = r.lost+1, now
}

// patience is how long to wait before the shard is taken: two nodes that each hold the other for gone would
// take it from each other with every record.
func (r *replica) patience(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.lostAt) > lostSpan {
		return 0
	}
	return min(time.Duration(r.lost)*lostPause, lostMost)
}
