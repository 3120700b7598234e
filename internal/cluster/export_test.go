package cluster

import (
	"time"

	"github.com/livetree/livetree/internal/cluster/shard"
)

// TrimBelow is trimBelow.
var TrimBelow = trimBelow

// A Window is a window.
type Window struct{ w window }

// Add is add.
func (w *Window) Add(s int, number uint64, bytes int64, now time.Time) {
	w.w.add(s, number, bytes, now)
}

// Before is before.
func (w *Window) Before(bytes int64, since time.Time) shard.Numbers { return w.w.before(bytes, since) }
