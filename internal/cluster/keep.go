package cluster

import (
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/shard"
)

// This file has the log stay for a node that is sent a copy of this node's data.
//
// Such a node goes on with the log from where its copy ends. But it is not up until it has, so the trim does not wait for it; it may not even be a member yet.
// And a copy of much data takes longer than records stay. So the node that sends it says in its row from where on they are to stay: until the copy was sent, and
// for Upkeep.KeepFor after that, in which the other starts and catches up. What is beyond Upkeep.LogBytes goes all the same.

// keeps are what the log is to keep for copies.
type keeps struct {
	mu  sync.Mutex
	all map[*kept]bool
}

// kept is what it is to keep for one of them.
type kept struct {
	from  shard.Numbers
	until time.Time // zero while the copy is sent
}

// KeepLog has the log keep what follows on what is applied here now. It is called before a copy is begun. What it returns is called when that has ended, and says whether
// it was sent whole.
func KeepLog(n *Node) (end func(sent bool)) {
	k, keeps := &kept{}, &n.upkeep.keeps
	for s, r := range n.shards {
		k.from[s] = max(1, r.state().applied.Number) // a node that starts reads the last one again
	}
	keeps.mu.Lock()
	defer keeps.mu.Unlock()
	if keeps.all == nil {
		keeps.all = map[*kept]bool{}
	}
	keeps.all[k] = true
	wake(n.upkeep.flushDue) // which tells the others
	return func(sent bool) {
		keeps.mu.Lock()
		defer keeps.mu.Unlock()
		if k.until = n.o.Now().Add(n.o.KeepFor); !sent {
			delete(keeps.all, k)
		}
	}
}

// from returns from which records on the log is to stay, 0 if all may go, and gives up what is over.
func (k *keeps) from(now time.Time) (from shard.Numbers) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for one := range k.all {
		if !one.until.IsZero() && now.After(one.until) {
			delete(k.all, one)
			continue
		}
		for s, number := range one.from {
			if from[s] == 0 || number < from[s] {
				from[s] = number
			}
		}
	}
	return from
}
