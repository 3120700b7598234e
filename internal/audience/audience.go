package audience

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/watch"
)

// Limits bound what a client may have under way.
type Limits struct {
	// Unanswered and Bytes are how many requests, and how many bytes of them, may wait
	// for their answer to be taken. With more, requests wait.
	Unanswered, Bytes int
	// Listens is how many a client may have, ListenBytes how much memory the paths and
	// queries of them may take.
	Listens, ListenBytes int
}

// DefaultLimits are those of all clients but some of tests.
func DefaultLimits() Limits {
	return Limits{Unanswered: 4096, Bytes: 16 << 20, Listens: 10_000, ListenBytes: 4 << 20}
}

// Options configure an Audience.
type Options struct {
	// Wake is called when Next may have something. It must not block.
	Wake func()
	// Done is closed when the client has gone: long reads for it end.
	Done <-chan struct{}
	// Ending, if not nil, reports whether the client is to end: it is not judged again then.
	Ending func() bool
	// Limits are DefaultLimits by default.
	Limits Limits
	// Crowd, if not nil, is shared by all clients whose listens count together.
	Crowd *Crowd
	// Client is whose memory is taken, of Memory, but for who it is logged in as.
	Client budget.Client
	Memory *budget.Budget
	// Now tells the time.
	Now func() time.Time
}

// An Audience is one client of a database. See the comment of the package for who may
// call what.
type Audience struct {
	db    *engine.Database
	set   *watch.Set
	order *watch.Order
	late  bool // belongs to the order
	opts  Options
	// requests is held by a request that is not a write, and by what becomes of an
	// identity that has ended.
	requests sync.Mutex
	ended    atomic.Bool // Close was called
	// loggingOut are the goroutines of logOut. With mu: none begins when the client has ended.
	loggingOut sync.WaitGroup

	mu       sync.Mutex
	room     sync.Cond // with mu: something was answered or taken
	listens  map[listenKey]*Listen
	keyBytes int       // that they take
	plain    []*Listen // those without a query, by path
	sequence sequence
	left     []left // a moment ago, the newest last
	who      auth.Identity
	verified *state.Settings // by which who was found to be good; nil if nobody asked yet
	pipeline pipeline
	waiting  int // requests whose answer was not taken
	bytes    int // of them
	expiry   *time.Timer
	logout   error // why the client is nobody any more, until it was told
}

// New returns the audience that a client of a database is, who is nobody yet. It must be
// closed.
func New(db *engine.Database, opts Options) *Audience {
	if opts.Limits == (Limits{}) {
		opts.Limits = DefaultLimits()
	}
	if opts.Now == nil {
		opts.Now = time.Now //nolint:forbidigo // the default of the injected clock
	}
	a := &Audience{db: db, set: db.Watches(), order: db.Watches().Order(), opts: opts}
	a.room.L = &a.mu
	a.pipeline.audience = a
	return a
}

// Wake implements watch.Party.
func (a *Audience) Wake() { a.opts.Wake() }

// Late implements watch.Party.
func (a *Audience) Late() *bool { return &a.late }

// Who returns whom requests are judged for.
func (a *Audience) Who() auth.Identity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.who
}

// Close ends all listens. Writes that were taken are made, but nothing is answered any
// more. It returns when no request is under way, writes included, each of which ends at
// its deadline, and nothing is left of a login that has ended; the front must not call Next again.
func (a *Audience) Close() {
	a.mu.Lock()
	a.ended.Store(true)
	a.pipeline.closeBy = a.opts.Now().Add(a.db.Deadline())
	a.room.Broadcast()
	if a.expiry != nil {
		a.expiry.Stop()
	}
	for len(a.pipeline.writes) > 0 || a.pipeline.redoing {
		a.room.Wait()
	}
	if a.pipeline.late != nil {
		a.pipeline.late.Stop()
	}
	a.mu.Unlock()
	a.loggingOut.Wait()
	a.requests.Lock()
	defer a.requests.Unlock()
	for _, l := range a.all() {
		a.end(l)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, answer := range a.sequence.reads {
		answer.drop()
	}
	a.sequence.answers, a.sequence.reads = nil, nil
	if a.sequence.aging != nil {
		a.sequence.aging.Stop()
	}
	if a.sequence.renewing != nil {
		a.sequence.renewing.Stop()
	}
}

// all returns the listens.
func (a *Audience) all() []*Listen {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]*Listen, 0, len(a.listens))
	for _, l := range a.listens {
		list = append(list, l)
	}
	return list
}

// admit waits until there is room for a request; false if the client was closed.
func (a *Audience) admit(bytes int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.opts.Limits
	for !a.ended.Load() && a.waiting > 0 && (a.waiting >= l.Unanswered || a.bytes+bytes > l.Bytes) {
		a.room.Wait()
	}
	if a.ended.Load() {
		return false
	}
	a.waiting++
	a.bytes += bytes
	return true
}

// reply queues an answer and wakes who takes it.
func (a *Audience) reply(answer *Answer) {
	a.mu.Lock()
	if a.ended.Load() {
		a.mu.Unlock()
		answer.drop()
		return
	}
	a.sequence.queue(answer)
	limitAge(a, answer)
	position := answer.position // from here on it belongs to who takes answers
	a.mu.Unlock()
	a.announce(position)
}

// announce wakes who takes answers when all up to a position was told.
func (a *Audience) announce(position uint64) {
	if a.order.ToldTo(position, a) {
		a.Wake()
	}
}
