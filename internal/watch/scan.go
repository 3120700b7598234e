package watch

import (
	"io"
	"sync"

	"github.com/livetree/livetree/internal/budget"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// This file finds windows whose query lacks its index, for watches that ask for that. A
// scan looks at all children of a node, so a watch makes it on its own goroutine, before
// it joins or begins again. The watches of a place share what was found: each moves it to
// its own view by the change log, and only one of them scans at a time. The dispatcher
// moves the window by the children that a delivery changed. It looks at all children only
// if they are few; otherwise it leaves the window to a watch, as one that is too large to
// be counted (measure.go).

// scans reports whether the window can only be found by a scan of a view.
func (k placeKey) scans(v *state.View) (bool, error) {
	if !k.scan || k.priority {
		return false, nil
	}
	return v.Scans(k.path, k.query.Query())
}

// countedPerLook is how many children are counted by an index in the time that a scan
// looks at one.
const countedPerLook = 10

// node returns the node for a scan that takes no longer than to count a number of
// children by an index; 0 is none.
func (k placeKey) node(v *state.View, most int) scan.Node {
	if most > 0 {
		most = max(1, most/countedPerLook)
	}
	return v.Node(k.path, most)
}

// scans are what was found by the scans of a set.
type scans struct {
	mu     sync.Mutex
	shared map[placeKey]*sharedScan // while there are watches
}

// A sharedScan is what the watches of a place have found.
type sharedScan struct {
	pool    *scan.Pool
	watches int // guarded by the lock of scans, as the claim is
	// claim is for what was found, and for the window of the place, which may be another by
	// now. It is that of the client whose watch has looked last.
	claim  *budget.Claim
	window int // bytes of that

	// turn is full while a watch looks for the window. What was found belongs to that.
	turn     chan struct{}
	known    *scan.Known // nil if there is nothing
	position uint64
}

// A scanning is what a watch has of the scans of its place.
type scanning struct {
	shared    *sharedScan // nil if the watch never scans
	left      bool        // guarded by the lock of scans
	unindexed bool        // when the watch began

	known    *scan.Known // the window at a position, if not nil
	position uint64
}

// enter has a watch share the scans of its place until it leaves.
func (s *scans) enter(w *Watch) {
	if !w.key.scan || w.key.priority {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		s.shared = make(map[placeKey]*sharedScan)
	}
	shared := s.shared[w.key]
	if shared == nil {
		shared = &sharedScan{pool: w.set.source.Scans, turn: make(chan struct{}, 1)}
		s.shared[w.key] = shared
	}
	shared.watches++
	w.scanning.shared = shared
}

// leave undoes enter. It may be called more than once.
func (s *scans) leave(w *Watch) {
	shared := w.scanning.shared
	if shared == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.scanning.left {
		return
	}
	w.scanning.left = true
	if shared.watches--; shared.watches > 0 {
		return
	}
	shared.claim.Release()
	if delete(s.shared, w.key); len(s.shared) == 0 {
		s.shared = nil
	}
}

// scannedBytes is what a place without an index counts beside what is known of it. It also
// bounds how many places a client can have moved by each commit.
const scannedBytes = 4 << 10

// claim claims the memory of what a watch has found for its place, which the window of the
// place takes as well, instead of what was claimed. If the client that paid so far has no
// more, that of the watch may. It reports false if there is too much.
func (s *scans) claim(w *Watch, known *scan.Known) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := w.scanning.shared
	if shared.watches == 0 {
		return true // it is about to be forgotten
	}
	window := max(shared.window, known.Bytes())
	bytes := int64(scannedBytes + known.Bytes() + window)
	if shared.claim == nil || !shared.claim.Grow(bytes) {
		other := shared.pool.Claim(w.client)
		if !other.Grow(bytes) {
			return false
		}
		shared.claim.Release()
		shared.claim = other
	}
	shared.window = known.Bytes()
	return true
}

// moved claims the memory of a window that the dispatcher has moved. It reports false if
// there is too much.
func (s *scans) moved(k placeKey, known *scan.Known) bool {
	if s == nil || known == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := s.shared[k]
	if shared == nil || shared.claim == nil {
		return true // nobody is left, or nothing was found yet
	}
	more := known.Bytes() - shared.window
	if !shared.claim.Grow(shared.claim.Size() + int64(more)) {
		return false
	}
	shared.window = known.Bytes()
	return true
}

// find looks for the window of a watch in a view if there is no index for it. It reports
// false if the view is too old: the window of a newer one is known. While no delivery can
// be taken it does nothing; then the window is found when it is printed.
func (w *Watch) find(v *state.View, gated bool) (fresh bool, err error) {
	own := &w.scanning
	own.known = nil
	if own.shared == nil {
		return true, nil
	}
	scans, err := w.key.scans(v)
	if err != nil || !scans || gated {
		return err == nil, err
	}
	shared := own.shared
	select {
	case shared.turn <- struct{}{}:
	case <-w.done:
		return false, state.Classify(store.ErrUnwanted)
	}
	defer func() { <-shared.turn }()
	if shared.known != nil && shared.position > v.Position {
		return false, nil
	}
	known, err := shared.at(w, v)
	if err != nil {
		return false, state.Classify(err)
	}
	if w.set.scans.Load().claim(w, known) {
		shared.known, shared.position = known, v.Position
	} else if w.key.counted() {
		return false, scan.ErrFull
	} else {
		return true, nil // it is printed by another scan, and not kept
	}
	own.known, own.position = known, v.Position
	return true, nil
}

