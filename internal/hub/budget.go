package hub

import (
	"sync"
	"sync/atomic"
)

// A Budget bounds what topics keep: each of them, and all together.
type Budget struct {
	limit      int64
	topicBytes int
	used       atomic.Int64

	mu sync.Mutex
	// heavy are the topics that keep enough to be worth a look when there is too
	// much. There are few of them, or each is small.
	heavy map[keeper]struct{}
}

// A keeper is a topic, of whatever messages.
type keeper interface {
	kept() int
	shed()
}

// NewBudget returns a budget of so many bytes for all topics, and for each.
func NewBudget(all int64, topic int) *Budget {
	return &Budget{limit: all, topicBytes: topic, heavy: make(map[keeper]struct{})}
}

// Used returns how many bytes all topics keep.
func (b *Budget) Used() int64 { return b.used.Load() }

// Limit returns how many bytes all topics may keep.
func (b *Budget) Limit() int64 { return b.limit }

// heavyShare is the part of the budget from which on a topic is heavy.
const heavyShare = 1024

// add counts a change of what a topic keeps.
func (b *Budget) add(k keeper, from, to int) {
	b.used.Add(int64(to - from))
	threshold := int(b.limit / heavyShare)
	if (from > threshold) == (to > threshold) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if to > threshold {
		b.heavy[k] = struct{}{}
	} else {
		delete(b.heavy, k)
	}
}

// relieve has the topic that keeps the most forget it, as long as there is too
// much. Topics of less than their share can make too much only in great number;
// they are bounded by the number of watches.
func (b *Budget) relieve() {
	for b.used.Load() > b.limit {
		heaviest := b.heaviest()
		if heaviest == nil {
			return
		}
		heaviest.shed()
	}
}

func (b *Budget) heaviest() keeper {
	b.mu.Lock()
	candidates := make([]keeper, 0, len(b.heavy))
	for k := range b.heavy {
		candidates = append(candidates, k)
	}
	b.mu.Unlock()
	var heaviest keeper
	most := 0
	for _, k := range candidates {
		if kept := k.kept(); kept > most {
			heaviest, most = k, kept
		}
	}
	return heaviest
}
