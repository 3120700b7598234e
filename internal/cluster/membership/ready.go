package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/pause"
)

const (
	// readyPause is the time between two looks at the members.
	readyPause = 50 * time.Millisecond
	// learnersAtOnce is how many members without a vote etcd allows.
	learnersAtOnce = 2
)

// errClosed says that Close was called.
var errClosed = errors.New("this node has left its cluster")

// Ready makes this node one that serves: it waits until caughtUp returns, gets this node its vote if it has none, and
// waits until all nodes of a cluster that is being founded without data vote. From then on the others count on it.
func (m *Membership) Ready(ctx context.Context, caughtUp func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(m.life, func() { cancel(errClosed) })
	defer stop()
	stopFailed := context.AfterFunc(m.etcd, func() { cancel(m.failure()) })
	defer stopFailed()
	if err := caughtUp(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	logged := m.o.Now()
	for {
		wait := m.vote(ctx)
		if wait == "" {
			break
		}
		if now := m.o.Now(); now.Sub(logged) >= waitLog {
			logged = now
			m.o.Logger.Info("this node waits to be ready", "waits", wait)
		}
		if err := pause.For(ctx, readyPause); err != nil {
			return err
		}
	}
	if err := endForming(m); err != nil {
		return err
	}
	m.SetReady(true)
	return nil
}

// endForming notes that the cluster is founded: this node has seen all that have to vote.
func endForming(m *Membership) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	f := fileOf(m)
	if f.Forming == nil {
		return nil
	}
	f.Forming = nil
	return m.writeFile(f)
}

// SetReady says whether the other nodes may count on this one. A node that is about to stop says no.
func (m *Membership) SetReady(ready bool) { m.update(func() { m.ready = ready }) }

// vote gets this node its vote, and returns what it waits for. It returns nothing when all vote that have to.
func (m *Membership) vote(ctx context.Context) (wait string) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	peers, err := m.Log().Peers(ctx)
	if err != nil {
		return fmt.Sprintf("for a majority of the members: %v", err)
	}
	m.setPeers(peers)
	var learners int
	var missing []string
	forming := m.forming()
	for _, node := range forming {
		if !slices.ContainsFunc(peers, func(p etcdlog.Peer) bool { return p.Address == node }) {
			missing = append(missing, node)
		}
	}
	votes, all := false, len(missing) == 0
	for _, p := range peers {
		if !p.Voter {
			learners++
		}
		votes = votes || p.Voter && p.ID == m.Log().ID()
		if slices.Contains(forming, p.Address) && !p.Voter {
			all = false
		}
	}
	switch {
	case !votes && len(missing) > 0 && learners < learnersAtOnce:
		// Members that are added before the first gets its vote are taken at once, later ones only after seconds.
		return "for " + strings.Join(missing, ", ") + " to join"
	case !votes:
		if err := m.Log().Promote(ctx, m.Log().ID()); err != nil {
			return fmt.Sprintf("for its vote: %v", err)
		}
		return "to see its vote"
	case !all:
		return "for all nodes of the list to vote"
	}
	return ""
}

// forming are the nodes that found the cluster together. That is over once one of them is ready.
func (m *Membership) forming() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ready := range m.serving {
		if ready {
			return nil
		}
	}
	return m.file.Forming
}
