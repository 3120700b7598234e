package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
)

// Options are what a hold needs to know.
type Options struct {
	// Bound is how many bytes the hold may keep in all.
	Bound int64
	// Share, if it is set, has all stores of a cluster take notes: see Set.Take. It returns when this one has.
	Share func(notes []byte) error
}

// A State is how far a hold is.
type State int

// The states of a hold.
const (
	// Beginning: commits are kept from now on, and a base is to be made of a view that is
	// taken later. Then Begin is called.
	Beginning State = iota
	// Following: everything behind what was released is there.
	Following
	// Lost: nothing is kept any more. Restart begins again.
	Lost
)

// The names of holds are short words.
const maxName = 32

// maxNote bounds what a holder may note for a database.
const maxNote = 64

var (
	// ErrLost says that records are missing that a holder has not read.
	ErrLost = errors.New("records of commits were lost before they were read: a new base is needed")
	// ErrClosed says that the hold is closed.
	ErrClosed = errors.New("the hold is closed")
	// ErrNoBase says that the hold has not begun.
	ErrNoBase = errors.New("the hold needs a base first")
)

// A Hold keeps records for one holder, whose methods are called by one goroutine; but for
// State, Stats, Waiting and Close, which anybody may call.
type Hold struct {
	set   *Set
	name  string
	bound int64
	share func([]byte) error // nil if the hold is that of one store
	wake  chan struct{}      // something may have become durable, or the hold was lost
	done  chan struct{}      // closed with the hold

	// The rest is guarded by the set's lock.
	state   State
	closed  bool
	pending map[layout.ID]*pending
	bytes   int64
	// ahead are the databases that have not come to what was released, which others have; begins and resumes say what is under way.
	ahead           map[layout.ID]uint64
	begins, resumes bool
	since           uint64 // databases with serial numbers from this on were made after the base; used while loading
}

// Hold begins to hold, under a name that no other hold has, or goes on where the hold of
// this name was.
func (s *Set) Hold(name string, o Options) (*Hold, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	h := &Hold{
		set: s, name: name, bound: o.Bound, share: o.Share, pending: map[layout.ID]*pending{}, ahead: map[layout.ID]uint64{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.mu.Lock()
	if s.isTaken(name) {
		s.mu.Unlock()
		return nil, fmt.Errorf("there is a hold called %s already", name)
	}
	s.holds = append(s.holds, h)
	s.loading++
	s.update()
	s.mu.Unlock()
	err := h.load()
	s.mu.Lock()
	s.loading--
	s.mu.Unlock()
	if err != nil {
		h.Close()
		return nil, err
	}
	h.signal()
	return h, nil
}

func checkName(name string) error {
	for _, c := range []byte(name) {
		if c < 'a' || c > 'z' {
			return fmt.Errorf("%.60q is no name of a hold: it is made of letters from a to z", name)
		}
	}
	if name == "" || len(name) > maxName {
		return fmt.Errorf("the name of a hold has 1 to %d letters", maxName)
	}
	return nil
}

func (h *Hold) isArmed() bool { return h.state != Lost && !h.closed }

// signal wakes the holder.
func (h *Hold) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// add notes a commit. The lock is held.
func (h *Hold) add(b *batch.Batch) {
	if at, ok := h.ahead[b.ID]; ok {
		if b.Logged.Position <= at {
			h.set.unswept = h.set.unswept || b.Dropped != ""
			return // it was released already
		}
		delete(h.ahead, b.ID)
	}
	p := h.pending[b.ID]
	if p == nil {
		p = &pending{first: b.Logged.Position}
		h.pending[b.ID] = p
	}
	if h.bytes += p.add(b); h.bytes > h.bound {
		h.lose()
	}
}

// undo takes back what add has noted of a commit, unless the hold has forgotten it since. The lock is held.
func (h *Hold) undo(b *batch.Batch) {
	p := h.pending[b.ID]
	if p == nil || p.newest != b.Logged.Position {
		return
	}
	h.bytes -= p.undo(b)
	if p.isDone() && !p.created { // it must be told of a new database, though it has no commit
		h.bytes -= p.bytes
		delete(h.pending, b.ID)
	}
}

// lose gives up. The lock is held.
func (h *Hold) lose() {
	h.state, h.pending, h.bytes = Lost, map[layout.ID]*pending{}, 0
	h.set.unswept = true
	h.set.update()
	h.signal()
}

// Lose gives the hold up, as if it had become too large: its holder cannot follow.
func (h *Hold) Lose() {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	if h.isArmed() {
		h.lose()
	}
}

// State returns how far the hold is.
func (h *Hold) State() State {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	return h.state
}

// Stats returns how many bytes are kept, and whether the hold is lost.
func (h *Hold) Stats() (bytes int64, lost bool) {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	return h.bytes, h.state == Lost
}

// Waiting returns the number of databases with something to read, and the time of the
// oldest commit among that, which is zero if there is none or it is not known. It may be that of
// one which was released with others, of which some were not.
func (h *Hold) Waiting() (databases int, oldest time.Time) {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	least := int64(0)
	for _, p := range h.pending {
		if len(p.segments) > 0 && p.segments[0].millis > 0 && (least == 0 || p.segments[0].millis < least) {
			least = p.segments[0].millis
		}
	}
	if least > 0 {
		oldest = time.UnixMilli(least)
	}
	return len(h.pending), oldest
}

// Restart begins again after the hold was lost, or gives up what was kept so far.
func (h *Hold) Restart() error {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	h.state, h.pending, h.bytes = Beginning, map[layout.ID]*pending{}, 0
	h.set.unswept = true
	h.set.update()
	return nil
}

// Wait returns nil when something is durable that may not have been read, and ErrLost when
// the hold is lost.
func (h *Hold) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-h.done:
		return ErrClosed
	case <-h.wake:
	}
	if h.State() == Lost {
		h.signal() // it stays so
		return ErrLost
	}
	return nil
}

// Close ends the hold. What it has noted stays: a later one goes on there, unless commits
// were made meanwhile.
func (h *Hold) Close() {
	s := h.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.closed {
		return
	}
	h.closed, h.pending = true, nil
	close(h.done)
	for i, other := range s.holds {
		if other == h {
			s.holds = append(s.holds[:i:i], s.holds[i+1:]...)
			break
		}
	}
	s.unswept = true
	s.update()
}

// estimate returns about how many bytes some rows of a database take.
func (h *Hold) estimate(id layout.ID, from, to uint64) (bytes int64, err error) {
	for _, key := range []func([]byte, layout.ID, uint64) []byte{layout.LogKey, layout.RecordKey} {
		n, err := h.set.db.EstimateDiskUsage(key(nil, id, from), key(nil, id, to+1))
		if err != nil {
			return 0, err
		}
		bytes += int64(n)
	}
	return bytes, nil
}

// apply commits a batch that is filled by a function.
func apply(db *pebble.DB, sync *pebble.WriteOptions, fill func(*pebble.Batch) error) error {
	b := db.NewBatch()
	defer func() { _ = b.Close() }()
	if err := fill(b); err != nil {
		return err
	}
	return db.Apply(b, sync)
}
