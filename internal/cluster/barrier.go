package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// barrierPause is how long a barrier waits after the heads could not be read.
const barrierPause = 20 * time.Millisecond

// Barrier waits until this node has applied everything of a shard that was acknowledged, at any node, before the
// call. It returns ErrBroken if it never will.
func (n *Node) Barrier(ctx context.Context, s int) error { return BarrierWithin(ctx, n, s, 0) }

// BarrierWithin is Barrier of a node, for some time at most; 0 is no bound. The log ends a question by itself, so a timer is only started once the first question has failed, or has found that
// this node is behind. Most reads need none: a timer and its context would be a twentieth of what they cost.
func BarrierWithin(ctx context.Context, n *Node, s int, atMost time.Duration) error {
	r := n.shards[s]
	before, began := r.state().applied, n.o.Now()
	defer func() { n.o.Metrics.Barriers.Observe(n.o.Now().Sub(began)) }()
	for {
		heads, err := n.asker.ask(ctx, n.o.Log)
		if err == nil {
			if err := compare(n, r, before, heads[s]); err != nil || r.state().applied.Number >= heads[s].Number {
				return err
			}
		} else if errors.Is(err, errEnded) {
			return err
		}
		if atMost > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, atMost-n.o.Now().Sub(began))
			defer cancel() //nolint:gocritic // once
			atMost = 0
		}
		if err == nil {
			return r.reach(ctx, heads[s].Number)
		}
		if ended := pause.For(ctx, barrierPause); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// compare holds the head of the log against what was applied before it was asked for.
func compare(n *Node, r *replica, before, head shard.Head) error {
	switch {
	case head.Number < before.Number:
		_ = n.noteBroken(r, fmt.Errorf("%w: %w: %d and %d", ErrBroken, errAhead, head.Number, before.Number))
	case head.Number == before.Number && head.Digest != before.Digest:
		_ = n.noteBroken(r, fmt.Errorf("%w: %w: up to %d", ErrBroken, errFork, head.Number))
	}
	return r.state().broken
}

const (
	// An asker waits before the next question, if the last was that of lingerReaders at least: for as long as that one took, within bounds.
	lingerReaders = 4
	leastLinger   = 150 * time.Microsecond
	mostLinger    = 4 * time.Millisecond
)

// An asker asks the log for the heads, one question at a time. All who come while one is under way share the next:
// the one under way may have been answered before they came.
//
// Readers that ask again as soon as they are answered would fall into two halves, which take turns: one waits while the other is answered. So after the question of several the asker
// waits for a moment, in which those who were answered come back, and both halves share the next one. A question takes messages to all nodes and back, which cost more than a read does. So
// the moment is as long as the last question took: where questions are slow, as on machines that are busy, half as many are asked. It is over before that once as many wait as there were: nobody else
// is expected.
type asker struct {
	mu      sync.Mutex
	next    *question
	running bool
	ended   bool // no question is asked any more
	runs    sync.WaitGroup
	asked   atomic.Uint64
	// crowd is how many readers the pause after a question waits for, 0 if none is under way. Complete takes one when they are there.
	crowd    int
	complete chan struct{}
}

// Questions returns how often a node has asked the log where it ends. Readers share such a question.
func Questions(n *Node) uint64 { return n.asker.asked.Load() }

// errEnded says that Run is over.
var errEnded = errors.New("the node has ended")

// A question is asked for all who wait for it.
type question struct {
	answered chan struct{}
	readers  int // guarded by the asker, until the question is asked
	heads    shard.Heads
	err      error
}

// ask returns heads that were read after the call.
func (a *asker) ask(ctx context.Context, log shard.Log) (shard.Heads, error) {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return shard.Heads{}, errEnded
	}
	if a.next == nil {
		a.next = &question{answered: make(chan struct{})}
	}
	q := a.next
	q.readers++
	if q.readers == a.crowd {
		a.complete <- struct{}{} // it has room: there is one for each pause
	}
	if !a.running {
		a.running = true
		a.runs.Go(func() { a.run(log) })
	}
	a.mu.Unlock()
	select {
	case <-q.answered:
		return q.heads, q.err
	case <-ctx.Done():
		return shard.Heads{}, context.Cause(ctx)
	}
}

// run asks until nobody waits.
func (a *asker) run(log shard.Log) {
	for {
		// Whoever is about to ask shares this question: readers come in crowds, and the first of them has started this.
		runtime.Gosched()
		a.mu.Lock()
		q := a.next
		a.next, a.running = nil, q != nil
		a.mu.Unlock()
		if q == nil {
			return
		}
		a.asked.Add(1)
		// The log ends the question by itself, and no reader's end is that of the others.
		began := time.Now() //nolint:forbidigo // for how long it takes
		q.heads, q.err = log.Heads(context.Background())
		took := time.Since(began)
		if q.readers >= lingerReaders {
			a.linger(q, min(max(took, leastLinger), mostLinger))
		} else {
			close(q.answered)
		}
	}
}

// linger answers a question, and returns when as many readers wait as that had and as came meanwhile, or after a while.
func (a *asker) linger(q *question, atMost time.Duration) {
	complete := make(chan struct{}, 1)
	a.mu.Lock()
	came := 0
	if a.next != nil {
		came = a.next.readers
	}
	a.crowd, a.complete = q.readers+came, complete
	a.mu.Unlock()
	close(q.answered)
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-complete:
	case <-timer.C:
	}
	a.mu.Lock()
	a.crowd = 0
	a.mu.Unlock()
}

// close waits until the last question is answered.
func (a *asker) close() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.runs.Wait()
}
