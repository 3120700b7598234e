package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// linger is how long the writer goroutine waits for another write before it ends.
// While one write follows the other it is not made anew for each, and its stack
// has grown.
const linger = 50 * time.Millisecond

// A writer holds the order of a database's writes.
type writer struct {
	db     *Database
	limits *Limits // shared
	marks  atomic.Pointer[marks]
	group  *grouping // nil without a Log

	mu      sync.Mutex
	queue   []*task
	running bool // there is a writer goroutine, which takes from the queue
	idle    bool // it waits to be woken
	closed  bool
	// maintaining says that a goroutine works on indexes.
	maintaining bool
	dropped     bool // the newest commit was the drop; belongs to the writer goroutine
	preparing   int  // tasks that need what recent knows
	// goroutines are the writer's, and the one that works on indexes.
	goroutines sync.WaitGroup

	kept []*task       // for the next requests, while there is a writer goroutine
	wake chan struct{} // wakes it, made for the first; it has room when that is idle

	// The rest belongs to the writer goroutine. While there is none, mu guards it.

	position uint64 // of the newest commit
	begun    uint64 // see state.Published
	settings *state.Settings
	memory   *memory
}

// A memory is what a writer knows of the newest commits. It is nil when there is no writer and
// no task needs it.
type memory struct {
	recent   recent
	frontier store.Frontier
}

// run is the writer goroutine: it does what is queued, and ends when nothing
// more comes.
func (w *writer) run() {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	var done []*task // its memory is the next queue
	for {
		ops := w.take(done)
		if len(ops) == 0 {
			if !w.awaits(timer) {
				return
			}
			continue
		}
		if w.group != nil {
			w.group.do(ops)
		} else {
			doEach(w, ops)
		}
		clear(ops)
		done = ops[:0]
	}
}

// doEach makes writes one after the other.
func doEach(w *writer, ops []*task) {
	for _, task := range ops {
		if task.state.CompareAndSwap(taskQueued, taskTaken) {
			w.do(task)
		}
	}
}

// take returns what is queued, and puts an empty queue in its place. If nothing
// is, the writer is idle from then on.
func (w *writer) take(empty []*task) []*task {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.idle = true
		return nil
	}
	ops := w.queue
	w.queue = empty
	return ops
}

// awaits returns when the writer, which is idle, is woken, or reports false: then
// it has ended.
func (w *writer) awaits(timer *time.Timer) bool {
	timer.Reset(linger)
	select {
	case <-w.wake:
		return true
	case <-timer.C:
	case <-w.db.ended:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.idle { // it was woken in the same moment
		<-w.wake
		return true
	}
	w.idle, w.running = false, false
	w.queue, w.kept, w.wake = nil, nil, nil
	if w.group != nil {
		w.group.rest()
	}
	w.rest()
	return false
}
