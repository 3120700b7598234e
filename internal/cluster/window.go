package cluster

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/shard"
)

const (
	// markBytes and markTime are how much a mark stands for: the smaller, the more exact a trim is.
	markBytes = 1 << 20
	markTime  = 10 * time.Second
	// marksMost is how many marks a shard has. Beyond it the oldest ones become one.
	marksMost = 1024
)

// A window knows how many bytes of the log this process has applied, and when. What was applied before its start is not counted: so less is
// trimmed than could be, and never more.
type window struct {
	mu    sync.Mutex
	marks [shard.Count][]mark // in order
}

// A mark stands for some records of a shard that follow each other.
type mark struct {
	shard       int
	first, last uint64
	bytes       int64
	from, to    time.Time
}

// add counts a record.
func (w *window) add(s int, number uint64, bytes int64, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	marks := w.marks[s]
	if i := len(marks) - 1; i >= 0 && marks[i].bytes < markBytes && now.Sub(marks[i].from) < markTime {
		marks[i].last, marks[i].to = number, now
		marks[i].bytes += bytes
		return
	}
	marks = append(marks, mark{s, number, number, bytes, now, now})
	if len(marks) > marksMost {
		marks[1].first, marks[1].from = marks[0].first, marks[0].from
		marks[1].bytes += marks[0].bytes
		marks = slices.Delete(marks, 0, 1)
	}
	w.marks[s] = marks
}

// before returns the numbers of the first records that are not to be trimmed: those that were applied after a time and are within the newest bytes of all shards.
func (w *window) before(bytes int64, since time.Time) (first shard.Numbers) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Concat(w.marks[:]...)
	slices.SortStableFunc(all, func(a, b mark) int {
		return cmp.Or(b.to.Compare(a.to), cmp.Compare(b.last, a.last))
	})
	var newer int64
	for _, m := range all {
		if newer <= bytes && m.to.After(since) {
			newer += m.bytes
			continue
		}
		first[m.shard] = max(first[m.shard], m.last+1)
	}
	return first
}
