package deliver

import (
	"sync"
	"sync/atomic"
)

// A tally counts the bytes of a hook's notices that are stored and not delivered. The writers of databases report
// new ones, the queue those that it has counted itself, as it can read one before it is reported; a position counts once.
type tally struct {
	total *atomic.Int64 // of all hooks

	mu    sync.Mutex
	open  bool   // what was stored before is known; until then reports are passed over
	last  uint64 // notices up to here are counted
	bytes int64
}

// begin has notices counted from now on: those after the newest position of the database, which is returned.
func (t *tally) begin(newest func() uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	// A notice that was reported before this is not after that position; one that comes later waits for the lock.
	t.open, t.last = true, newest()
	return t.last
}

// note counts a notice, unless it is counted.
func (t *tally) note(position uint64, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open && position > t.last {
		t.last = position
		t.change(bytes)
	}
}

// add counts bytes more, or less if they are negative.
func (t *tally) add(bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		t.change(bytes)
	}
}

func (t *tally) change(bytes int64) {
	t.bytes += bytes
	t.total.Add(bytes)
}

// sum returns the bytes of the notices up to a position.
func (t *tally) sum() (last uint64, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.bytes
}

// end takes back all that was counted; what is reported later is passed over.
func (t *tally) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.change(-t.bytes)
	t.open = false
}
