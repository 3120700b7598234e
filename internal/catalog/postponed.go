package catalog

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
)

const (
	// maxPostponed is how many connections wait in a Postponed. What others have left is written
	// at the next start.
	maxPostponed = 100_000
	// The wait between two tries is twice as long each time, from firstTry to lastTry.
	firstTry = 250 * time.Millisecond
	lastTry  = 5 * time.Second
	// triesAtOnce is for how many connections writes are made at a time while they can be made.
	triesAtOnce = 128
)

// A Postponed writes what connections that are gone have left, and what could not be written
// when they went: for lack of space on the disk, or because it did not keep up. It tries again
// until all is written or the server stops; then it is written at the next start.
//
// It holds the name of each connection and no more: the writes are in the store. As long as
// something waits it has a goroutine. It tries one connection, and others only after one that
// went well, so that a full disk costs little.
type Postponed struct {
	logger *slog.Logger
	gauge  *atomic.Int64 // how many wait
	ctx    context.Context
	cancel context.CancelFunc
	runner sync.WaitGroup

	mu      sync.Mutex
	waiting []waiting // in the order in which they are tried
	running bool
	dropped int // did not find room, since the queue was last empty
}

// A waiting is a connection whose writes wait.
type waiting struct {
	database   *engine.Database
	connection func() string
}

// NewPostponed returns one in which nothing waits. The gauge is how many connections wait.
func NewPostponed(logger *slog.Logger, gauge *atomic.Int64) *Postponed {
	p := &Postponed{logger: logger, gauge: gauge}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Add has what a connection has left written later. The connection is gone, and its name is
// asked for when it is needed: see engine.Database.RunAgain. With no Postponed it is written
// at the next start.
func (p *Postponed) Add(d *engine.Database, connection func() string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ctx.Err() != nil:
		return // it is written at the next start
	case len(p.waiting) >= maxPostponed:
		p.dropped++
		return
	}
	p.waiting = append(p.waiting, waiting{d, connection})
	p.gauge.Store(int64(len(p.waiting)))
	if !p.running {
		p.running = true
		p.logger.Warn("what clients have left to be written cannot be written now: it is tried until it can be")
		p.runner.Go(p.run)
	}
}

// Close gives up, and returns when nothing is being written.
func (p *Postponed) Close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.runner.Wait()
}

// run tries until nothing waits.
func (p *Postponed) run() {
	wait, together, written := firstTry, 1, 0
	for pause.For(p.ctx, wait) == nil {
		for {
			tried := p.take(together)
			again := p.try(tried)
			written += len(tried) - len(again)
			more, done := p.putBack(again, written)
			if done {
				return
			}
			if len(again) > 0 || !more {
				break
			}
			wait, together = firstTry, triesAtOnce
		}
		wait, together = min(2*wait, lastTry), 1
	}
}

// take takes the first of those that wait.
func (p *Postponed) take(n int) []waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, len(p.waiting))
	tried := append([]waiting{}, p.waiting[:n]...)
	clear(p.waiting[:n])
	p.waiting = p.waiting[n:]
	return tried
}

// putBack has some connections wait again, after all others. It reports whether others come
// before them, and whether none waits at all: then the goroutine ends.
func (p *Postponed) putBack(again []waiting, written int) (more, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	more = len(p.waiting) > 0
	p.waiting = append(p.waiting, again...)
	p.gauge.Store(int64(len(p.waiting)))
	if len(p.waiting) > 0 {
		return more, false
	}
	p.logger.Info("what clients had left to be written, and had to wait, is written", "clients", written)
	if p.dropped > 0 {
		p.logger.Warn("what more clients have left to be written is written at the next start: too many had to wait", "clients", p.dropped)
	}
	p.waiting, p.running, p.dropped = nil, false, 0
	return false, true
}

// try makes writes for some connections, and returns those for which some are still to be made.
func (p *Postponed) try(tried []waiting) (again []waiting) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, w := range tried {
		all.Go(func() {
			_, err := w.database.RunAgain(p.ctx, w.connection)
			switch {
			case engine.IsPostponed(err) && w.database.Standing() == nil:
				mu.Lock()
				defer mu.Unlock()
				again = append(again, w)
			case err != nil && fault.KindOf(err) != fault.NotFound: // nothing is left in a database that is gone
				p.logger.Error("something that a client has left to be written could not be written: it is tried again at the next start", "error", err)
			}
		})
	}
	all.Wait()
	return again
}
