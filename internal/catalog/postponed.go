package catalog

import (
	"context"
	"errors"
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
	// The wait between two tries is twice as long each time, from firstTry to lastTry. It is
	// short, because others can write as soon as there is space again.
	firstTry = 250 * time.Millisecond
	lastTry  = time.Second
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
//
// A client that comes back on another connection must not be overwritten by what it has left
// before. Before it writes something, its front has that written first (RunNow), and refuses
// what the client writes as long as that is not possible. Names of connections are known to
// their clients alone, in some form, so no client can do this to another.
type Postponed struct {
	logger  *slog.Logger
	tenures *Tenures
	gauge   *atomic.Int64 // how many wait
	ctx     context.Context
	cancel  context.CancelFunc
	runner  sync.WaitGroup
	// most is maxPostponed, and together triesAtOnce, but in some tests.
	most, together int

	mu      sync.Mutex
	waiting []*waiting // in the order in which they are tried
	known   map[connection]*waiting
	running bool
	dropped int  // did not find room, since the queue was last empty
	lost    bool // one did not, ever: it is known by the store alone
}

// A connection is one of a database, by its name.
type connection struct {
	database *engine.Database
	name     string
}

// A waiting is a connection whose writes wait.
type waiting struct {
	connection
	// turn is full while its writes are made: they would be made twice by two at a time.
	turn chan struct{}

	// The lock of Postponed guards the rest.

	queued bool // it is in the list, or was taken from it to be tried
	uses   int  // by RunNow
	made   bool
	// followers are later connections of the same client: the one that it came back for, and the
	// newest. It may not have heard of that.
	followers [2]string
}

// errUnsettled says that it took too long to write what a connection has left.
var errUnsettled = fault.New(fault.Unavailable, "what this client has left to be written is not written yet, try again")

// NewPostponed returns one in which nothing waits. The gauge is how many connections wait. In a cluster it writes while this node is
// the home, by its tenures, and forgets what another home writes.
func NewPostponed(logger *slog.Logger, gauge *atomic.Int64, tenures *Tenures) *Postponed {
	p := &Postponed{logger: logger, gauge: gauge, tenures: tenures, most: maxPostponed, together: triesAtOnce, known: map[connection]*waiting{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Add has what a connection has left written later. The connection is gone; see
// engine.Database.RunAgain. With no Postponed it is written at the next start.
func (p *Postponed) Add(d *engine.Database, name string) {
	if p == nil || name == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return // it is written at the next start
	}
	w := p.know(connection{d, name})
	if !p.queue(w) {
		p.dropped++
	}
	p.forget(w)
}

// know returns what is known of a connection itself, and not of one that it follows. The lock is
// held, as it is for queue and forget.
func (p *Postponed) know(c connection) *waiting {
	w := p.known[c]
	if w == nil || w.connection != c || w.made {
		w = &waiting{connection: c, turn: make(chan struct{}, 1)}
		p.known[c] = w
	}
	return w
}

// queue has the writes of a connection tried until they are made. It reports false if there is no
// room.
func (p *Postponed) queue(w *waiting) bool {
	switch {
	case w.queued:
		return true
	case p.ctx.Err() != nil:
		return false
	case len(p.waiting) >= p.most:
		p.lost = true
		return false
	}
	w.queued = true
	p.waiting = append(p.waiting, w)
	p.gauge.Store(int64(len(p.waiting)))
	if !p.running {
		p.running = true
		p.logger.Warn("what clients have left to be written cannot be written now: it is tried until it can be")
		p.runner.Go(p.run)
	}
	return true
}

// forget lets go of a connection that nobody tries any more.
func (p *Postponed) forget(w *waiting) {
	if w.uses > 0 || w.queued && !w.made {
		return
	}
	for _, name := range append([]string{w.name}, w.followers[:]...) {
		if c := (connection{w.database, name}); p.known[c] == w {
			delete(p.known, c)
		}
	}
}

// Recall has a connection that is gone, and that there was no room for, known again, before its
// client comes back on a later one: or that one's successor would not find it. Its error says that
// there still is no room, and that the client must not come in yet.
func (p *Postponed) Recall(d *engine.Database, name string) error {
	if p == nil || !p.hasLost() {
		return nil
	}
	if has, err := d.NewLeaving().Named(name).HasRows(); !has {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[connection{d, name}] != nil {
		return nil
	}
	w := p.know(connection{d, name})
	defer p.forget(w)
	if !p.queue(w) {
		return errUnsettled
	}
	return nil
}

func (p *Postponed) hasLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Follow says that the client of a connection which is gone has come back on a later one. What
// is known to wait for the former is found by the name of the later one, too.
func (p *Postponed) Follow(d *engine.Database, name, later string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.known[connection{d, name}]
	if w == nil || w.made {
		return
	}
	for _, old := range w.followers {
		if c := (connection{d, old}); old != name && p.known[c] == w {
			delete(p.known, c)
		}
	}
	w.followers = [2]string{name, later}
	p.known[connection{d, later}] = w
}

// RunNow writes what a connection that is gone has left, if anything is, before its client
// writes something else. Its error is one of engine.IsPostponed: it is still to be written.
func (p *Postponed) RunNow(ctx context.Context, d *engine.Database, name string) error {
	if p == nil {
		return nil
	}
	has, _ := d.NewLeaving().Named(name).HasRows() // if that cannot be read, nor can it be written
	w := p.use(connection{d, name}, has)
	if w == nil {
		return nil
	}
	err := p.settle(ctx, w)
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.uses--; err != nil {
		p.queue(w)
	}
	p.forget(w)
	return err
}

// use returns what is known of a connection, or a new one if the store has something of it; nil if
// nothing waits. RunNow gives it back.
func (p *Postponed) use(c connection, has bool) *waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.known[c]
	switch {
	case w != nil && w.made, w == nil && !has:
		return nil
	case w == nil:
		w = p.know(c)
	}
	w.uses++
	return w
}

// settle makes the writes of a connection, unless they were made. Its error is one of
// engine.IsPostponed.
func (p *Postponed) settle(ctx context.Context, w *waiting) error {
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return errUnsettled
	}
	defer func() { <-w.turn }()
	if p.isMade(w) {
		return nil
	}
	stay, err := p.tenures.Enter(w.database)
	if err != nil {
		return err
	}
	defer stay.Leave()
	ctx, cancel := stay.Within(ctx)
	defer cancel()
	_, err = w.database.RunAgain(ctx, w.name)
	switch {
	case engine.IsPostponed(err) && w.database.Standing() == nil:
		return err
	case err != nil && ctx.Err() != nil:
		return errUnsettled
	}
	if err != nil && fault.KindOf(err) != fault.NotFound { // nothing is left in a database that is gone
		p.logger.Error("something that a client has left to be written could not be written: it is tried again at the next start", "error", err)
	}
	p.setMade(w)
	return nil
}

func (p *Postponed) setMade(w *waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.made = true
}

func (p *Postponed) isMade(w *waiting) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.made
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
			wait, together = firstTry, p.together
		}
		wait, together = min(2*wait, lastTry), 1
	}
}

// take takes the first of those that wait.
func (p *Postponed) take(n int) []*waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, len(p.waiting))
	tried := append([]*waiting{}, p.waiting[:n]...)
	clear(p.waiting[:n])
	p.waiting = p.waiting[n:]
	return tried
}

// putBack has some connections wait again, after all others. It reports whether others come
// before them, and whether none waits at all: then the goroutine ends.
func (p *Postponed) putBack(again []*waiting, written int) (more, done bool) {
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
func (p *Postponed) try(tried []*waiting) (again []*waiting) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, w := range tried {
		all.Go(func() {
			err := p.settle(p.ctx, w)
			if errors.Is(err, ErrAway) { // its home writes it
				err = nil
				p.setMade(w)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				again = append(again, w)
			}
		})
	}
	all.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range tried {
		p.forget(w)
	}
	return again
}
