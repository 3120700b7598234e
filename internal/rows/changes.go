package rows

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A ChangeEvent is a commit, as far as it concerns a path.
type ChangeEvent struct {
	At   string `json:"at"`
	Time int64  `json:"time"` // in milliseconds since the UNIX epoch
	Who  *Who   `json:"who,omitempty"`
	// Patch says that the write was one of several paths.
	Patch bool      `json:"patch"`
	Set   []SetPath `json:"set"`
	// More says that there are more paths than are shown.
	More bool `json:"more"`
}

// A SetPath is what a commit has set at one path.
type SetPath struct {
	Path string `json:"path"`
	// Value is JSON text, null for what was deleted. It is empty if the change was too large for
	// the log.
	Value string `json:"value,omitempty"`
	Cut   bool   `json:"cut"`
	// Bytes is how long the whole text is, 0 if that is not known.
	Bytes int `json:"bytes"`
}

// A SkippedEvent says that commits are not told, because there are too many or because the
// log no longer has them.
type SkippedEvent struct {
	Commits uint64 `json:"commits"`
}

// A ChangeBound bounds what is told of changes.
type ChangeBound struct {
	// Rate is how many paths are told in a Window.
	Rate   int
	Window time.Duration
	// Paths is how many paths of a commit are shown, and Cut how many characters of a value.
	Paths, Cut int
	// Rows is how many commits are looked at in a turn.
	Rows uint64
}

// DefaultChangeBound is that of all but some tests.
func DefaultChangeBound() ChangeBound {
	return ChangeBound{Rate: 1000, Window: time.Second, Paths: 50, Cut: defaultCut, Rows: 4096}
}

// Changes tell what is committed at and below a path, in order, from the change log. They belong
// to one goroutine, and hold nothing of the store.
type Changes struct {
	database *engine.Database
	under    tree.Path
	bound    ChangeBound
	position uint64
	skipped  uint64
	told     int // paths, in this window
	began    time.Time
}

// NewChanges begins after the commit with an id, or with the next commit if that is empty. An
// id that means nothing here skips everything so far.
func NewChanges(d *engine.Database, under tree.Path, since string, b ChangeBound) *Changes {
	c := &Changes{database: d, under: under, bound: b}
	v := d.View()
	defer v.Close()
	c.position = v.Position
	if epoch, position, ok := ParseID(since); ok && epoch == d.Epoch() && position <= v.Position {
		c.position = position
	} else if since != "" {
		c.skipped = v.Position
	}
	return c
}

// ID returns the id of the last commit that was told, or looked at.
func (c *Changes) ID() string { return ID(c.database.Epoch(), c.position) }

// Next returns the next events; more says that there are others to be had at once. Nobody waits
// for it once done is closed. Now is the time of the machine.
func (c *Changes) Next(now time.Time, done <-chan struct{}) (events []Event, more bool, err error) {
	if err := c.database.Standing(); err != nil {
		return nil, false, err
	}
	if now.Sub(c.began) >= c.bound.Window {
		c.began, c.told = now, 0
		events = c.tellSkipped(events)
	}
	v := c.database.View()
	defer v.Close()
	v.Until(done)
	if err := v.Exists(); err != nil {
		return nil, false, err
	}
	if c.position == v.Position {
		return events, false, nil
	}
	until := min(v.Position, c.position+c.bound.Rows)
	err = v.Tree().ChangesAt(c.position, until, []tree.Path{c.under}, math.MaxInt64, func(change tree.Change) bool {
		events = c.tell(events, change)
		return true
	})
	if errors.Is(err, store.ErrTrimmed) {
		c.skipped += v.Position - c.position
		c.position = v.Position
		return c.tellSkipped(nil), false, nil
	}
	if err != nil {
		return nil, false, state.Classify(err)
	}
	c.position = until
	return events, until < v.Position, nil
}

// tellSkipped tells what was skipped, if anything was.
func (c *Changes) tellSkipped(events []Event) []Event {
	if c.skipped == 0 {
		return events
	}
	events = append(events, Event{Name: "skipped", ID: c.ID(), Data: SkippedEvent{c.skipped}})
	c.skipped = 0
	return events
}

// tell tells a commit, or skips it.
func (c *Changes) tell(events []Event, change tree.Change) []Event {
	paths := c.paths(change)
	if paths == 0 {
		return events
	}
	// What is skipped is not printed: that takes longer than all else.
	if c.told += paths; c.told > c.bound.Rate {
		c.skipped++
		return events
	}
	e := c.event(change)
	return append(events, Event{Name: "change", ID: e.At, Data: e})
}

// paths returns how many paths of a commit are told.
func (c *Changes) paths(change tree.Change) (n int) {
	switch {
	case change.Settings:
		return 0
	case change.Truncated && change.At.Overlaps(c.under):
		return 1
	}
	for _, a := range change.Assignments {
		if c.concerns(a) {
			n++
		}
	}
	return min(n, c.bound.Paths)
}

// concerns reports whether an assignment is told.
func (c *Changes) concerns(a tree.Assignment) bool {
	if a.Void || !a.Path.Overlaps(c.under) {
		return false
	}
	return !a.Priority || c.under.Contains(a.Path) // else it is of a node above
}

// event returns a commit as it is told.
func (c *Changes) event(change tree.Change) ChangeEvent {
	e := ChangeEvent{At: ID(c.database.Epoch(), change.Position), Time: change.Millis, Who: newWho(change.Author), Patch: change.Patch, Set: []SetPath{}}
	if change.Truncated && change.At.Overlaps(c.under) {
		at := change.At
		if at.Contains(c.under) {
			at = c.under
		}
		e.Set, e.More = append(e.Set, SetPath{Path: at.String(), Cut: true}), change.Patch
		return e
	}
	for _, a := range change.Assignments {
		if !c.concerns(a) {
			continue
		}
		if len(e.Set) == c.bound.Paths {
			e.More = true
			break
		}
		e.Set = append(e.Set, c.set(a))
	}
	return e
}

// set returns an assignment as it is told, cut to the path.
func (c *Changes) set(a tree.Assignment) SetPath {
	at, n := a.Path, a.Node
	if !c.under.Contains(at) {
		at, n = c.under, n.At(at.Below(c.under))
	}
	s := SetPath{Path: at.String()}
	if a.Priority {
		s.Path = priorityPath(at)
	}
	text := tree.AppendJSON(nil, n, tree.Plain)
	s.Value, s.Bytes = string(text), len(text)
	if end := prefix(s.Value, c.bound.Cut); end < len(s.Value) {
		s.Value, s.Cut = strings.Clone(s.Value[:end]), true // the rest is not kept
	}
	return s
}

// priorityPath returns how REST names the priority of the node at p.
func priorityPath(p tree.Path) string {
	if p.IsRoot() {
		return "/.priority"
	}
	return p.String() + "/.priority"
}
