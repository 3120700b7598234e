package engine

import "runtime"

// WaitForWatches returns when everything that was answered so far is handed on.
func (d *Database) WaitForWatches() {
	q := &d.watches.queue
	for {
		q.mu.Lock()
		running := q.running
		q.mu.Unlock()
		if !running {
			return
		}
		runtime.Gosched()
	}
}

// WatchCounts returns how many watches there are, and at how many places.
func (d *Database) WatchCounts() (watches, places int) {
	w := &d.watches
	w.mu.RLock()
	defer w.mu.RUnlock()
	return int(w.count.Load()), len(w.places)
}

// WatchTroubles returns how often a watch was too far behind, and how often one
// was told anew what is there.
func (d *Database) WatchTroubles() (missed, renewed uint64) {
	return d.opts.Metrics.Overflows.Load(), d.opts.Metrics.Resyncs.Load()
}

// LoseChanges is a bug: the next changes are not for the places that there are.
func (d *Database) LoseChanges(n uint64) {
	w := &d.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.places {
		at.since = w.taken + n
	}
}
