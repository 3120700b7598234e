package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

const (
	// DefaultAppendTime is Options.AppendTime where that is 0.
	DefaultAppendTime = 10 * time.Second
	// headBytes is what is left of a record for its head.
	headBytes = 64
)

// A gatherer makes one record of all groups of a shard that are ready while another is under way. So
// more load means larger records, not more of them.
type gatherer struct {
	mu      sync.Mutex
	waiting []*waitingGroup // one for each caller
	running bool
	ended   bool // nothing is taken any more
}

// A waitingGroup waits for its record.
type waitingGroup struct {
	tenure uint64
	group  record.Group
	// parcel is where the group was sent to, if it is larger than a record.
	parcel  *parcel
	outcome chan error // takes one without waiting
}

// AppendGroup appends the commits of one database, judged in a tenure, in a record of their own or with groups of other databases. It
// returns nil once they are applied here. The errors are those of Append. If ctx ends, it returns only once the group is in no record, or after
// Options.AppendTime. One group of a database may be under way at a time. A group may be of any size up to that of ErrTooLarge. Its
// effects must not change any more.
func (n *Node) AppendGroup(ctx context.Context, s int, tenure uint64, g record.Group) error {
	w := &waitingGroup{tenure: tenure, group: g, outcome: make(chan error, 1)}
	if g.Bytes() > n.groupBytes() {
		return n.appendParts(ctx, s, w)
	}
	return n.await(ctx, s, w)
}

// groupBytes is how long the groups of a record may be.
func (n *Node) groupBytes() int { return n.o.PartBytes - headBytes }

// await has a group be in the next record, and returns its outcome.
func (n *Node) await(ctx context.Context, s int, w *waitingGroup) error {
	gathering := &n.gatherers[s]
	gathering.mu.Lock()
	if gathering.ended {
		gathering.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrNever, errEnded)
	}
	gathering.waiting = append(gathering.waiting, w)
	if !gathering.running {
		gathering.running = true
		n.gathering.Go(func() { n.gather(s) })
	}
	gathering.mu.Unlock()
	select {
	case err := <-w.outcome:
		return err
	case <-ctx.Done():
	}
	if gathering.remove(w) {
		return fmt.Errorf("%w: %w", ErrNever, context.Cause(ctx))
	}
	// It is under way. The next group of this database must not be judged before its outcome is told.
	return <-w.outcome
}

// close has no group be taken any more.
func (g *gatherer) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

// remove takes back a group that is in no record yet, and says whether it was.
func (g *gatherer) remove(w *waitingGroup) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, w)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return i >= 0
}

// take takes as many groups of one tenure as a record of some bytes holds, in the order in which they came, or one that was sent in
// parts. There is none when nobody waits.
func (g *gatherer) take(most int) (taken []*waitingGroup) {
	g.mu.Lock()
	defer g.mu.Unlock()
	bytes := 0
	for _, w := range g.waiting {
		bytes += w.group.Bytes()
		if len(taken) == record.MaxGroups || len(taken) > 0 && (bytes > most || w.tenure != taken[0].tenure) {
			break
		}
		taken = append(taken, w)
	}
	g.waiting = slices.Delete(g.waiting, 0, len(taken))
	g.running = len(taken) > 0
	return taken
}

// gather appends one record after the other until no group waits.
func (n *Node) gather(s int) {
	for {
		taken := n.gatherers[s].take(n.groupBytes())
		if len(taken) == 0 {
			return
		}
		log, r := n.o.Log, record.Record{Kind: record.Groups}
		for _, w := range taken {
			r.Groups = append(r.Groups, w.group)
		}
		if p := taken[0].parcel; p != nil {
			log, r = shard.Assembling(log, p.transfer), p.record(taken[0].group)
		}
		ctx, cancel := context.WithTimeout(n.life, n.o.AppendTime)
		_, err := n.appendIn(ctx, log, s, taken[0].tenure, r)
		cancel()
		for _, w := range taken {
			w.outcome <- err
		}
	}
}
