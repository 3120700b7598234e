package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/databases"
	"github.com/livetree/livetree/internal/cluster/fulldisk"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
)

const (
	// statusCall is the kind of the call by which a node asks others how they are.
	statusCall = "status"
	// askTime is how long an answer is waited for.
	askTime = time.Second
	// behindRecords is how many records a node may lack without being behind.
	behindRecords = 1000
	// freeLow is how little space on a disk is a problem.
	freeLow = 1 << 30
)

// report is what this node tells the others.
func (a *Assembly) report() status.Report {
	r := status.Report{Addr: a.addr.Load().(string), Version: a.o.Version, Free: store.FreeBytes(a.store), Ready: a.ready.Load(), Settings: a.o.Settings}
	for s := range shard.Count {
		head, err := a.node.Applied(s)
		applied := status.Applied{Number: head.Number, Digest: head.Digest.String()}
		_, applied.Home = a.node.Home(s)
		if err != nil {
			applied.Broken = err.Error()
		}
		r.Shards = append(r.Shards, applied)
	}
	return r
}

// serveStatus answers a node that asks how this one is.
func (a *Assembly) serveStatus(context.Context, []byte) ([]byte, error) {
	return json.Marshal(a.report())
}

// SetAddr says where this node serves clients.
func (a *Assembly) SetAddr(addr string) { a.addr.Store(addr) }

// reports asks all members how they are. Those that do not answer are missing.
func (a *Assembly) reports(ctx context.Context, members []membership.Member) map[string]status.Report {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return gatherReports(members, func(m membership.Member) (r status.Report, ok bool) {
		if m.ID == a.node.ID() {
			return a.report(), true
		}
		said, err := a.front.Call(ctx, m.Addr, statusCall, nil)
		ok = err == nil && json.Unmarshal(said, &r) == nil && (len(r.Shards) == shard.Count || r.Full)
		return r, ok
	})
}

// gatherReports asks all members at once, and returns what those say that answer.
func gatherReports(members []membership.Member, ask func(membership.Member) (status.Report, bool)) map[string]status.Report {
	var mu sync.Mutex
	var all sync.WaitGroup
	reports := make(map[string]status.Report)
	for _, m := range members {
		all.Go(func() {
			if r, ok := ask(m); ok {
				mu.Lock()
				defer mu.Unlock()
				reports[m.Addr] = r
			}
		})
	}
	all.Wait()
	return reports
}

// Status returns how the cluster is, as far as this node can tell.
func (a *Assembly) Status(ctx context.Context) *status.Cluster {
	members := a.membership.Members()
	c := &status.Cluster{ID: a.membership.Cluster(), Level: int(databases.Level(a.data)), Self: a.o.Addr, Problems: []string{}}
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	heads, err := a.membership.Log().Heads(asking)
	c.Quorum = err == nil
	c.LogLeader = a.membership.AddrOf(record.NodeID(a.membership.Log().Leader()))
	reports := a.reports(ctx, members)
	for _, m := range members {
		c.Nodes = append(c.Nodes, a.nodeOf(m, reports, heads))
	}
	for s := range shard.Count {
		c.Shards = append(c.Shards, shardOf(a, s, members, reports, heads[s]))
	}
	a.findProblems(c, members)
	c.Problems = append(append(c.Problems, clockProblems(a, members)...), disagreements(reports)...)
	c.Problems = append(append(c.Problems, a.checker.Problems()...), alarmProblems(a)...)
	return c
}

// nodeOf returns how a node is.
func (a *Assembly) nodeOf(m membership.Member, reports map[string]status.Report, heads shard.Heads) status.Node {
	n := status.Node{Node: m.Addr, Voter: m.Voter, State: status.Down, Clock: float64(m.Clock) / float64(time.Millisecond)}
	r, ok := reports[m.Addr]
	if !ok {
		return n
	}
	n.Addr, n.Version, n.Free = r.Addr, r.Version, r.Free
	if r.Full {
		n.State = status.Full
		return n
	}
	missing := uint64(0)
	for s, applied := range r.Shards {
		missing += max(heads[s].Number, applied.Number) - applied.Number
		if applied.Home {
			n.Leads++
		}
	}
	switch {
	case !m.Voter:
		n.State = status.Joining
	case missing > behindRecords:
		n.State = status.Behind
	case !r.Ready:
		n.State = status.Leaving
	default:
		n.State = status.Ready
	}
	return n
}

// shardOf returns how a shard is on all nodes.
func shardOf(a *Assembly, s int, members []membership.Member, reports map[string]status.Report, head shard.Head) status.Shard {
	_, home, _ := a.node.Watch(s)
	out := status.Shard{Shard: s, Leader: a.membership.AddrOf(home), Term: head.Tenure, Committed: head.Number}
	for _, m := range members {
		r, ok := reports[m.Addr]
		if !ok || r.Full {
			continue
		}
		applied := r.Shards[s]
		replica := status.Replica{Node: m.Addr, Applied: applied.Number, Digest: applied.Digest, State: status.OK}
		switch {
		case applied.Broken != "" || applied.Number == head.Number && applied.Digest != head.Digest.String() && head.Number > 0:
			replica.State = status.Damaged
		case applied.Number+behindRecords < head.Number:
			replica.State = status.Behind
		}
		out.Replicas = append(out.Replicas, replica)
	}
	return out
}

