// Package shardtest has a replicated log in memory for tests, and the suite that it and the driver on
// etcd pass.
//
// A [Fake] has the promises of package shard and no more. Inside a bubble of testing/synctest one scheduler moves one
// thing at a time, when all else stands still, and a seed says which: an append takes effect, an answer
// arrives or is lost, a member learns of more entries, a watch ends, time passes. So a seed is one history, up to what
// goroutines of one node do at the same moment.
//
// [Cases] is the suite. [Flaws] are errors to plant: a suite that does not find them is worth nothing.
package shardtest

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster/shard"
)

// callTime is how long a call of a member waits for the others.
const callTime = time.Second

var (
	errStopped = errors.New("the member has stopped")
	errLost    = errors.New("the answer was lost")
)

// Options say what a fake does.
type Options struct {
	Seed    uint64
	Members int
	// NoCompare plants an error: appends are not compared.
	NoCompare bool
	// PartsEarly plants an error: a trim deletes the parts of records that it leaves.
	PartsEarly bool
	// StaleHeads plants an error: heads are those that the member knows of.
	StaleHeads bool
}

// A Fake is the replicated log of all members.
type Fake struct {
	options Options
	woken   chan struct{}

	mu       sync.Mutex
	rand     *rand.Rand
	revision int64
	heads    shard.Heads
	entries  []stored // by revision
	floor    int64    // watches from below are told that it is compacted
	members  []*member
	// transfers are all that ever were.
	transfers []*transfer
	flushed   []shard.Flushed
	calls     []*call
	late      []*proposal // those whose callers are gone
}

// stored is an entry with the head that it made.
type stored struct {
	shard.Entry
	head    shard.Head
	deleted int64 // the revision of its trim
}

// A member is one node's part of the log.
type member struct {
	revision   int64 // up to which it knows the log
	generation int
	cut        bool
}

// A call waits for the scheduler.
type call struct {
	member, generation, kind, shard int
	// ready says whether the scheduler may move it.
	ready func() bool
	// step moves it, and says whether it is over, with err.
	step func() bool
	// leave is called when its caller goes before it is over.
	leave func()
	err   error
	over  chan struct{}
}

// The kinds of calls.
const (
	appending = iota
	heading
	paging
	watching
	trimming
	sending
	flushing
)

// New returns an empty log. Run must be running for its calls to return.
func New(o Options) *Fake {
	f := &Fake{options: o, woken: make(chan struct{}, 1), rand: rand.New(rand.NewPCG(o.Seed, 1)), revision: 1}
	for range o.Members {
		f.members = append(f.members, &member{revision: 1})
	}
	return f
}

// Run moves one thing after the other until ctx ends. It must be inside a bubble, and alone to wait there.
func (f *Fake) Run(ctx context.Context) {
	for ctx.Err() == nil {
		synctest.Wait()
		wait, moved := f.move()
		if wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
		if moved {
			continue
		}
		select {
		case <-f.woken:
		case <-ctx.Done():
		}
	}
}

func (f *Fake) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// chance is true once in n times.
func (f *Fake) chance(n int) bool { return f.rand.IntN(n) == 0 }

// move moves one thing that can be moved, or says how long nothing happens.
func (f *Fake) move() (wait time.Duration, moved bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.SortStableFunc(f.calls, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.member, b.member), cmp.Compare(a.kind, b.kind), cmp.Compare(a.shard, b.shard))
	})
	var moves []func()
	for _, c := range f.calls {
		if c.ready() {
			moves = append(moves, func() { f.moveCall(c) })
		}
	}
	for i := range f.late {
		moves = append(moves, func() { f.moveLate(i) })
	}
	for _, m := range f.members {
		if m.revision < f.revision && !m.cut {
			moves = append(moves, func() { m.revision += 1 + f.rand.Int64N(f.revision-m.revision) })
		}
	}
	switch {
	case len(moves) == 0:
		return 0, false
	case f.chance(40):
		return time.Duration(f.rand.Int64N(int64(400 * time.Millisecond))), true
	case f.chance(100):
		f.floor = f.revision
	default:
		moves[f.rand.IntN(len(moves))]()
	}
	return 0, true
}

func (f *Fake) moveCall(c *call) {
	if c.step() {
		f.calls = slices.DeleteFunc(f.calls, func(other *call) bool { return other == c })
		close(c.over)
	}
}

func (f *Fake) moveLate(i int) {
	p := f.late[i]
	f.late = slices.Delete(f.late, i, i+1)
	if !f.chance(5) {
		f.effect(p)
	}
}

// do waits until the scheduler has brought a call to its end.
func (f *Fake) do(ctx context.Context, c *call) error {
	c.over = make(chan struct{})
	f.mu.Lock()
	if f.members[c.member].generation != c.generation {
		f.mu.Unlock()
		return errStopped
	}
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	f.wake()
	select {
	case <-c.over:
		return c.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.calls, c); i >= 0 {
		f.calls = slices.Delete(f.calls, i, i+1)
		c.left()
	}
	return ctx.Err()
}

func (c *call) left() {
	if c.leave != nil {
		c.leave()
	}
}

// Crash stops a member: its calls end. Log gives what it is after it was started again.
func (f *Fake) Crash(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[i]
	m.generation++
	// A member that starts again first knows what is in its file, which may be older.
	m.revision = max(1, m.revision-f.rand.Int64N(4))
	f.calls = slices.DeleteFunc(f.calls, func(c *call) bool {
		if c.member != i {
			return false
		}
		c.left()
		c.err = errStopped
		close(c.over)
		return true
	})
	f.wake()
}

// Cut cuts a member off from the others, or joins it with them again.
func (f *Fake) Cut(i int, cut bool) {
	f.mu.Lock()
	f.members[i].cut = cut
	f.mu.Unlock()
	f.wake()
}

// Log is the log as a member has it, until that crashes.
func (f *Fake) Log(i int) shard.Log {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &memberLog{f, i, f.members[i].generation}
}
