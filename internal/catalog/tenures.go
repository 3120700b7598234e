package catalog

import (
	"context"
	"sync"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// This file is for nodes of a cluster. What a connection has left to be written is made by the home of its database, and
// by nobody else. So sessions are at the home, and end with its tenure; the next home makes what they have left, as
// a server does at its start for those of the process before.

// Tenures hold the times during which this node is the home of databases, shard by shard.
//
// A tenure opens when nothing is left of the one before: all that stayed in that has gone, and what connections have left was
// written. While it is open, sessions may Enter. When this node ceases to be the home, it ends, and with it what has entered.
//
// With no Tenures this node is always the home.
type Tenures struct {
	home func(shard int) (tenure uint64, ok bool)
	life context.Context
	end  context.CancelFunc
	all  sync.WaitGroup

	mu     sync.Mutex
	begin  func(ctx context.Context, shard int) // nil before Start
	shards map[int]*tenures
}

// tenures are those of one shard. The lock of Tenures guards them.
type tenures struct {
	number  uint64 // of the one that is open; 0 if none is
	changed bool   // the home is another than it was
	running bool   // a goroutine looks after it
	opened  chan struct{}
	ctx     context.Context // of the newest one
	cancel  context.CancelFunc
	stays   int
	empty   chan struct{} // closed when the last stay ends; nil if nobody waits
}

var (
	// ErrAway says that another node is the home of a database.
	ErrAway = fault.New(fault.Unavailable, "another node has the sessions of the database, try again")
	// ErrNotOpen says that this node has become the home of a database, and is not ready yet.
	ErrNotOpen = fault.New(fault.Unavailable, "the database has just moved to this node, try again")
)

// NewTenures returns those of a node. Home says in which tenure it is the home of a shard, and whether it is.
func NewTenures(home func(shard int) (tenure uint64, ok bool)) *Tenures {
	t := &Tenures{home: home, shards: map[int]*tenures{}}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// Start lets tenures open: those of all shards that there are, and of which Changed is told later. Begin is called before one opens, by one
// goroutine for each shard, and writes what connections have left. Its context ends with the tenure.
func (t *Tenures) Start(shards int, begin func(ctx context.Context, shard int)) {
	t.mu.Lock()
	t.begin = begin
	t.mu.Unlock()
	for shard := range shards {
		t.Changed(shard)
	}
}

// Changed says that this node has become the home of a shard, or ceased to be, or is it in another tenure. It does not wait.
func (t *Tenures) Changed(shard int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(shard)
	if number, home := t.home(shard); home && s.number == number {
		return // this is known already
	}
	s.number, s.changed = 0, true
	s.cancel()
	if !s.running && t.begin != nil && t.life.Err() == nil {
		s.running = true
		t.all.Go(func() { t.run(shard, s) })
	}
}

// of returns the tenures of a shard. The lock is held.
func (t *Tenures) of(shard int) *tenures {
	s := t.shards[shard]
	if s == nil {
		s = &tenures{opened: make(chan struct{}), cancel: func() {}}
		t.shards[shard] = s
	}
	return s
}

// run opens tenures until there is nothing to be done.
func (t *Tenures) run(shard int, s *tenures) {
	for {
		ctx, ok := t.next(s)
		if !ok {
			return
		}
		number, home := t.home(shard)
		if !home || ctx.Err() != nil { // it has changed again
			continue
		}
		t.begin(ctx, shard)
		t.mu.Lock()
		if !s.changed && t.life.Err() == nil {
			s.number = number
			close(s.opened)
			s.opened = make(chan struct{})
		}
		t.mu.Unlock()
	}
}

// next returns the context of the next tenure, once all that stayed in the one before has gone. It reports false if nothing has
// changed.
func (t *Tenures) next(s *tenures) (context.Context, bool) {
	t.mu.Lock()
	if !s.changed || t.life.Err() != nil {
		s.running = false
		t.mu.Unlock()
		return nil, false
	}
	s.cancel()
	s.changed = false
	s.ctx, s.cancel = context.WithCancel(t.life)
	ctx, empty := s.ctx, make(chan struct{})
	if s.stays == 0 {
		close(empty)
	} else {
		s.empty = empty
	}
	t.mu.Unlock()
	select {
	case <-empty:
	case <-t.life.Done():
	}
	return ctx, true
}

// A Stay is what needs this node to be the home of a database, such as a session. It is nil where that is always so.
type Stay struct {
	of    *Tenures
	shard *tenures
	ctx   context.Context
	once  sync.Once
}

// Enter begins a stay, which Leave ends. It returns ErrAway or ErrNotOpen if there can be none.
func (t *Tenures) Enter(d *engine.Database) (*Stay, error) {
	stay, _, err := t.enter(d)
	return stay, err
}

func (t *Tenures) enter(d *engine.Database) (stay *Stay, opened <-chan struct{}, err error) {
	if t == nil {
		return nil, nil, nil
	}
	shard := store.ShardOf(engine.IDOf(d))
	number, home := t.home(shard)
	if !home {
		return nil, nil, ErrAway
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(shard)
	if s.number != number {
		return nil, s.opened, ErrNotOpen
	}
	s.stays++
	return &Stay{of: t, shard: s, ctx: s.ctx}, nil, nil
}

// Await is Enter that waits while this node has become the home and is not ready yet, until ctx ends.
func (t *Tenures) Await(ctx context.Context, d *engine.Database) (*Stay, error) {
	for {
		stay, opened, err := t.enter(d)
		if opened == nil {
			return stay, err
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Leave ends a stay. It may be called twice.
func (s *Stay) Leave() {
	if s == nil {
		return
	}
	s.once.Do(func() {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
		if s.shard.stays--; s.shard.stays == 0 && s.shard.empty != nil {
			close(s.shard.empty)
			s.shard.empty = nil
		}
	})
}

// IsOver reports whether the tenure has ended: what connections have left is made by the next home.
func (s *Stay) IsOver() bool { return s != nil && s.ctx.Err() != nil }

// Then calls f, on a goroutine of its own, when the tenure ends. The function that it returns takes that back.
func (s *Stay) Then(f func()) (stop func()) {
	if s == nil {
		return func() {}
	}
	cancel := context.AfterFunc(s.ctx, f)
	return func() { cancel() }
}

// Within returns a context that also ends with the tenure.
func (s *Stay) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := s.Then(cancel)
	return ctx, func() { stop(); cancel() }
}

// Close ends all tenures, and returns when nothing is being written.
func (t *Tenures) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.end()
	t.mu.Unlock()
	t.all.Wait()
}
