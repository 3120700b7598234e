package engine

import "time"

// linger is how long the writer goroutine waits for another write before it ends.
// While one write follows the other it is not made anew for each, and its stack
// has grown.
const linger = 50 * time.Millisecond

// run is the writer goroutine: it does what is queued, and ends when nothing
// more comes.
func (d *Database) run() {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	var done []*operation // its memory is the next queue
	for {
		ops := d.take(done)
		if len(ops) == 0 {
			if !d.awaits(timer) {
				return
			}
			continue
		}
		for _, op := range ops {
			if op.state.CompareAndSwap(opQueued, opTaken) {
				d.do(op)
			}
		}
		clear(ops)
		done = ops[:0]
	}
}

// take returns what is queued, and puts an empty queue in its place. If nothing
// is, the writer is idle from then on.
func (d *Database) take(empty []*operation) []*operation {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		d.idle = true
		return nil
	}
	ops := d.queue
	d.queue = empty
	return ops
}

// awaits returns when the writer, which is idle, is woken, or reports false: then
// it has ended.
func (d *Database) awaits(timer *time.Timer) bool {
	timer.Reset(linger)
	select {
	case <-d.wake:
		return true
	case <-timer.C:
	case <-d.ended:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.idle { // it was woken in the same moment
		<-d.wake
		return true
	}
	d.idle, d.running, d.kept = false, false, nil
	return false
}
