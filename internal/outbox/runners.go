package outbox

import (
	"runtime"
	"sync"
	"time"
)

// runners are the goroutines that clients run on. An event for 10,000 clients is
// told by a few of them one after the other: each client with a goroutine of its
// own would have to grow its stack first, which takes as long as the encryption.
//
// A client that takes nothing holds its runner up. So there are more of them as
// soon as little is taken from the queue for a moment; nobody waits for slow
// clients longer than that. What a client is told when it begins, which may be
// large, does not come here.
type runners struct {
	most int // as long as none is held up
	all  sync.WaitGroup

	mu      sync.Mutex
	queue   []*Client // that wait for a runner, from next on
	next    int
	running int
	seen    uint64 // what taken was at the last look
	taken   uint64 // how many were taken from the queue
	looking bool   // there will be another look
}

// Runners are held up if less than few clients are taken from the queue in the
// time between two looks. A runner that is not takes a hundred.
const (
	betweenLooks = 2 * time.Millisecond
	few          = 16
)

func newRunners() *runners { return &runners{most: runtime.GOMAXPROCS(0)} }

// runFirst has a client run for the first time.
func (r *runners) runFirst(c *Client) { r.all.Go(func() { c.run() }) }

// run has a client run soon.
func (r *runners) run(c *Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == cap(r.queue) && r.next > len(r.queue)/2 {
		// A queue that is never empty does not grow with what went through it.
		left := copy(r.queue, r.queue[r.next:])
		clear(r.queue[left:])
		r.queue, r.next = r.queue[:left], 0
	}
	r.queue = append(r.queue, c)
	if r.running < r.most {
		r.add(1)
	} else if !r.looking {
		r.looking, r.seen = true, r.taken
		time.AfterFunc(betweenLooks, r.look)
	}
}

// add starts runners. The lock is held.
func (r *runners) add(n int) {
	r.running += n
	for range n {
		r.all.Go(r.loop)
	}
}

// loop runs what is in the queue, and ends.
func (r *runners) loop() {
	for c := r.take(); c != nil; c = r.take() {
		c.run()
	}
}

// take returns the next client; nil if there is none, and the runner is to end.
func (r *runners) take() *Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == len(r.queue) {
		r.running--
		return nil
	}
	c := r.queue[r.next]
	r.queue[r.next] = nil
	r.next++
	r.taken++
	switch {
	case r.next == len(r.queue) && cap(r.queue) <= keptQueue:
		r.queue, r.next = r.queue[:0], 0
	case r.next == len(r.queue):
		r.queue, r.next = nil, 0
	}
	return c
}

// keptQueue is how long a queue is kept to be used again.
const keptQueue = 16 << 10

// look doubles the runners if they are held up.
func (r *runners) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := len(r.queue) - r.next
	r.looking = waiting > 0
	if !r.looking {
		return
	}
	if r.taken-r.seen < few {
		r.add(min(r.running, waiting))
	}
	r.seen = r.taken
	time.AfterFunc(betweenLooks, r.look)
}

// wait returns when no runner is left. Clients that still want to run must be
// gone.
func (r *runners) wait() { r.all.Wait() }
