// Package cluster makes one database server of several nodes that share a replicated log.
//
// Each node has all data. Each shard of the databases has one node that judges writes, its home, which appends
// what they do to the log of the shard; every node applies the records of the log in their order, and so
// they stay equal. A [Node] is that of one process: it applies ([Applier]), says whether it is home
// ([Node.Home]), appends for the shards of which it is ([Node.AppendGroup]), takes over shards whose home is gone, and tells readers when it has
// applied everything that was acknowledged anywhere ([Node.Barrier]).
//
// That a node is home is a hint, and nothing rests on it: whoever appends changes the head, so what
// was judged on an older one is refused. Two nodes that both hold themselves for the home cost time, not data.
//
// A group that is larger than a record is sent in parts before its turn, and a small record assembles them; whoever applies that
// reads the parts from the log of its own node. Neither callers nor appliers know of it.
//
// Every node flushes its data now and then and tells so through the log. The home of shard 0 trims what all have flushed ([Upkeep]), and what is left of
// transfers that nobody finished.
//
// What grows: a node has one goroutine for each shard and one that follows the log. A question for the heads is
// shared by all readers that wait. A record is held in memory while it is under way, one for each shard. Of a group in parts, a node
// that sends it has four parts beside the group, and one that applies it has the group and a page of parts.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

var (
	// ErrNever says that a record is not in the log and never will be: another node is home, or has
	// appended first.
	ErrNever = errors.New("another node is home of the shard")
	// ErrBroken says that a node cannot apply the log of a shard any further: it must start again from a
	// copy of another node's data, and not serve the shard until then.
	ErrBroken = errors.New("this node's data and the log of the cluster do not belong together")
	// ErrEarly says, from an Applier, that a record rests on one of shard 0 that was not applied yet. That one
	// was appended before, so this node has it: it is applied first.
	ErrEarly = errors.New("a record of the first shard comes before this one")
	// ErrNewer says that the log has a record which only a newer version can apply. The data is well: the node is started again with that version.
	ErrNewer = errors.New("a newer version is needed")
	// ErrTooLarge says that a group is larger than any that may be sent. It never was in the log, and judging it again is of no use.
	ErrTooLarge = errors.New("the write is too large for the cluster")
	errHole     = errors.New("a record of the log is missing")
	errFork     = errors.New("the records before are others here")
	errAhead    = errors.New("the log ends before what this node has applied")
)

// An Applier holds the data that records change. Only one call for a shard is under way at a time.
type Applier interface {
	// Applied returns the head of a shard after the newest record that was applied to the data.
	Applied(shard int) shard.Head
	// Apply applies one record and keeps the head after it, both or none. An error
	// ends the node: its data cannot be relied on.
	Apply(shard int, r record.Record, after shard.Head) error
}

// Options say how a node works.
type Options struct {
	// ID is the number of this node.
	ID      record.NodeID
	Log     shard.Log
	Applier Applier
	// Known is the newest level of records that this server can apply; 0 is that of the binary. Level returns the one of the cluster: only
	// records of that level, or of one below, are appended. nil is the first.
	Known uint16
	Level func() uint16
	// AppendTime is how long a record of groups may be under way until its outcome counts as not known.
	AppendTime time.Duration
	// Became is told that this process is the home of a shard from now on, or is it no more. It must not wait for
	// anything; nil for nobody.
	Became func(shard int, home bool)
	// PartBytes is how long a part of a group is, and how long a record may be. 0 is record.MaxBytes; less is for tests.
	PartBytes int
	// Rand gives the first number of this process's records. It must be another for each process.
	Rand func() uint64
	// Now is used to tell a shard that is taken to and fro from one that changes its home once a day, and old records from new ones. It must not be nil.
	Now    func() time.Time
	Logger *slog.Logger
	// Metrics count; nil for nobody to see.
	Metrics *Metrics
	Upkeep
}

// A Node is what one process does for the cluster.
type Node struct {
	o       Options
	shards  [shard.Count]*replica
	first   uint64        // no record of this process has this number
	numbers atomic.Uint64 // the newest
	asker   asker
	up      ups

	gatherers [shard.Count]gatherer
	gathering sync.WaitGroup
	// slots are held by those who put a part, by taking what is in them.
	slots  chan struct{}
	sent   sentGroups
	upkeep upkeep
	// assembling is how many bytes the groups have that are put together, and applied.
	assembling atomic.Int64
	// life ends with Run: what is under way then is not of any caller.
	life context.Context
	end  context.CancelFunc
}

