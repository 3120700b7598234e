package cluster

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// Upkeep says how a node keeps the log small. Without Flush it does not.
type Upkeep struct {
	// Flush has the data survive a crash, and returns which records are in what would.
	Flush func() (shard.Numbers, error)
	// FlushEvery is how often that is done, and FlushBytes after how many bytes of records at the latest.
	FlushEvery time.Duration
	FlushBytes int64
	// Members returns the nodes of the cluster, up or not, those that join among them. Without them nothing is trimmed.
	//
	// Before a node starts from a copy, [shard.Publish] has to tell for it that it has flushed nothing, and only then the copy may be taken: so it does not count for what a
	// majority has flushed. The node that sends the copy has the log keep what the copy lacks: see [KeepLog].
	Members func() []record.NodeID
	// TrimEvery is how often the home of shard 0 trims the log.
	TrimEvery time.Duration
	// KeepFor is how long records stay that all nodes have flushed, if they are among the newest KeepBytes. It is also how long a node is waited
	// for that is away, and a transfer for which nothing is done.
	KeepFor   time.Duration
	KeepBytes int64
	// LogBytes is how much of the log stays for a node that does not flush.
	LogBytes int64
	// File is the one that the log is in, nil if its size does not matter.
	File File
}

// What is used where Upkeep says nothing.
const (
	DefaultFlushEvery = 30 * time.Second
	DefaultFlushBytes = 64 << 20
	DefaultTrimEvery  = time.Minute
	DefaultKeepFor    = 10 * time.Minute
	DefaultKeepBytes  = 256 << 20
	DefaultLogBytes   = 1 << 30
)

// filled returns what is used. All that stays in the log must fit into a part of the file: what was deleted takes room, too, for a while.
func (u Upkeep) filled() Upkeep {
	u.FlushEvery = cmp.Or(u.FlushEvery, DefaultFlushEvery)
	u.FlushBytes = cmp.Or(u.FlushBytes, DefaultFlushBytes)
	u.TrimEvery = cmp.Or(u.TrimEvery, DefaultTrimEvery)
	u.KeepFor = cmp.Or(u.KeepFor, DefaultKeepFor)
	u.KeepBytes = cmp.Or(u.KeepBytes, DefaultKeepBytes)
	u.LogBytes = cmp.Or(u.LogBytes, DefaultLogBytes)
	if u.Members == nil {
		u.Members = func() []record.NodeID { return nil }
	}
	if u.File != nil {
		quota := u.File.Quota()
		u.LogBytes = min(u.LogBytes, quota/4)
		u.KeepBytes = min(u.KeepBytes, quota/8)
		u.FlushBytes = min(u.FlushBytes, quota/16)
	}
	return u
}

// upkeep is what a node does to keep the log small.
type upkeep struct {
	window window
	keeps  keeps
	// unflushed and untrimmed are the bytes of records that were applied since the last flush, and the last trim.
	unflushed, untrimmed atomic.Int64
	// flushDue and trimDue have something in them when it is time before it is.
	flushDue, trimDue chan struct{}
	standing          map[record.TransferID]standing // of the one goroutine that trims
	full              bool                           // of the one that looks at the file
}

// A standing transfer is one for which nothing was done since this node looked first.
type standing struct {
	touched int64
	since   time.Time
}

func wake(due chan struct{}) {
	select {
	case due <- struct{}{}:
	default:
	}
}

// noteApplied counts a record that was applied.
func (n *Node) noteApplied(s int, number uint64, bytes int64) {
	u := &n.upkeep
	u.window.add(s, number, bytes, n.o.Now())
	if u.unflushed.Add(bytes) >= n.o.FlushBytes {
		wake(u.flushDue)
	}
	if u.untrimmed.Add(bytes) >= n.o.KeepBytes/2 {
		wake(u.trimDue)
	}
}

// every does something now and then, and when it is due, until ctx ends.
func every(ctx context.Context, span time.Duration, due <-chan struct{}, do func()) {
	tick := time.NewTicker(span)
	defer tick.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-tick.C:
		case <-due:
		case <-ctx.Done():
		}
	}
}

