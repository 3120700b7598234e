package audience

import (
	"sync"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// A ListenRequest says what a client wants to be told of.
type ListenRequest struct {
	Path  tree.Path
	Query *query.Query // nil for all that is there
	Known *watch.Known // nil if the client says nothing
	// Cookie is given back with the listen, CookieBytes what it takes.
	Cookie      any
	CookieBytes int
}

// A Listen is what a client is told of. There is one for a path and a query.
type Listen struct {
	Path   tree.Path
	Cookie any

	key   listenKey
	bytes int // that it takes
	// mu is held by who takes events of the watch, or ends it.
	mu    sync.Mutex
	watch *watch.Watch
	who   auth.Identity // whom it is for
	ended bool          // the watch was closed

	// The rest is guarded by the lock of the audience.

	opened  bool         // there is a watch
	over    bool         // nothing more is told
	woken   bool         // it is in the list
	taking  bool         // its next event is being taken from the watch
	head    *watch.Event // the next event, if it is known
	renewal bool         // that tells anew what is there
	more    bool         // there may be another behind it
	index   int          // in heads
	// bytesHeld is what the next event counts for.
	bytesHeld int
	// told is the position of the state that the client has by now; 0 if that is not known. toldAt
	// is when it was told something last.
	told   uint64
	toldAt time.Time
	since  uint64 // the position that it was opened at
	// viewAt is when it began to hold a view, as it does until its first event is taken.
	viewAt time.Time
}

type listenKey struct {
	path  tree.Path
	query query.Shared
}

// listenBytes is about what a listen takes beside its path and its query.
const listenBytes = 200

// keyOf returns the key of a listen, and about what it takes in memory.
func keyOf(p tree.Path, q *query.Query) (key listenKey, bytes int) {
	shared, text := query.Share(q)
	return listenKey{p.Clone(), shared}, listenBytes + p.Bytes() + text
}

// Listen begins to tell the client of a location. The answer comes behind the first
// event. A listen that is there already is replaced.
func (a *Audience) Listen(id int64, req ListenRequest) {
	a.request(id, requestBytes, func() *Answer {
		key, bytes := keyOf(req.Path, req.Query)
		known := req.Known
		old := a.find(key)
		if old != nil {
			a.forget(old)
			defer a.end(old) // then: as long as it watches, it is known what has changed
			known = knownBehind(a, old, known)
		}
		known = knownBeside(a, key.path, known)
		l := &Listen{Path: key.path, Cookie: req.Cookie, key: key, bytes: bytes + req.CookieBytes}
		l.follow(a, old)
		if err := a.keep(l); err != nil {
			return a.failed(err, "")
		}
		who := a.Who()
		a.hold()
		defer a.letGo()
		w, trace, err := a.set.Open(watch.Request{
			Path: key.path, Form: tree.Export, Query: req.Query, Whole: true, Scan: true, Known: known,
			Client: clientOf(a.opts.Client, who), Memory: a.opts.Memory,
			Who: lasting(who), Wake: func() { a.wake(l) }, Done: a.opts.Done, Lasts: true,
		})
		if err != nil {
			a.forget(l)
			return a.failed(err, trace)
		}
		answer := &Answer{Unindexed: w.Unindexed(), Trace: trace, position: w.Position()}
		a.open(l, w, who)
		return answer
	})
}

// knownBehind returns what a client says that it knows when it listens again: it may have said so before
// the old listen, which was forgotten, told it something else.
func knownBehind(a *Audience, old *Listen, known *watch.Known) *watch.Known {
	if known == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return &watch.Known{Hash: known.Hash, Compound: known.Compound, Replaces: true, Told: old.told}
}

// follow has a listen know what the client was told by the one that it replaces; nil for none.
func (l *Listen) follow(a *Audience, old *Listen) {
	if old == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l.told, l.toldAt = old.told, old.toldAt
}

// clientOf returns whose memory is taken for somebody on a connection.
func clientOf(c budget.Client, who auth.Identity) budget.Client {
	c.UID, c.Admin = who.Auth.Child("uid").Leaf().Text(), who.Admin
	return c
}

// Later gives up an event of a listen that could not be sent. In a while it is told again
// what is there. It is called by who takes the events.
func (a *Audience) Later(l *Listen) {
	a.mu.Lock()
	a.sequence.telling = nil
	a.mu.Unlock()
	l.later()
}

// later is Later for an event that was not taken.
func (l *Listen) later() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch != nil && !l.ended {
		l.watch.Later()
	}
}

