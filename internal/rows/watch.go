package rows

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A Location is a node some of whose rows are watched: those from one key to another, both
// included. An empty key is no bound. Several locations may have the same path: they are then
// told of together.
type Location struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// A WatchRequest says what is watched. Since is the id of the last event that the client has;
// without one it is told what changes from now on.
type WatchRequest struct {
	Since     string     `json:"since"`
	Locations []Location `json:"locations"`
}

// An Event is what a client is told.
type Event struct {
	Name string
	// ID is where a client goes on that comes back; empty if further events belong to the
	// same commits.
	ID   string
	Data any // a RowsEvent, a CountEvent or a ResetEvent
}

// A RowsEvent has rows as they are now. Those of the type none are gone.
type RowsEvent struct {
	At   string `json:"at"`
	Path string `json:"path"`
	Rows []Row  `json:"rows"`
}

// A CountEvent says how many children came and went outside the rows that are watched.
type CountEvent struct {
	At      string `json:"at"`
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// A ResetEvent says that all rows of a location are to be read again.
type ResetEvent struct {
	At   string `json:"at"`
	Path string `json:"path"`
}

// A WatchBound bounds what a Watcher does.
type WatchBound struct {
	Locations int
	// Rows is how many rows of a location may change between two looks. More reset it.
	Rows int
	// LogBytes is how much of the change log is read in a look. More resets everything.
	LogBytes int64
	// Time is for how long a look reads rows, of which it reads one at least. The others come
	// with the next look.
	Time time.Duration
	Cut  int
	// Counted is how many children of a row are counted.
	Counted int
}

// DefaultWatchBound is that of all but some tests.
func DefaultWatchBound() WatchBound {
	return WatchBound{Locations: 200, Rows: 500, LogBytes: 8 << 20, Time: 100 * time.Millisecond, Cut: defaultCut, Counted: maxCounted}
}

// A Watcher tells which rows have changed from one look to the next.
//
// A look reads the change log from where the last one ended, notes which children of which
// locations were written, and reads their rows as they are by then. So a row that is written a
// thousand times between two looks is told once, and what is kept is bounded by what is
// watched: it does not grow with what is written.
//
// To tell children that came from those that were there, it holds the view of its last look.
// So whoever has a Watcher looks often, or closes it. It belongs to one goroutine.
type Watcher struct {
	database *engine.Database
	bound    WatchBound
	places   []*place
	paths    []tree.Path
	at       hub.Register[*place] // finds the places that a change concerns
	position uint64               // of the last look
	told     uint64               // of the last look of which everything was told
	before   *state.View          // of the last look; nil if the client was away
}

// A place is a path that is watched, with what is known of it.
type place struct {
	path   tree.Path
	within []query.Query // by key: the rows that are watched
	notes  map[string]struct{}
	reset  bool
	object bool // the node had children at the last look
}

// NewWatcher begins to watch. It must be closed.
func NewWatcher(d *engine.Database, req WatchRequest, b WatchBound) (*Watcher, error) {
	if n := len(req.Locations); n == 0 || n > b.Locations {
		return nil, fault.New(fault.Invalid, "%d locations are to be watched: there must be from 1 to %d", n, b.Locations)
	}
	w := &Watcher{database: d, bound: b}
	for _, l := range req.Locations {
		if err := w.add(l); err != nil {
			return nil, err
		}
	}
	v := d.View()
	err := v.Exists()
	if err == nil {
		err = w.begin(v, req.Since)
	}
	if err != nil {
		v.Close()
		return nil, state.Classify(err)
	}
	return w, nil
}

// add adds a location to the place of its path.
func (w *Watcher) add(l Location) error {
	path, err := tree.ParsePath(l.Path)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the path of a location is not valid: %v", err)
	}
	within := query.Query{Order: query.ByKey()}
	if l.From != "" {
		within.Lower = query.Bound{Set: true, Value: tree.StringLeaf(l.From)}
	}
	if l.To != "" {
		within.Upper = query.Bound{Set: true, Value: tree.StringLeaf(l.To)}
	}
	i := slices.Index(w.paths, path)
	if i < 0 {
		i = len(w.places)
		p := &place{path: path, notes: map[string]struct{}{}}
		w.places, w.paths = append(w.places, p), append(w.paths, path)
		w.at.Add(path, p)
	}
	w.places[i].within = append(w.places[i].within, within)
	return nil
}

// begin makes a view the first, of a client that was told everything up to an id.
func (w *Watcher) begin(v *state.View, since string) error {
	w.before, w.position = v, v.Position
	epoch, position, ok := ParseID(since)
	switch {
	case since == "":
	case !ok || epoch != w.database.Epoch() || position > v.Position:
		w.resetAll()
	case position < v.Position:
		w.position = position
	}
	w.told = w.position
	for _, p := range w.places {
		var err error
		if p.object, err = p.hasChildren(v); err != nil {
			return err
		}
	}
	if w.position < v.Position {
		v.Close() // it shows too much
		w.before = nil
	}
	return nil
}

func (p *place) hasChildren(v *state.View) (bool, error) {
	first, err := v.Tree().NextChild(p.path, "")
	return first != "", err
}

func (w *Watcher) resetAll() {
	for _, p := range w.places {
		p.giveUp()
	}
}

// giveUp says that the rows of the place are to be read again.
func (p *place) giveUp() {
	p.reset = true
	clear(p.notes)
}

// Close ends the watch.
func (w *Watcher) Close() {
	if w.before != nil {
		w.before.Close()
		w.before = nil
	}
}

// ID returns the id of the last look of which everything was told.
func (w *Watcher) ID() string { return ID(w.database.Epoch(), w.told) }

