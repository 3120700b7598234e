package wire

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/wire/frame"
	"github.com/livetree/livetree/internal/wire/message"
)

// A transport is how messages come and go.
type transport interface {
	// wake is called when session.next may have something. It must not block.
	wake()
	// close ends the transport soon, and then releases the session. It must not block.
	close(code int, reason outbox.Reason, text string)
	// meet says, once, that the client is no stranger any more.
	meet()
	// isEnding reports whether the transport is to end.
	isEnding() bool
}

// A session is one client of one database, for as long as it is connected.
//
// Receive belongs to one goroutine at a time, the one that reads from the client; next
// and check to another, the one that writes to it.
type session struct {
	front *Front
	id    string
	name  string // of the database
	db    *engine.Database
	// ledger counts what the client does.
	ledger ledger
	// audience orders all that the client is told.
	audience *audience.Audience
	memory   memoryShare // of the messages that are being read
	network  netip.Addr  // that memory counts for
	pace     pace
	waits    atomic.Bool // a request waits for its turn
	// joined says that the database is there, and all that is its: audience and leaving.
	// Before that the client is only said hello to.
	joined atomic.Bool
	// stay is for this node to be the home of the database, and unmoved has the end of that not end the session.
	stay    *catalog.Stay
	unmoved func()
	// leaving is what the client leaves to be written when it goes.
	leaving *engine.Leaving
	leaves  bool   // it has left something; of receive
	old     *old   // that must be over before anything is written; nil if it is; of receive
	effort  effort // of receive
	// allowsOwner says that what only --dev accepts may log in.
	allowsOwner bool
	// ctx ends with the session.
	ctx    context.Context
	cancel context.CancelFunc
	// over is closed when the session has ended and nothing of it is left.
	over chan struct{}

	// transport is set once, by begin, and may be used when begun says so: it is asked for each
	// event.
	transport transport
	begun     atomic.Bool

	mu sync.Mutex
	// asked are the requests that were not answered, in order, and called how many there were so far.
	asked   []asked
	called  int64
	stopped bool      // no further requests are taken
	taken   sync.Cond // with mu: an answer was taken, or no requests are
	// requests is for those that were not answered, if they are many, and kept for what
	// the client has left to be written.
	requests *budget.Claim
	kept     keeping
	// pongs are to be sent, and queued comes next; nil for nothing. With either, isAhead says so.
	pongs   int
	queued  *saying
	isAhead atomic.Bool

	met bool // the client is no stranger; of next
}

// An asked is a request that was not answered.
type asked struct {
	number int64 // of all requests of the session; it is answered by that
	id     int64 // what the client calls it
	action message.Action
	deed   deed
	// operation is what those are told who want to know; nil if there was nobody.
	operation *Operation
	claim     *budget.Claim // of a write; nil for none
	left      int64         // how much of it is left to be written when the client goes
	listen    *listen       // of a Listen
}

// A listen is what the session keeps of a listen: how the client tells it apart.
type listen struct {
	message.Tagged
	// answered says that the client was told whether it listens. If the first data could
	// not be sent, failed is why: the listen is refused then. Both belong to the goroutine
	// that writes.
	answered bool
	failed   error
	sent     int64 // bytes of the first data
}

// enterTime is how long a client waits for a database that has just moved to this node.
const enterTime = 3 * time.Second

// newSession returns the session of a client that came by a request. It fails if another node has the sessions of the database.
func (f *Front) newSession(at found, header http.Header, addr netip.Addr) (*session, error) {
	s := &session{
		front: f, id: newID(), name: at.name, over: make(chan struct{}), unmoved: func() {},
		allowsOwner: f.opts.Dev.AllowsOwner(header), memory: f.memory.of(addr), network: addr,
		pace: newPace(f.opts.Rate, addr),
	}
	s.ledger = ledger{front: f, name: at.name, sdk: sdkOf(header)}
	s.taken.L = &s.mu
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if at.db == nil {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(f.opts.Patience, enterTime)
	defer cancel()
	var err error
	if s.stay, err = f.opts.Tenures.Await(ctx, at.db); err != nil {
		s.cancel()
		return nil, err
	}
	f.join(s, at.db)
	return s, nil
}

// join makes a client one of a database. It reports false if its session has ended. It is
// called once, before the first request is served.
func (f *Front) join(s *session, db *engine.Database) bool {
	a := audience.New(db, audience.Options{
		Wake: s.wake, Done: s.ctx.Done(), Ending: func() bool { return isEnding(s) }, Now: f.opts.Now, Crowd: &f.listens,
		Client: budget.Client{Network: s.network, Database: db.Name()}, Memory: f.opts.Memory.Reads,
	})
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		a.Close()
		return false
	}
	s.db, s.audience, s.leaving = db, a, db.NewLeaving().Named(connectionOf(s.id))
	s.joined.Store(true)
	s.mu.Unlock()
	return true
}