// at returns the window in a view: what was found before, moved by the change log, or
// else what a scan finds. The caller has the turn.
func (s *sharedScan) at(w *Watch, v *state.View) (*scan.Known, error) {
	if s.known != nil && s.position == v.Position {
		return s.known, nil
	}
	most := w.set.limits.MaxFollowed
	if s.known != nil && v.Position-s.position <= uint64(most) {
		if keys, ok := w.key.changed(s.position, v, most); ok {
			known, err := w.key.moveKnown(s.known, v, keys)
			if err == nil && !known.Short(w.key.query.Query()) {
				return known, nil
			}
		}
	}
	return scan.Find(v.Node(w.key.path, 0), w.key.query.Query())
}

// moveKnown returns what is known after some children were touched, up to a view.
func (k placeKey) moveKnown(known *scan.Known, v *state.View, touched []string) (*scan.Known, error) {
	return known.Moved(k.query.Query(), touched, func(key string) (*query.Position, error) { return k.stand(v, key) })
}

// found returns the window of a view that was found by a scan, nil if it was not.
func (w *Watch) found(v *state.View) *scan.Known {
	if own := &w.scanning; own.known != nil && own.position == v.Position {
		return own.known
	}
	return nil
}

// noteUnindexed tells that the watch, which begins on a view, lacks its index. An index
// by priority, which no rules ask for, may be missing only while it is being built.
func (w *Watch) noteUnindexed(v *state.View) {
	if w.scanning.shared == nil || v.Settings.Indexed(w.key.path, w.key.query.Query()) {
		return
	}
	w.scanning.unindexed = true
	v.NoteUnindexed(w.key.path, w.key.query.Query())
}

// Unindexed reports whether there was no index for the query when the watch began.
func (w *Watch) Unindexed() bool { return w.scanning.unindexed }

// selected returns what a view shows of the window.
func (w *Watch) selected(v *state.View) (Content, error) {
	scans, err := w.key.scans(v)
	if err != nil {
		return nil, err
	}
	query := w.key.query.Query()
	switch {
	case !scans && w.key.whole:
		return v.Read(w.key.path, &query, w.key.form)
	case !scans:
		return v.Select(w.key.path, query, w.key.form)
	}
	held := v.Hold()
	held.Until(w.done)
	return &scanContent{key: w.key, view: held, known: w.found(v), done: w.done}, nil
}

// A scanContent prints a window that was found by a scan, or is found then.
type scanContent struct {
	key   placeKey
	view  *state.View
	known *scan.Known // nil if it is to be found
	done  <-chan struct{}
}

func (c *scanContent) PrintTo(w io.Writer) error {
	node, q := c.view.Node(c.key.path, 0), c.key.query.Query()
	if c.known == nil && q.Limit > 0 {
		var err error
		if c.known, err = scan.Find(node, q); err != nil {
			return state.Classify(err)
		}
	}
	if c.known == nil || c.known.Many() {
		return state.Classify(scan.Print(w, node, q, c.key.form))
	}
	return state.Classify(c.known.Print(w, node, q, c.key.form))
}

// Again returns another content that prints the same. The window is found once for both,
// if it can be kept.
func (c *scanContent) Again() (store.Text, error) {
	if c.known == nil && c.key.query.Query().Limit > 0 {
		var err error
		if c.known, err = scan.Find(c.view.Node(c.key.path, 0), c.key.query.Query()); err != nil {
			return nil, state.Classify(err)
		}
	}
	held := c.view.Hold()
	held.Until(c.done)
	return &scanContent{key: c.key, view: held, known: c.known, done: c.done}, nil
}

// Close gives the view back. It can be called more than once.
func (c *scanContent) Close() error {
	if c.view != nil {
		c.view.Close()
		c.view = nil
	}
	return nil
}

// slideKnown is slide for a window of which all children are known.
func (w *window) slideKnown(k placeKey, after *state.View, touched []string, most int) (moves, error) {
	next, err := k.moveKnown(w.known, after, touched)
	if err != nil {
		return nil, err
	}
	if next.Short(k.query.Query()) {
		if node := k.node(after, most); node.Most > 0 && next.Cost() > node.Most {
			return nil, store.ErrMany // which a look would find
		}
		again, err := k.newWindow(after, most)
		if err != nil {
			return nil, err
		}
		if next = again.known; next == nil {
			return nil, errWindow // the index is there now, and is used from here on
		}
	}
	m := movesBetween(w.known.Shown(k.query.Query()), next.Shown(k.query.Query()), touched)
	w.known = next
	return m, nil
}

// movesBetween returns what became of the children that were touched, and of all that are
// in one of two windows only.
func movesBetween(before, after []query.Position, touched []string) moves {
	m := make(moves, len(touched))
	for _, key := range touched {
		m[key] = outside
	}
	if len(before) == len(after) && (len(before) == 0 || &before[0] == &after[0]) {
		return m // nothing in the window was touched
	}
	was := make(map[string]struct{}, len(before))
	for _, p := range before {
		was[p.Key] = struct{}{}
	}
	for _, p := range after {
		_, stays := was[p.Key]
		_, told := m[p.Key]
		switch delete(was, p.Key); {
		case !stays:
			m[p.Key] = entered
		case told:
			m[p.Key] = stayed
		}
	}
	for key := range was {
		m[key] = left
	}
	return m
}
