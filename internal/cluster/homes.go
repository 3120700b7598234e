package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/pause"
)

// takePause is how long a node waits after a shard could not be taken.
const takePause = 20 * time.Millisecond

// ups are the nodes that are up, as far as this one can tell.
type ups struct {
	mu      sync.Mutex
	nodes   []record.NodeID
	changed chan struct{}
	// seen is when a node was last up. Until then it counts as up at the start.
	seen  map[record.NodeID]time.Time
	start time.Time
}

// SetUp says which nodes are up, this one among them. Until it is called for the first time, no shard is taken.
// It may be wrong: that costs time, not data.
func (n *Node) SetUp(nodes []record.NodeID) {
	n.up.mu.Lock()
	defer n.up.mu.Unlock()
	now := n.o.Now()
	for _, id := range slices.Concat(n.up.nodes, nodes) {
		n.up.seen[id] = now
	}
	n.up.nodes = slices.Clone(nodes)
	close(n.up.changed)
	n.up.changed = make(chan struct{})
}

func (u *ups) watch() ([]record.NodeID, <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.nodes, u.changed
}

// live returns the nodes that are up, or were after a time.
func (u *ups) live(nodes []record.NodeID, since time.Time) (live []record.NodeID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range nodes {
		seen, ok := u.seen[id]
		if !ok {
			seen = u.start
		}
		if slices.Contains(u.nodes, id) || seen.After(since) {
			live = append(live, id)
		}
	}
	return live
}

// Order returns nodes in the order in which they are to be home of a shard: another for each shard, and the same on
// all nodes. If one is left out, the order of the others stays.
func Order(s int, nodes []record.NodeID) []record.NodeID {
	weight := func(id record.NodeID) uint64 {
		h := fnv.New64a()
		h.Write(binary.BigEndian.AppendUint64([]byte{byte(s)}, uint64(id)))
		// FNV leaves the first bits of short texts nearly alike.
		w := h.Sum64()
		w = (w ^ w>>33) * 0xff51afd7ed558ccd
		w = (w ^ w>>33) * 0xc4ceb9fe1a85ec53
		return w ^ w>>33
	}
	return slices.SortedFunc(slices.Values(nodes), func(a, b record.NodeID) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b))
	})
}

// due says whether this node is to take a shard: its home is not up, and this one is the first of those that are. It
// is, too, if this node is the home by a record that this process has not made: of an earlier process, or of a node
// that gave the shard away.
func (n *Node) due(r *replica) bool {
	up, _ := n.up.watch()
	now := r.state()
	switch {
	case len(up) == 0 || now.broken != nil || now.mine:
		return false
	case now.home == n.o.ID:
		return true
	}
	return !slices.Contains(up, now.home) && Order(r.shard, up)[0] == n.o.ID
}

// keep takes a shard whenever that is due.
func (n *Node) keep(ctx context.Context, r *replica) {
	for ctx.Err() == nil {
		_, upChanged := n.up.watch()
		_, changed := r.watch()
		if !n.due(r) {
			select {
			case <-changed:
			case <-upChanged:
			case <-ctx.Done():
			}
			continue
		}
		if pause.For(ctx, r.patience(n.o.Now())) != nil {
			return
		}
		if err := n.take(ctx, r); err != nil && ctx.Err() == nil {
			n.o.Logger.Debug("a shard was not taken", "shard", r.shard, "error", err)
			_ = pause.For(ctx, takePause)
		}
	}
}

// errNotDue says that a shard has a home by now.
var errNotDue = errors.New("the shard has a home")

// take makes this node the home of a shard: it applies all that is in its log, and appends that it is the home.
func (n *Node) take(ctx context.Context, r *replica) error {
	if err := n.Barrier(ctx, r.shard); err != nil {
		return err
	}
	head, err := n.append(ctx, n.o.Log, r.shard, func(now replicaState) (record.Record, bool) {
		return record.Record{Kind: record.Home, Home: n.o.ID, Tenure: now.applied.Tenure + 1}, n.due(r)
	})
	if err != nil {
		return errors.Join(errNotDue, err)
	}
	n.o.Logger.Info("this node is home of a shard", "shard", r.shard, "tenure", head.Tenure)
	return nil
}
