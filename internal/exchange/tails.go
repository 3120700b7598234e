package exchange

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/clientaddr"
)

const (
	// tailBytes is what a request takes at most whose answer has a tail; one with a longer head has none.
	tailBytes = requestBytes + 4<<10
	// tailStep is how many tails are paid for at a time.
	tailStep = 4
	// tailGrace is how much later than its deadline a tail is taken for gone.
	tailGrace = 5 * time.Second
)

// Tails are the ends of answers that one connection of HTTP/2 may have left to net/http: it sends them when a handler has returned, in
// the frame with the last of the body, and so with a frame less than a handler that waits for its client would need.
//
// Nobody is told when the client has taken such an end. So what its request holds is not given back then: it counts until the
// connection has no request any more, or until the deadline of the end must have passed. There is never more to count than a connection
// may have requests, so one that is busy pays for all of them once. It is memory to spare that pays: at most a sixteenth of the budget
// for a connection, and an eighth for all of them. Without it, a handler waits for its client, and counts by itself.
type Tails struct {
	most   int // requests of the connection
	within time.Duration

	mu     sync.Mutex
	claim  *budget.Claim
	paid   int         // tails that the claim is for
	recent int         // begun since the timer was set
	older  int         // begun in as long before that
	timer  *time.Timer // runs while there are any; nil at first
	closed bool
}

// NewTails returns the tails of a connection that may have so many requests. Within is how long after its handler the end of an answer is
// waited for, which whoever stands around the handler sees to.
func NewTails(answers *budget.Budget, remote netip.AddrPort, most int, within time.Duration) *Tails {
	client := budget.Client{Network: clientaddr.Network(remote.Addr()), Connection: remote, Keeps: true}
	return &Tails{most: most, within: within + tailGrace, claim: answers.Claim(client, false)}
}

// tailsKey is where the context of a request has the Tails of its connection.
type tailsKey struct{}

// WithTails returns the context of a connection with its tails.
func WithTails(ctx context.Context, t *Tails) context.Context {
	return context.WithValue(ctx, tailsKey{}, t)
}

// LeaveTail reports whether the end of an answer may be left to net/http. Then the handler should return.
func LeaveTail(w http.ResponseWriter, r *http.Request) bool {
	x := Of(w)
	if x == nil {
		return false
	}
	t, ok := r.Context().Value(tailsKey{}).(*Tails)
	if !ok || r.Context().Err() != nil || HeldBytes(r) > tailBytes || !t.add() {
		return false
	}
	x.unsent = false // it is seen to
	return true
}

// add counts one more, if there is memory for it.
func (t *Tails) add() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || !t.pay(min(t.most, t.older+t.recent+1)) {
		return false
	}
	if t.recent++; t.recent == 1 && t.older == 0 {
		t.wait()
	}
	return true
}

// pay takes the memory of so many tails, and of some more that may come.
func (t *Tails) pay(tails int) bool {
	if tails <= t.paid {
		return true
	}
	tails = min(t.most, (tails+tailStep-1)/tailStep*tailStep)
	if !t.claim.GrowIfSpare(int64(tails) * tailBytes) {
		return false
	}
	t.paid = tails
	return true
}

// wait begins the time after which what is recent is older.
func (t *Tails) wait() {
	if t.timer == nil {
		t.timer = time.AfterFunc(t.within, t.age)
		return
	}
	t.timer.Reset(t.within)
}

// age forgets what is so old that it must be gone.
func (t *Tails) age() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.older, t.recent = t.recent, 0
	if t.older == 0 {
		t.release()
		return
	}
	if needed := min(t.most, t.older); needed < t.paid {
		t.claim.Grow(int64(needed) * tailBytes)
		t.paid = needed
	}
	t.wait()
}

// release gives all the memory back.
func (t *Tails) release() {
	t.claim.Release()
	t.paid, t.recent, t.older = 0, 0, 0
}

// Idle tells that the connection has no request, and so no tail. That of nil, like Close, does nothing.
func (t *Tails) Idle() { t.end(false) }

// Close tells that the connection has ended.
func (t *Tails) Close() { t.end(true) }

func (t *Tails) end(closed bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = t.closed || closed
	t.release()
	if t.timer != nil {
		t.timer.Stop()
	}
}
