package engine

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// An EventKind is what an event says.
type EventKind uint8

const (
	// Put: replace what is at the path.
	Put EventKind = iota
	// Patch: replace those children of what is at the path that are named.
	Patch
	// Cancel: the rules no longer allow the watch. It is over.
	Cancel
	// Revoked: the credential is no longer good. It is over.
	Revoked
	// End: the database is closed, the watch is too far behind, or what it shows
	// cannot be read now. It is over.
	End

	// silent says nothing; but see Watch.Next.
	silent
)

// An Event is what a watch is told. Events are shared and must not be changed.
type Event struct {
	Kind EventKind
	// Text is {"path":…,"data":…}, of a Put or a Patch.
	Text []byte
	// Data, if not nil, prints the data of a Put at / in place of Text. It must be
	// closed.
	Data Content
	// Position is that of the commit. Last says that no further event of it comes.
	Position uint64
	Last     bool
	// Millis is the time of the commit, 0 if the event is not of one.
	Millis int64

	// from and to, unless to is 0, are the positions that a window was moved between.
	// All events of the move together do not tell enough to a watch that began in
	// between.
	from, to uint64
	frame    atomic.Pointer[[]byte]
}

// Content is a text that can be printed once.
type Content interface {
	PrintTo(w io.Writer) error
	Close() error
}

// Frame returns the event as a front encodes it. It is encoded once for all
// watches that share it, so there must be one way to encode.
func (e *Event) Frame(encode func(*Event) []byte) []byte {
	if frame := e.frame.Load(); frame != nil {
		return *frame
	}
	frame := encode(e)
	e.frame.Store(&frame)
	return frame
}

// bytes returns about how much memory the event takes, when it was framed.
func (e *Event) bytes() int {
	const eventBytes = 160
	return eventBytes + 2*len(e.Text)
}

// A WatchRequest says what is to be watched.
type WatchRequest struct {
	Path tree.Path
	Form tree.Form
	// Priority asks for the priority of the node and nothing else.
	Priority bool
	// Query, if not nil, selects among the children.
	Query *query.Query
	Who   auth.Identity
	// Resume asks for what came behind a position, instead of all that is there.
	Resume bool
	Behind uint64
	// Wake is called when Next may have something. It must not block.
	Wake func()
	// Done, if not nil, is closed when nobody waits for events any more.
	Done <-chan struct{}
}

// slowReader is how soon a second time of being too far behind ends a watch.
const slowReader = time.Minute

// maxTries is how often a watch tries to begin between two deliveries before it has
// them wait.
const maxTries = 4

// A Watch tells what is at a location, and then how it changes, in the order of
// commits and without gaps. A watch that falls too far behind catches up by the
// change log, or is told anew what is there.
//
// Next and Recheck belong to one goroutine at a time.
type Watch struct {
	database *Database
	key      placeKey
	who      auth.Identity
	wake     func()
	done     <-chan struct{}

	place        *place
	subscription *hub.Subscription[*Event]
	reads        []tree.Path // guarded by the lock of watches
	judged       *settings   // by which it was allowed; the dispatcher's
	timed        atomic.Bool // the permission rests on the time
	expiry       *time.Timer

	since    uint64 // what was told so far, or is in opening and backlog
	opening  *Event
	backlog  []*Event
	behind   uint64 // with until: what of the change log is to be told
	until    uint64
	missed   time.Time // when it last was too far behind
	finished bool
}

// Watch begins to watch. What is there is the first event. It fails as a read
// does; the trace is for an identity that debugs.
func (d *Database) Watch(req WatchRequest) (w *Watch, trace string, err error) {
	w = &Watch{database: d, who: req.Who, wake: req.Wake, done: req.Done,
		key: placeKey{path: req.Path, form: req.Form, priority: req.Priority}}
	if req.Query != nil {
		w.key.filtered, w.key.query = true, *req.Query
	}
	// From here on the syncer queues what becomes visible. What became so before
	// is in the snapshot.
	d.watches.count.Add(1)
	joined := false
	for tries := 0; tries < maxTries && !joined && err == nil; tries++ {
		joined, trace, err = w.open(req)
	}
	if !joined && err == nil {
		_, trace, err = w.openBetween(req)
	}
	if err != nil {
		d.watches.count.Add(-1)
		return nil, trace, err
	}
	if !w.who.Expires.IsZero() {
		w.expiry = time.AfterFunc(time.Until(w.who.Expires), w.revoke)
	}
	return w, trace, nil
}

// openBetween begins while no delivery is taken. It may still be overtaken by somebody
// else who makes the place with a newer snapshot, once.
func (w *Watch) openBetween(req WatchRequest) (joined bool, trace string, err error) {
	gate := &w.database.watches.gate
	gate.Lock()
	defer gate.Unlock()
	for !joined && err == nil {
		joined, trace, err = w.open(req)
	}
	return joined, trace, err
}

