package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
)

const (
	// DefaultAppendTime is Options.AppendTime where that is 0.
	DefaultAppendTime = 10 * time.Second
	// groupBytes is how long the groups of a record may be: the rest is for its head.
	groupBytes = record.MaxBytes - 64
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
	tenure  uint64
	group   record.Group
	outcome chan error // takes one without waiting
}

// AppendGroup appends the commits of one database, judged in a tenure, in a record of their own or with groups of other databases. It
// returns nil once they are applied here. The errors are those of Append. If ctx ends, it returns only once the group is in no record, or after
// Options.AppendTime. One group of a database may be under way at a time.
func (n *Node) AppendGroup(ctx context.Context, s int, tenure uint64, g record.Group) error {
	if g.Bytes() > groupBytes {
		return fmt.Errorf("%w: a group of %d bytes, at most %d are taken", ErrNever, g.Bytes(), groupBytes)
	}
	w := &waitingGroup{tenure: tenure, group: g, outcome: make(chan error, 1)}
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

// take takes as many groups of one tenure as a record holds, in the order in which they came. There is none when nobody waits.
func (g *gatherer) take() (taken []*waitingGroup) {
	g.mu.Lock()
	defer g.mu.Unlock()
	bytes := 0
	for _, w := range g.waiting {
		bytes += w.group.Bytes()
		if len(taken) == record.MaxGroups || bytes > groupBytes || len(taken) > 0 && w.tenure != taken[0].tenure {
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
		taken := n.gatherers[s].take()
		if len(taken) == 0 {
			return
		}
		r := record.Record{Kind: record.Groups}
		for _, w := range taken {
			r.Groups = append(r.Groups, w.group)
		}
		ctx, cancel := context.WithTimeout(n.life, n.o.AppendTime)
		_, err := n.Append(ctx, s, taken[0].tenure, r)
		cancel()
		for _, w := range taken {
			w.outcome <- err
		}
	}
}