// flush has the data survive a crash, and tells the others. It is done at the start, too: a node that was started from a copy may have
// less than it said before.
func (n *Node) flush(ctx context.Context) {
	n.upkeep.unflushed.Store(0)
	numbers, err := n.o.Flush()
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, n.o.FlushEvery)
		defer cancel()
		err = shard.Publish(ctx, n.o.Log, shard.Flushed{Node: n.o.ID, Numbers: numbers, Level: n.o.Known, Keep: n.upkeep.keeps.from(n.o.Now())})
	}
	if err != nil && ctx.Err() == nil {
		n.o.Logger.Warn("what this node has flushed is not told, so the log grows", "error", err)
	}
}

// trim deletes what is not needed of the log, if this node is home of shard 0. That two nodes do so costs time, not data.
func (n *Node) trim(ctx context.Context) {
	n.upkeep.untrimmed.Store(0)
	if n.HomeOf(0) != n.o.ID {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, n.o.TrimEvery)
	defer cancel()
	err := n.trimTo(ctx, n.o.KeepBytes, n.o.KeepFor, n.o.LogBytes)
	if err == nil {
		err = n.sweep(ctx)
	}
	if err != nil && ctx.Err() == nil {
		n.o.Logger.Warn("the log was not trimmed", "error", err)
	}
}

// trimTo trims what all live nodes have flushed, but for the newest bytes of some time, and what is beyond the newest most, whoever has not flushed that.
func (n *Node) trimTo(ctx context.Context, bytes int64, keepFor time.Duration, most int64) error {
	rows, err := n.o.Log.Flushed(ctx)
	if err != nil {
		return err
	}
	now := n.o.Now()
	members := n.o.Members()
	old := n.upkeep.window.before(bytes, now.Add(-keepFor))
	far := n.upkeep.window.before(most, time.Time{})
	return n.o.Log.Trim(ctx, trimBelow(members, n.up.live(members, now.Add(-n.o.KeepFor)), rows, old, far))
}

// trimBelow returns below which numbers records may be trimmed: those that are old, that all live nodes have flushed, and that none of these keeps for a copy; and those that are far
// back whoever has not, or does. In any case a majority of the nodes has flushed them: what is trimmed must survive a crash of all. What a node
// has flushed last is not trimmed, since that is the record that it looks at first when it starts.
func trimBelow(members, live []record.NodeID, rows []shard.Flushed, old, far shard.Numbers) (below shard.Numbers) {
	if len(members) == 0 || len(live) == 0 {
		return below
	}
	for s := range below {
		of := func(nodes []record.NodeID) (numbers []uint64) {
			for _, id := range nodes {
				i := slices.IndexFunc(rows, func(row shard.Flushed) bool { return row.Node == id })
				if i < 0 {
					numbers = append(numbers, 0)
				} else {
					numbers = append(numbers, rows[i].Numbers[s])
				}
			}
			slices.Sort(numbers)
			return numbers
		}
		all := of(members)
		// As many as a majority have flushed at least this.
		majority := all[len(all)-len(all)/2-1]
		below[s] = min(majority, max(far[s], min(old[s], of(live)[0], keptFrom(s, live, rows))))
	}
	return below
}

// keptFrom returns from which record on live nodes have the log of a shard stay.
func keptFrom(s int, live []record.NodeID, rows []shard.Flushed) (from uint64) {
	from = math.MaxUint64
	for _, row := range rows {
		if row.Keep[s] > 0 && slices.Contains(live, row.Node) {
			from = min(from, row.Keep[s])
		}
	}
	return from
}

// sweep abandons transfers for which nothing was done for a while. The clock is that of this node alone, and only says when: a transfer that goes on after
// all is told that it was abandoned, and its record is refused.
func (n *Node) sweep(ctx context.Context) error {
	open, err := n.o.Log.OpenTransfers(ctx)
	if err != nil {
		return err
	}
	now, seen := n.o.Now(), map[record.TransferID]standing{}
	for _, t := range open {
		s, ok := n.upkeep.standing[t.ID]
		if !ok || s.touched != t.Touched {
			s = standing{t.Touched, now}
		}
		seen[t.ID] = s
		if now.Sub(s.since) < n.o.KeepFor {
			continue
		}
		if err := n.o.Log.Abandon(ctx, t, t.Touched); err != nil {
			n.o.Logger.Debug("a transfer is not abandoned", "transfer", t.ID, "error", err)
		}
	}
	n.upkeep.standing = seen
	return nil
}