// Look returns what has changed since the last look. Nobody waits for it once done is
// closed. It fails if the database was dropped or is closed.
func (w *Watcher) Look(done <-chan struct{}) ([]Event, error) {
	if err := w.database.Standing(); err != nil {
		return nil, err
	}
	v := w.database.View()
	v.Until(done)
	events, err := w.look(v)
	if err != nil {
		v.Close()
		return nil, state.Classify(err)
	}
	w.Close()
	w.before, w.position = v, v.Position
	if !w.isBehind() {
		w.told = w.position
		if n := len(events); n > 0 {
			events[n-1].ID = w.ID()
		}
	}
	return events, nil
}

// isBehind reports whether there are rows that were not read yet.
func (w *Watcher) isBehind() bool {
	return slices.ContainsFunc(w.places, func(p *place) bool { return len(p.notes) > 0 })
}

// look notes what was written up to a view, and reads it there.
func (w *Watcher) look(v *state.View) ([]Event, error) {
	if err := v.Exists(); err != nil {
		return nil, err
	}
	if w.position < v.Position {
		err := v.Tree().ChangesAt(w.position, v.Position, w.paths, w.bound.LogBytes, func(c tree.Change) bool {
			w.note(c)
			return true
		})
		if errors.Is(err, store.ErrTrimmed) || errors.Is(err, store.ErrTooMuch) {
			w.resetAll()
		} else if err != nil {
			return nil, err
		}
	}
	t := &telling{Watcher: w, view: v, at: ID(w.database.Epoch(), v.Position), late: time.NewTimer(w.bound.Time)}
	defer t.late.Stop()
	for _, p := range w.places {
		if err := t.tell(p); err != nil {
			return nil, err
		}
	}
	return t.events, nil
}

// note notes a change at all places that it concerns.
func (w *Watcher) note(c tree.Change) {
	switch {
	case c.Settings:
	case c.Truncated:
		w.assigned(tree.Assignment{Path: c.At})
	default:
		for _, a := range c.Assignments {
			w.assigned(a)
		}
	}
}

// assigned notes an assignment at the places at, above and below it: what it costs does not
// grow with the places that it does not concern.
func (w *Watcher) assigned(a tree.Assignment) {
	w.at.Concerned(a.Path, func(p *place) { p.note(a, w.bound.Rows) })
}

// note notes an assignment, unless that would make more notes than most.
func (p *place) note(a tree.Assignment, most int) {
	switch {
	case a.Void || p.reset:
	case a.Path.Contains(p.path):
		if !a.Priority || a.Path == p.path {
			p.giveUp()
		}
	case !p.path.Contains(a.Path):
	case a.Leaf > 0 && a.Path.Ancestor(a.Leaf).Contains(p.path):
		p.giveUp() // it was a leaf, or below one
	default:
		key, _ := p.path.Below(a.Path).Cut()
		if _, noted := p.notes[key]; !noted && len(p.notes) == most {
			p.giveUp()
			return
		}
		p.notes[key] = struct{}{}
	}
}

// A telling makes the events of one look.
type telling struct {
	*Watcher
	view   *state.View
	at     string
	late   *time.Timer
	isLate bool
	events []Event
}

func (t *telling) add(name string, data any) {
	t.events = append(t.events, Event{Name: name, Data: data})
}

// tell tells of one place.
func (t *telling) tell(p *place) error {
	if len(p.notes) == 0 && !p.reset {
		return nil
	}
	object, err := p.hasChildren(t.view)
	if err != nil {
		return err
	}
	if object != p.object || t.before == nil && !object {
		p.giveUp() // it is another kind of node now, or may be
	}
	p.object = object
	if !p.reset {
		if err := t.count(p); err != nil {
			return err
		}
	}
	if p.reset {
		p.reset = false
		t.add("reset", ResetEvent{t.at, p.path.String()})
		return nil
	}
	return t.rows(p)
}

// watches reports whether the row of a child is watched.
func (p *place) watches(key string) bool {
	return slices.ContainsFunc(p.within, func(q query.Query) bool { return q.Contains(query.Position{Key: key}) })
}

// count tells how many children came and went outside the rows that are watched, and
// forgets their notes. If the client was away that is not known, and the place is reset, as it
// is if there is no time to find out.
func (t *telling) count(p *place) error {
	e := CountEvent{At: t.at, Path: p.path.String()}
	for key := range p.notes {
		if p.watches(key) {
			continue
		}
		// To look for each child takes time, and there may be very many.
		if t.isLate = t.isLate || isLate(t.late); t.before == nil || t.isLate {
			p.giveUp()
			return nil
		}
		delete(p.notes, key)
		was, err := t.before.Tree().Exists(p.path.Child(key))
		if err != nil {
			return err
		}
		is, err := t.view.Tree().Exists(p.path.Child(key))
		if err != nil {
			return err
		}
		switch {
		case is && !was:
			e.Added++
		case was && !is:
			e.Removed++
		}
	}
	if e.Added > 0 || e.Removed > 0 {
		t.add("count", e)
	}
	return nil
}

// rows tells the rows that were noted, in their order, as far as there is time.
func (t *telling) rows(p *place) error {
	e := RowsEvent{At: t.at, Path: p.path.String()}
	walk := newWalk(t.view.Tree(), p.path, t.bound.Cut, t.bound.Counted)
	for _, key := range slices.SortedFunc(maps.Keys(p.notes), tree.CompareKeys) {
		if t.isLate {
			break
		}
		row, err := walk.child(key)
		if err != nil {
			return err
		}
		delete(p.notes, key)
		e.Rows = append(e.Rows, row)
		t.isLate = isLate(t.late)
	}
	if len(e.Rows) > 0 {
		t.add("rows", e)
	}
	return nil
}