// findProblems says what is not well, and what to do.
func (a *Assembly) findProblems(c *status.Cluster, members []membership.Member) {
	say := func(format string, args ...any) { c.Problems = append(c.Problems, fmt.Sprintf(format, args...)) }
	voters := 0
	for i, n := range c.Nodes {
		if n.Voter {
			voters++
		}
		switch n.State {
		case status.Down:
			since := a.o.Now().Sub(members[i].Since).Round(time.Second)
			say("%s has been down for %s: start it, or livetree cluster remove it", n.Node, since)
			continue
		case status.Full:
			say("%s waits for space on its disk, which has %d MiB left: free some, until %d MiB are; it goes on by itself", n.Node, n.Free>>20, fulldisk.Enough>>20)
			continue
		case status.Joining:
			say("%s is joining and has no vote yet: wait, and look into its log", n.Node)
		case status.Behind:
			say("%s is behind, and applies what was written while it was away: wait", n.Node)
		}
		if n.Free > 0 && n.Free < freeLow {
			say("%s has %d MiB left on its disk: free some space", n.Node, n.Free>>20)
		}
	}
	if !c.Quorum {
		say("a majority of the nodes is not reached: nothing can be written until some are started")
	}
	if voters > 0 && voters%2 == 0 {
		say("%d nodes vote, and %d would survive as many losses: start one more, or remove one", voters, voters-1)
	}
	damaged := map[string]bool{}
	for _, s := range c.Shards {
		if i := slices.IndexFunc(s.Replicas, func(r status.Replica) bool { return r.State == status.Damaged }); i >= 0 && !damaged[s.Replicas[i].Node] {
			damaged[s.Replicas[i].Node] = true
			say("the data of %s differs from the log of the cluster: stop it, empty its data directory, and start it again", s.Replicas[i].Node)
		}
	}
}

// Broken returns why this node cannot go on with a shard, nil if it can with all.
func (a *Assembly) Broken() error {
	for s := range shard.Count {
		if _, err := a.node.Applied(s); err != nil {
			return err
		}
	}
	return nil
}

// Condition returns one word for readiness: ok, or what is not well with this node.
func (a *Assembly) Condition() string {
	switch {
	case a.Broken() != nil || isCorrupt(a):
		return "damaged"
	case !a.ready.Load():
		return "joining"
	case a.membership.Log().Leader() == 0:
		return "no-leader"
	case clockOff(a.membership.Members(), a.node.ID(), clockTolerance) != 0:
		return status.ConditionClock
	}
	return "ok"
}

// OthersWell returns how many other nodes of the list are ready, and have all of their data.
func (a *Assembly) OthersWell(ctx context.Context) (well int) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for _, addr := range a.o.List {
		if addr == a.o.Addr {
			continue
		}
		said, err := a.front.Call(ctx, addr, statusCall, nil)
		var r status.Report
		if err != nil || json.Unmarshal(said, &r) != nil || !r.Ready {
			continue
		}
		if !slices.ContainsFunc(r.Shards, func(s status.Applied) bool { return s.Broken != "" }) {
			well++
		}
	}
	return well
}

// Remove removes a node from the cluster. If that is this one, it hands over first what it leads; if it is not removed after all, it serves on.
func (a *Assembly) Remove(ctx context.Context, node string) error {
	_, err := membership.Removable(ctx, a.membership, node)
	if was := a.ready.Load(); err == nil && was && node == a.o.Addr {
		a.HandOver(ctx)
		defer func() {
			if err != nil {
				a.membership.SetReady(true)
				a.ready.Store(true)
			}
		}()
	}
	if err == nil {
		err = a.membership.Remove(ctx, node)
	}
	for tries := 0; isPassing(err) && tries < removeTries; tries++ {
		if pause.For(ctx, removePause) != nil {
			break
		}
		err = a.membership.Remove(ctx, node)
	}
	switch {
	case errors.Is(err, membership.ErrNoNode):
		return fault.Wrap(fault.NotFound, err, "%q is not a node of this cluster", node)
	case err != nil:
		return fault.Wrap(fault.Conflict, err, "%v", err)
	}
	return nil
}

// isPassing reports whether etcd will allow a change of nodes soon: for some seconds after one, or after a change of the leader, it does not.
func isPassing(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"unhealthy cluster", "leader changed", "timed out", "no leader"},
		func(text string) bool { return strings.Contains(err.Error(), text) })
}

// removeTries is how often it is tried to remove a node, with removePause in between.
const (
	removeTries = 8
	removePause = time.Second
)

// Move gives the shards of which this node is the home to another one, or to several if none is named.
func (a *Assembly) Move(ctx context.Context, to string) error {
	others := a.others()
	if to != "" {
		id := a.membership.IDOf(to)
		if !slices.Contains(others, id) {
			return fault.New(fault.Conflict, "%q is not another node that is ready", to)
		}
		others = []record.NodeID{id}
	}
	if len(others) == 0 {
		return fault.New(fault.Conflict, "there is no other node that is ready")
	}
	a.giveTo(ctx, others)
	return nil
}
