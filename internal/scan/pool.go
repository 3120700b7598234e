package scan

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

const (
	// freeCost is how much a pass may cost before it waits for its turn.
	freeCost = 256
	// maxPasses is how many long passes run at a time, and no more than half of the
	// processors.
	maxPasses = 4
	// maxWait is how long a pass waits for its turn.
	maxWait = 30 * time.Second
	// poolBytes is how much memory all that is known may take.
	poolBytes = 64 << 20
)

// A Pool is what the scans of all databases of a server share: the turns of long passes,
// and the memory of what they found.
type Pool struct {
	bounds Bounds
	turns  chan struct{}
	passes atomic.Uint64
	memory *budget.Budget
}

// NewPool returns a pool. All that is found is kept within the bounds.
func NewPool(b Bounds) *Pool {
	if b.All == 0 {
		b.All = poolBytes
	}
	return &Pool{bounds: b, memory: budget.New(budget.Options{Limit: b.All}), turns: make(chan struct{}, max(1, min(maxPasses, runtime.GOMAXPROCS(0)/2)))}
}

// Passes returns how many long passes have begun.
func (p *Pool) Passes() uint64 { return p.passes.Load() }

// Used returns how many bytes are claimed.
func (p *Pool) Used() int64 { return p.memory.Taken() }

// ErrFull says that too many windows are known that were found by scans: of all clients, or
// of one of them.
var ErrFull = fault.New(fault.Unavailable, "too many queries without an index are watched")

// Claim returns a claim of a client for the memory of what is known. A client gets a
// quarter of it, a database a half.
func (p *Pool) Claim(c budget.Client) *budget.Claim {
	c.Keeps = true
	return p.memory.Claim(c, true)
}

// ErrBusy says that a pass has waited too long for its turn.
var ErrBusy = fault.New(fault.Unavailable, "too many long reads and queries without an index are running, try again")

// A turn is when a pass may use a processor for long.
type turn struct {
	pool  *Pool
	has   bool
	begun bool
}

// begin waits for the turn, unless the pass has it.
func (t *turn) begin(done <-chan struct{}) error {
	if t.has {
		return nil
	}
	select {
	case t.pool.turns <- struct{}{}:
	default:
		if err := t.wait(done); err != nil {
			return err
		}
	}
	if !t.begun {
		t.pool.passes.Add(1)
	}
	t.has, t.begun = true, true
	return nil
}

func (t *turn) wait(done <-chan struct{}) error {
	late := time.NewTimer(maxWait)
	defer late.Stop()
	select {
	case t.pool.turns <- struct{}{}:
		return nil
	case <-done:
		return store.ErrUnwanted
	case <-late.C:
		return ErrBusy
	}
}

// end lets another pass begin. It may be called without a turn.
func (t *turn) end() {
	if t.has {
		<-t.pool.turns
		t.has = false
	}
}

// A Turn is when a long read that is no pass may use a processor: one through the keys of
// a large node, for example. It shares the turns of the passes. Who reads for long ends
// it now and then and begins it again, so that others get theirs.
type Turn struct{ turn turn }

// NewTurn returns a turn that has not begun.
func (p *Pool) NewTurn() *Turn { return &Turn{turn{pool: p, begun: true}} } // it is not counted as a pass

// Begin waits for the turn, unless it has begun. Nobody waits for what is read once done
// is closed.
func (t *Turn) Begin(done <-chan struct{}) error { return t.turn.begin(done) }

// End lets another read begin. It may be called without a turn.
func (t *Turn) End() { t.turn.end() }