// open tries to begin on the newest snapshot.
func (w *Watch) open(req WatchRequest) (joined bool, trace string, err error) {
	s := w.database.Snapshot()
	defer s.Close()
	if !w.database.watches.holds(w.who, s.published) {
		// Its secret was removed since it was looked at. Nobody would notice later.
		return false, "", fault.New(fault.Unauthenticated, "credential is no longer valid")
	}
	decision, err := s.judgeRead(w.who, w.key.path, w.key.filter())
	if err != nil {
		return false, decision.Trace, err
	}
	w.reads, w.judged = decision.Reads, s.settings
	w.timed.Store(decision.UsedNow)
	first, err := s.newWindow(w.key)
	if err != nil {
		return false, decision.Trace, err
	}
	if joined, err = w.database.watches.join(w, s.position, first); !joined {
		return false, decision.Trace, err
	}
	w.since = req.Behind
	if !req.Resume || !w.resumeBy(s, decision.Reads) {
		err = w.renew(s)
	}
	if err != nil {
		w.database.watches.count.Add(1) // which leave takes back
		w.database.watches.leave(w)
	}
	return true, decision.Trace, err
}

// renew makes what a snapshot shows the next event.
func (w *Watch) renew(s *Snapshot) error {
	w.since = s.position
	s.Until(w.done)
	var data Content
	var err error
	switch {
	case w.key.priority && w.key.filtered:
		data = text("null") // a leaf, or nothing, has no children to select
	case w.key.priority:
		var priority tree.Leaf
		priority, err = s.Priority(w.key.path)
		data = text(tree.AppendLeaf(nil, priority))
	case w.key.filtered:
		data, err = s.Select(w.key.path, w.key.query, w.key.form)
	default:
		data, err = s.Printer(w.key.path, w.key.form)
	}
	if err != nil {
		return err
	}
	w.opening = &Event{Kind: Put, Data: data, Position: s.position, Last: true}
	return nil
}

// A text is content in memory.
type text []byte

func (t text) PrintTo(w io.Writer) error {
	_, err := w.Write(t)
	return err
}

func (t text) Close() error { return nil }

// Next returns the next event; false if there is none now, or the last one was
// returned before.
func (w *Watch) Next() (*Event, bool) {
	for !w.finished {
		if w.expired() {
			w.drop()
			w.revoke()
		}
		if e := w.opening; e != nil {
			w.opening = nil
			return e, true
		}
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
			return e, true
		}
	}
	return nil, false
}

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
func (w *Watch) expired() bool { return w.database.opts.Verifier.Expired(w.who) }

// revoke ends the watch because its credential is not good any more.
func (w *Watch) revoke() { w.subscription.Cut(&Event{Kind: Revoked}) }

// tooSlow reports whether the watch was too far behind for the second time.
func (w *Watch) tooSlow() bool {
	w.database.opts.Metrics.Overflows.Add(1)
	now := time.UnixMilli(w.database.opts.Clock.Millis())
	again := !w.missed.IsZero() && now.Sub(w.missed) < slowReader
	w.missed = now
	return again
}

// Recheck judges a watch again whose permission rests on the time. It is called
// now and then.
func (w *Watch) Recheck() {
	if !w.timed.Load() || w.finished {
		return
	}
	s := w.database.Snapshot()
	defer s.Close()
	if _, err := s.judgeRead(w.who, w.key.path, w.key.filter()); err != nil {
		w.subscription.Cut(ending(err))
	}
}

// ending returns the last event of a watch that cannot go on. It is cancelled if the
// rules do not allow it any more, or lack its index. What only cannot be read now,
// because an index is being built perhaps, its client may ask for again.
func ending(err error) *Event {
	switch fault.KindOf(err) {
	case fault.Denied, fault.Invalid:
		return &Event{Kind: Cancel}
	}
	return &Event{Kind: End}
}

// Epoch returns the epoch of the database's positions. No other database has the
// same, be it in the same store or under the same name after this one was dropped:
// their positions cannot be compared either.
func (d *Database) Epoch() uint64 { return d.store.Epoch() + uint64(d.id) }

// Close ends the watch. It can be called more than once.
func (w *Watch) Close() {
	if w.expiry != nil {
		w.expiry.Stop()
	}
	w.database.watches.leave(w)
	w.drop()
}

// drop gives up what was to be told next.
func (w *Watch) drop() {
	if w.opening != nil {
		_ = w.opening.Data.Close()
		w.opening = nil
	}
	w.backlog, w.behind, w.until = nil, 0, 0
}