// found makes the database that is not there, because a client asks something of it. It
// reports false if it cannot; the client may then come back.
func (f *Front) found(s *session) bool {
	db, err := f.opts.Create(s.ctx, s.name)
	if err != nil {
		f.opts.Logger.Warn("a database cannot be made for a client of an SDK", "session", s.logID(), "error", err)
		s.close(frame.CodeInternal, outbox.Behind, "the database cannot be made")
		return false
	}
	return f.join(s, db)
}

// begin has the session speak by a transport, first the hello. The host is what the
// client should call the server.
func (s *session) begin(t transport, host string) {
	s.transport = t
	s.begun.Store(true)
	s.mu.Lock()
	s.queued = &saying{text: message.AppendHello(nil, s.front.opts.Now().UnixMilli(), host, s.id)}
	s.isAhead.Store(true)
	s.mu.Unlock()
	s.front.add(s)
	s.ledger.begun()
	s.unmoved = s.stay.Then(func() { s.close(frame.CodeAway, outbox.Moved, "another node has the database") })
}

// wake has the transport look for messages.
func (s *session) wake() {
	if t := s.way(); t != nil {
		t.wake()
	}
}

// isEnding reports whether the session is to end.
func isEnding(s *session) bool {
	t := s.way()
	return t != nil && t.isEnding()
}

// way returns the transport, nil before begin.
func (s *session) way() transport {
	if !s.begun.Load() {
		return nil
	}
	return s.transport
}

// close ends the session.
func (s *session) close(code int, reason outbox.Reason, text string) {
	s.way().close(code, reason, text)
}

// release ends all that the session has, and writes what the client has left to be
// written. The transport calls it once.
func (s *session) release() {
	s.stop()
	s.cancel()
	s.unmoved()
	if s.joined.Load() { // else it never will
		s.audience.Close()
		s.forget()
		s.depart()
	}
	s.mu.Lock()
	s.kept.claim.Release()
	s.mu.Unlock()
	s.front.remove(s)
	s.ledger.gone()
	s.stay.Leave()
	close(s.over)
}

// forget gives back what requests take that are never answered.
func (s *session) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queued != nil && s.queued.content != nil {
		_ = s.queued.content.Close()
	}
	s.queued = nil
	for _, a := range s.asked {
		a.claim.Release()
	}
	s.asked = nil
	s.requests.Release()
}

// stop has the session take no further requests, and reports whether all that it took
// were answered, as far as the client was told.
func (s *session) stop() (settled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.taken.Broadcast()
	return len(s.asked) == 0 && s.queued == nil
}

// check looks whether what the client may do has changed with the time.
func (s *session) check() {
	if s.joined.Load() {
		s.audience.Check()
	}
}

// ask notes that a request was taken, and returns its number. It reports false if none are.
func (s *session) ask(a asked) (number int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return 0, false
	}
	s.called++
	a.number = s.called
	s.asked = append(s.asked, a)
	return a.number, true
}

// charged notes what the request that was just asked takes until it is answered.
func (s *session) charged(claim *budget.Claim, left int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 { // the session has ended
		claim.Release()
		return
	}
	last := &s.asked[len(s.asked)-1]
	last.claim, last.left = claim, left
}

// answered returns the request of a number, which is answered now. Most are answered in order, but for reads.
func (s *session) answered(number int64) asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 0
	for s.asked[i].number != number {
		i++
	}
	was := s.asked[i]
	copy(s.asked[1:], s.asked[:i])
	s.asked[0] = asked{}
	if s.asked = s.asked[1:]; len(s.asked) == 0 {
		s.asked = nil // what it grew to is not kept
	}
	s.settle(&was)
	return was
}