// hold has nothing told behind what is told by now, while a listen is opened. Its first
// event is no older, and others that are newer must not go out before it.
func (a *Audience) hold() {
	told := a.order.Told()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sequence.held, a.sequence.ceiling = true, told
}

// letGo ends hold.
func (a *Audience) letGo() {
	a.mu.Lock()
	a.sequence.held = false
	a.mu.Unlock()
	a.Wake()
}

// lasting returns an identity for a watch. That it ends is the business of the audience.
func lasting(who auth.Identity) auth.Identity {
	who.Expires = time.Time{}
	return who
}

// keep makes room for a listen.
func (a *Audience) keep(l *Listen) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := a.opts.Limits; len(a.listens) >= most.Listens || a.keyBytes+l.bytes > most.ListenBytes {
		return fault.New(fault.Unavailable, "there are %d listens, which is as many as a client is allowed to have", len(a.listens))
	}
	if !a.opts.Crowd.join(a.opts.Client.Network) {
		return fault.New(fault.Unavailable, "there are as many listens as the server is allowed to have: try again later")
	}
	a.keyBytes += l.bytes
	if a.listens == nil {
		a.listens = make(map[listenKey]*Listen)
	}
	a.listens[l.key] = l
	keepPlain(a, l)
	return nil
}

// open has the events of a watch told.
func (a *Audience) open(l *Listen, w *watch.Watch, who auth.Identity) {
	l.mu.Lock()
	l.watch, l.who = w, who
	l.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	l.opened, l.since = true, w.Position()
	if watch.IsKnown(w) {
		l.told = l.since
	} else {
		limitViewAge(a, l)
	}
	a.sequence.wake(l)
}

// wake is called when the watch of a listen may have something.
func (a *Audience) wake(l *Listen) {
	a.mu.Lock()
	first := len(a.sequence.woken) == 0
	a.sequence.wake(l)
	a.mu.Unlock()
	if first {
		a.order.WakeLater(a)
	}
}

// next takes an event of the watch, and returns whom it is for, and whether there may be
// more without the listen being woken.
func (l *Listen) next() (e *watch.Event, who auth.Identity, more, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, l.who, false, false
	}
	e, ok = l.watch.Next()
	return e, l.who, !l.watch.Drained(), ok
}

// find returns a listen, nil if there is none.
func (a *Audience) find(key listenKey) *Listen {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.listens[key]
}

// forget takes a listen out, of which nothing more is told.
func (a *Audience) forget(l *Listen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l.over = true
	if a.listens[l.key] == l {
		delete(a.listens, l.key)
		forgetPlain(a, l)
		a.keyBytes -= l.bytes
		a.opts.Crowd.leave(a.opts.Client.Network)
	}
	a.sequence.drop(l)
}

// end ends a listen.
func (a *Audience) end(l *Listen) {
	a.forget(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch != nil && !l.ended {
		l.ended = true
		l.watch.Close()
	}
}

// Unlisten ends a listen, if there is one. Nothing comes for it behind the answer.
func (a *Audience) Unlisten(id int64, p tree.Path, q *query.Query) {
	a.request(id, requestBytes, func() *Answer {
		key, _ := keyOf(p, q)
		if l := a.find(key); l != nil {
			a.end(l)
			noteLeft(a, l)
		}
		return &Answer{}
	})
}

// Over ends a listen that was told its last event, by who takes the events.
func (a *Audience) Over(l *Listen) {
	a.end(l)
	noteLeft(a, l)
}

// Listens returns how many there are.
func (a *Audience) Listens() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.listens)
}
