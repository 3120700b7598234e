package watch

import (
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// A Request says what is to be watched.
type Request struct {
	Path tree.Path
	Form tree.Form
	// Priority asks for the priority of the node and nothing else.
	Priority bool
	// Query, if not nil, selects among the children.
	Query *query.Query
	// Whole asks for each change as one event. A patch may then have paths as keys.
	Whole bool
	// Scan has what a query selects found by a scan if there is no index for it. Without
	// it the watch is refused, or cancelled if the index goes away.
	Scan bool
	Who  auth.Identity
	// Client is whose memory the watch takes: of Memory, for what is worked out before the
	// first event, and of that for windows without an index.
	Client budget.Client
	Memory *budget.Budget
	// Resume asks for what came behind a position, instead of all that is there.
	Resume bool
	Behind uint64
	// Known, if not nil, is what the client has already: if that is what is there, there
	// is no first event.
	Known *Known
	// Wake is called when Next may have something. It must not block.
	Wake func()
	// Done, if not nil, is closed when nobody waits for events any more.
	Done <-chan struct{}
	// Lasts has the watch outlive its credential: when that is taken away, it tells Revoked, and
	// then nothing until Identify.
	Lasts bool
}

// slowReader is how soon a second time of being too far behind ends a watch.
const slowReader = time.Minute

// maxTries is the usual Limits.Tries.
const maxTries = 4

// A Watch tells what is at a location, and then how it changes, in the order of
// commits and without gaps. A watch that falls too far behind catches up by the
// change log, or is told anew what is there.
//
// Next and Recheck belong to one goroutine at a time.
type Watch struct {
	set  *Set
	key  placeKey
	who  atomic.Pointer[auth.Identity] // see Identify
	wake func()
	done <-chan struct{}

	suspension suspension

	place         *place
	before, after *Watch // of the place; guarded by the lock of watches
	subscription  *hub.Subscription[*Event]
	permission    permission  // guarded by the lock of watches
	unjudged      bool        // the same; see leaveUnjudged
	timed         atomic.Bool // the permission rests on the time
	expiry        *time.Timer

	scanning scanning
	client   budget.Client
	memory   *budget.Budget
	held     *budget.Claim // of a first event that was worked out, or of the backlog; nil for none
	stuck    *stuck        // nil unless the watch waits until it can go on
	patience time.Duration // how long it waited last; 0 if it was told something since

	since    uint64 // what was told so far, or is in opening and backlog
	opening  *Event
	backlog  []*Event
	behind   uint64 // with until: what of the change log is to be told
	until    uint64
	missed   time.Time // when it last was too far behind
	drained  bool      // see Drained
	finished bool
}

// Open begins to watch. What is there is the first event. It fails as a read does; the
// trace is for an identity that debugs.
func (s *Set) Open(req Request) (w *Watch, trace string, err error) {
	w = &Watch{set: s, wake: req.Wake, done: req.Done, client: req.Client, memory: req.Memory, suspension: suspension{lasts: req.Lasts},
		key: placeKey{path: req.Path.Clone(), form: req.Form, priority: req.Priority, whole: req.Whole}}
	who := req.Who // the request need not be kept
	w.who.Store(&who)
	if req.Query != nil { // as the path, it is a part of a request that need not be kept
		w.key.filtered = true
		w.key.query, _ = query.Share(req.Query)
		w.key.scan = req.Scan
	}
	if w.key.scan {
		lazily(&s.scans).enter(w)
	}
	var m measure
	defer m.drop()
	// From here on the syncer queues what becomes visible. What became so before
	// is in the view.
	s.count.Add(1)
	var v *state.View
	var allowed permission
	for tries := 0; tries < s.limits.Tries && v == nil && err == nil; tries++ {
		v, allowed, trace, err = w.open(&m, pass{})
	}
	if v == nil && err == nil {
		v, allowed, trace, err = w.openBetween(&m)
	}
	if err == nil {
		err = w.begin(v, allowed, req)
	}
	if err != nil {
		s.scans.Load().leave(w)
		s.count.Add(-1)
		return nil, trace, err
	}
	if !req.Who.Expires.IsZero() {
		w.expiry = time.AfterFunc(time.Until(req.Who.Expires), w.revoke)
	}
	return w, trace, nil
}

// openBetween is open while no delivery is taken, which rules have only some steps for.
// It may still be overtaken by somebody else who makes the place with a newer view;
// once, but for those who leave at once.
func (w *Watch) openBetween(m *measure) (v *state.View, allowed permission, trace string, err error) {
	w.set.between(func() {
		for tries := 0; tries < maxTries && v == nil && err == nil; tries++ {
			v, allowed, trace, err = w.open(m, w.set.limits.Rejudge.atGate())
		}
	})
	if v == nil && err == nil {
		err = fault.New(fault.Unavailable, "too many begin to watch %s, try again", w.key.path)
	}
	return v, allowed, trace, err
}

// open tries to join on the newest view, and returns it with what was judged on
// it. The view is nil if it is too old already. The measure is of earlier tries.
func (w *Watch) open(m *measure, p pass) (joined *state.View, allowed permission, trace string, err error) {
	v := w.set.database.View()
	defer func() {
		if joined == nil {
			v.Close()
		}
	}()
	v.Until(w.done)
	if allowed, trace, err = w.judge(v, true, p); err != nil {
		return nil, allowed, trace, err
	}
	if ok, err := w.join(v, allowed, m, p.gated); !ok {
		return nil, allowed, trace, err
	}
	return v, allowed, trace, nil
}

// begin makes the first events of a watch that has joined on a view, and closes
// that: what came after a position, or what is there. Deliveries need not wait
// meanwhile, since the subscription is there.
func (w *Watch) begin(v *state.View, allowed permission, req Request) (err error) {
	defer v.Close()
	w.noteUnindexed(v)
	w.since = req.Behind
	resumed := false
	if req.Resume {
		resumed, err = w.resumeBy(v, allowed)
	}
	if err == nil && !resumed && req.Known != nil && req.Known.counts(w, v) {
		w.since = v.Position
		if resumed, err = w.knows(v, req.Known); !resumed && err == nil {
			resumed, err = w.differs(v, req.Known)
		}
	}
	if !resumed && err == nil {
		err = w.renew(v)
	}
	if err != nil {
		w.set.count.Add(1) // which leave takes back
		w.set.leave(w)
	}
	return err
}

// renew makes what a view shows the next event.
func (w *Watch) renew(v *state.View) error {
	w.since = v.Position
	data, err := w.content(v)
	if err != nil {
		return err
	}
	w.opening = &Event{Kind: Put, Content: data, Position: v.Position, Last: true}
	return nil
}

// content returns what a view shows to the watch. It must be closed. A watch of its own,
// such as a stream, learns at once of rows that cannot be read. Of a client with many
// watches the rows are opened when it is told, so that it cannot hold many.
func (w *Watch) content(v *state.View) (Content, error) {
	switch {
	case w.key.priority && w.key.filtered:
		return text("null"), nil // a leaf, or nothing, has no children to select
	case w.key.priority:
		priority, err := v.Priority(w.key.path)
		return text(tree.AppendLeaf(nil, priority)), err
	case w.key.filtered:
		return w.selected(v)
	case !w.key.whole:
		return v.Printer(w.key.path, w.key.form)
	}
	return v.Read(w.key.path, nil, w.key.form)
}

// Next returns the next event; false if there is none now, or the last one was
// returned before.
func (w *Watch) Next() (*Event, bool) {
	w.drained = false
	for !w.finished {
		if r := w.suspension.of(w.who.Load()); r != nil {
			return w.suspension.tell(r)
		}
		if w.expired() {
			w.drop()
			w.revoke()
		}
		if e := w.opening; e != nil {
			w.opening = nil
			return e, true
		}
		if len(w.backlog) == 0 {
			w.letGo() // all of it was taken
		}
		if w.stuck != nil {
			if !w.goOn() {
				return nil, false
			}
			continue
		}
		w.patience = 0 // what was told last was sent
		if len(w.backlog) > 0 {
			e := w.backlog[0]
			w.backlog = w.backlog[1:]
			return e, true
		}
		if w.behind < w.until {
			w.readLog()
			continue
		}
		e, state := w.subscription.Next()
		switch {
		case state == hub.Empty:
			return nil, false
		case state == hub.Finished:
			w.finished = true
			return e, true
		case state == hub.Missed && w.tooSlow():
			w.subscription.Cut(&Event{Kind: End})
		case state != hub.Taken, w.since > e.from && w.since < e.to:
			w.catchUp()
		case e.Kind == silent:
		case e.Position > w.since:
			w.told(e)
			w.drained = w.subscription.Drained()
			return e, true
		}
	}
	return nil, false
}

// Drained reports whether the event that Next has just returned was the last for now: the
// watch is woken when there may be another.
func (w *Watch) Drained() bool { return w.drained }

// told moves on what was told so far. Of a commit of which more is to come, all
// before it was told: the change log must not tell that again in between.
func (w *Watch) told(e *Event) {
	switch {
	case e.to > 0: // more of the delivery may come, in any order of positions
	case e.Last:
		w.since = e.Position
	default:
		w.since = e.Position - 1
	}
}

// expired reports whether the identity is not good any more. The time of commits
// does not tell: where the machine's clock was set back, it is ahead of that for a
// while.
func (w *Watch) expired() bool {
	who := w.who.Load()
	return !who.Expires.IsZero() && w.set.source.Verifier.Expired(*who) // which copies it
}

// revoke ends the watch because its credential is not good any more.
func (w *Watch) revoke() { w.subscription.Cut(&Event{Kind: Revoked}) }

// tooSlow reports whether the watch was too far behind for the second time.
func (w *Watch) tooSlow() bool {
	w.set.source.Metrics.Overflows.Add(1)
	now := w.set.source.Clock.Reading()
	again := !w.missed.IsZero() && now.Sub(w.missed) < slowReader
	w.missed = now
	return again
}

// Close ends the watch. It can be called more than once.
func (w *Watch) Close() {
	if w.expiry != nil {
		w.expiry.Stop()
	}
	w.stuck.end()
	w.set.leave(w)
	w.drop()
}

// drop gives up what was to be told next.
func (w *Watch) drop() {
	if w.opening != nil {
		if w.opening.Content != nil {
			_ = w.opening.Content.Close()
		}
		w.opening = nil
	}
	w.letGo()
	w.backlog, w.behind, w.until = nil, 0, 0
}