// New returns a node. Run makes it work.
func New(o Options) *Node {
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	o.Known = cmp.Or(o.Known, record.Known)
	if o.Level == nil {
		o.Level = func() uint16 { return record.FirstLevel }
	}
	o.AppendTime = cmp.Or(o.AppendTime, DefaultAppendTime)
	if o.Became == nil {
		o.Became = func(int, bool) {}
	}
	o.PartBytes = cmp.Or(o.PartBytes, record.MaxBytes)
	if o.Metrics == nil {
		o.Metrics = &Metrics{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Upkeep = o.filled()
	n := &Node{o: o, first: o.Rand()}
	n.numbers.Store(n.first)
	n.life, n.end = context.WithCancel(context.Background())
	n.up.changed, n.up.seen, n.up.start = make(chan struct{}), map[record.NodeID]time.Time{}, o.Now()
	n.upkeep.flushDue, n.upkeep.trimDue = make(chan struct{}, 1), make(chan struct{}, 1)
	n.slots = make(chan struct{}, partsUnderWay)
	for range partsUnderWay {
		n.slots <- struct{}{}
	}
	for s := range n.shards {
		n.shards[s] = newReplica(s, o.Applier)
	}
	return n
}

// Run applies what the log has and takes over shards, until ctx ends, and returns why. It returns ErrBroken if
// the log has been trimmed beyond what this node has applied. It is called once; nothing is to be appended after it.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	// A record whose parts cannot be read is waited for no longer than that.
	defer context.AfterFunc(ctx, n.end)()
	var all sync.WaitGroup
	for _, r := range n.shards {
		all.Go(func() { n.keep(ctx, r) })
	}
	if n.o.Flush != nil {
		all.Go(func() { every(ctx, n.o.FlushEvery, n.upkeep.flushDue, func() { n.flush(ctx) }) })
		all.Go(func() { every(ctx, n.o.TrimEvery, n.upkeep.trimDue, func() { n.trim(ctx) }) })
	}
	if n.o.Flush != nil && n.o.File != nil {
		all.Go(func() { every(ctx, spaceEvery, nil, func() { n.keepSpace(ctx) }) })
	}
	err := shard.Follow(ctx, n.o.Log, n)
	if errors.Is(err, shard.ErrTrimmed) {
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	cancel(err)
	n.end()
	all.Wait()
	for s := range n.gatherers {
		n.gatherers[s].close()
	}
	n.gathering.Wait()
	n.asker.close()
	return err
}

// Home returns the tenure in which this process is home of a shard, and whether it is, as far as it knows. It is only after
// it has applied a home record of its own: what an earlier process of this node was asked for is over then.
func (n *Node) Home(s int) (tenure uint64, ok bool) {
	now := n.shards[s].state()
	return now.applied.Tenure, now.mine && now.broken == nil && n.life.Err() == nil
}

// own says whether a record, or a commit, comes from this process.
func (n *Node) own(o record.Origin) bool {
	return o.Node == n.o.ID && o.Number != n.first && o.Number-n.first <= n.numbers.Load()-n.first
}

// HomeOf returns the node that is home of a shard, as far as this one knows; 0 if it does not know any.
func (n *Node) HomeOf(s int) record.NodeID { return n.shards[s].state().home }

// Reach waits until this node has applied a record of a shard.
func (n *Node) Reach(ctx context.Context, s int, number uint64) error {
	return n.shards[s].reach(ctx, number)
}

// Watch returns the head of a shard as this node has applied it, the node that is its home, and a channel that is closed when
// either is another.
func (n *Node) Watch(s int) (shard.Head, record.NodeID, <-chan struct{}) {
	now, changed := n.shards[s].watch()
	return now.applied, now.home, changed
}

// Assembling returns how many bytes the groups have that this node puts together from their parts, or applies, at the moment.
func Assembling(n *Node) int64 { return n.assembling.Load() }

// Life ends with Run, and a little before it returns: nothing is applied or appended any more.
func (n *Node) Life() context.Context { return n.life }

// ID is the number of this node.
func (n *Node) ID() record.NodeID { return n.o.ID }

// Applied returns the head of a shard as this node has applied it, or why it does not go on.
func (n *Node) Applied(s int) (shard.Head, error) {
	now := n.shards[s].state()
	return now.applied, now.broken
}

// Next implements [shard.Follower]. Before anything else a node reads the record again that it has applied last:
// it tells which node is home, and whether this is the log that the data was made from.
func (n *Node) Next(s int) uint64 {
	now := n.shards[s].state()
	switch {
	case now.broken != nil:
		return math.MaxUint64 // nothing is wanted any more
	case now.home == 0:
		return max(1, now.applied.Number)
	}
	return now.applied.Number + 1
}

// Take implements [shard.Follower].
func (n *Node) Take(e shard.Entry) error {
	r := n.shards[e.Shard]
	return n.noteBroken(r, n.apply(r, e))
}

// noteBroken logs that a shard cannot go on, which is no error for the others.
func (n *Node) noteBroken(r *replica, err error) error {
	if !errors.Is(err, ErrBroken) {
		return err
	}
	if r.stop(err) {
		n.o.Metrics.Broken.Add(1)
		n.o.Logger.Error("the log of a shard cannot be applied", "shard", r.shard, "error", err)
	}
	return nil
}
