package rows

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/shares"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A FindRequest says what is searched for: a text, in keys, in values or in both, whatever its
// letter case. Values are strings, and the JSON text of numbers and booleans.
type FindRequest struct {
	Under string   `json:"under"`
	Text  string   `json:"text"`
	In    []string `json:"in"`
	Limit int      `json:"limit"`
}

// A HitEvent is a node that was found, with its value if it is a leaf.
type HitEvent struct {
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
	Cut   bool   `json:"cut,omitempty"`
}

// A ProgressEvent says how far a search is.
type ProgressEvent struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// An EndEvent says that a search is over, and whether it has seen everything.
type EndEvent struct {
	Complete bool `json:"complete"`
}

// A FindBound bounds a search.
type FindBound struct {
	Hits int
	Time time.Duration
	// Every is how often progress is told, and Slice for how long a search has its turn.
	Every, Slice time.Duration
	// Text is how long the text may be, in bytes.
	Text int
	// Shares is how many run at a time.
	Shares shares.Bound
}

// DefaultFindBound is that of all but some tests.
func DefaultFindBound() FindBound {
	return FindBound{
		Hits: 1000, Time: 30 * time.Second, Every: time.Second, Slice: 50 * time.Millisecond, Text: 1024,
		Shares: shares.Bound{Session: 1, Group: 4, All: 8},
	}
}

// Finds let one search run at a time for a session, and few for all sessions of a database.
type Finds struct {
	bound  FindBound
	shares *shares.Shares
}

// NewFinds returns searches of which none is running.
func NewFinds(b FindBound) *Finds { return &Finds{bound: b, shares: shares.New(b.Shares)} }

// Find searches the newest view of a database for somebody, and calls tell with what there is to
// tell, until that fails. Nobody waits for it once done is closed. It fails with a
// fault.Unavailable error while another search of the same session runs, or too many of the same group. A search holds files of the
// store, but no view, and takes turns with scans.
func (f *Finds) Find(d *engine.Database, req FindRequest, who shares.Who, done <-chan struct{}, tell func(Event) error) error {
	s, err := f.newSearch(req)
	if err != nil {
		return err
	}
	leave, ok := f.shares.Enter(who)
	if !ok {
		return fault.New(fault.Unavailable, "another search is running: end it, or wait for its end")
	}
	defer leave()
	v := d.View()
	v.Until(done)
	if err := v.Exists(); err != nil {
		v.Close()
		return err
	}
	s.tell, s.done = tell, done
	s.pace = newPace(v.Node(s.under, 0).Pool.NewTurn(), done, OutlineBound{Time: f.bound.Time, Slice: f.bound.Slice, Free: seek.RowsBetween})
	defer s.pace.end()
	s.every = time.NewTicker(f.bound.Every)
	defer s.every.Stop()
	err = s.run(v)
	complete := err == nil
	if err != nil && !errors.Is(err, errEnough) {
		return state.Classify(err)
	}
	s.pace.turn.End()
	return tell(Event{Name: "end", Data: EndEvent{complete}})
}

// newSearch checks a request.
func (f *Finds) newSearch(req FindRequest) (*search, error) {
	under, err := tree.ParsePath(req.Under)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "under is not a valid path: %v", err)
	}
	if req.Text == "" || len(req.Text) > f.bound.Text {
		return nil, fault.New(fault.Invalid, "text must have from 1 to %d bytes", f.bound.Text)
	}
	s := &search{under: under, text: strings.ToLower(req.Text), left: req.Limit}
	if s.left <= 0 || s.left > f.bound.Hits {
		s.left = f.bound.Hits
	}
	for _, in := range req.In {
		switch in {
		case "keys":
			s.keys = true
		case "values":
			s.values = true
		default:
			return nil, fault.New(fault.Invalid, `what is searched must be a list of "keys" and "values"`)
		}
	}
	if !s.keys && !s.values {
		s.keys, s.values = true, true
	}
	return s, nil
}

// errEnough ends a search before it has seen everything.
var errEnough = errors.New("enough was found, or it took too long")

// A search goes over all rows below a node.
type search struct {
	under        tree.Path
	text         string // in lower case
	keys, values bool
	left         int // hits
	tell         func(Event) error
	done         <-chan struct{}
	pace         *pace
	every        *time.Ticker
	bytes        int64
	last         tree.Path // of the row before
}

// run searches the node, and closes the view.
func (s *search) run(v *state.View) error {
	reader := v.Tree().Reader()
	l := reader.Locate(s.under)
	c, rows, err := reader.Open(l)
	v.Close() // the rows do without it
	switch {
	case err != nil:
		return err
	case c != nil:
		defer c.Release()
		n, err := reader.Decode(l, c)
		if err != nil {
			return err
		}
		return s.node(s.under, n.At(layout.Below(s.under, c.Depth)))
	case rows == nil:
		return nil
	}
	s.last = s.under
	err = s.rows(rows)
	return errors.Join(err, damage.Mark(rows.Close()))
}

// rows searches the rows of a split node.
func (s *search) rows(rows *seek.Stepper) error {
	for n := 1; rows.Valid(); n++ {
		if more, err := s.pace.step(n); err != nil {
			return err
		} else if !more {
			return errEnough
		}
		if err := s.row(rows); err != nil {
			return err
		}
		rows.Step()
	}
	return damage.Mark(rows.Error())
}

// row searches one row: the keys of the path that the row before did not have, and the node in
// it.
func (s *search) row(rows *seek.Stepper) error {
	p, isPriority, err := layout.CutDataKey(rows.Key())
	if err != nil {
		return damage.Mark(err)
	}
	s.bytes += int64(len(rows.Key()))
	if err := s.above(p, isPriority); err != nil || isPriority {
		return err
	}
	text, err := rows.ValueAndErr()
	if err != nil {
		return damage.Mark(err)
	}
	s.bytes += int64(len(text))
	if err := s.progress(p); err != nil {
		return err
	}
	if !s.mayHold(text) && !(s.keys && s.holds(p.Last())) {
		return nil
	}
	n, err := layout.DecodeChunk(text)
	if err != nil {
		return damage.AtRow(rows.Key(), err)
	}
	return s.node(p, n)
}

// mayHold reports whether the text may be in the keys below a chunk's node, or in the values of
// its leaves. In the JSON text only quotes, backslashes and control characters are spelled in
// another way, and the keys of arrays, which are digits, are not spelled at all.
func (s *search) mayHold(chunk []byte) bool {
	if s.keys && strings.Trim(s.text, "0123456789") == "" && !layout.SpellsKeys(chunk) {
		return true
	}
	spelled := strings.ContainsFunc(s.text, func(c rune) bool { return c < ' ' || c == '"' || c == '\\' })
	return spelled || bytes.Contains(bytes.ToLower(chunk), []byte(s.text))
}

// above searches the keys between the node and a row that the row before did not have. The last
// key of a row with a node is left to that.
func (s *search) above(p tree.Path, isPriority bool) error {
	end := p.Parent()
	if isPriority {
		end = p
	}
	var fresh []tree.Path
	for at := end; at != s.under && s.under.Contains(at) && !at.Contains(s.last); at = at.Parent() {
		fresh = append(fresh, at)
	}
	for i := len(fresh) - 1; i >= 0; i-- {
		if err := s.key(fresh[i], tree.Node{}); err != nil {
			return err
		}
	}
	s.last = p
	return nil
}

// key tells of a node if its key holds the text.
func (s *search) key(p tree.Path, n tree.Node) error {
	if !s.keys || p == s.under || !s.holds(p.Last()) {
		return nil
	}
	return s.hit(p, n)
}

func (s *search) holds(text string) bool {
	return strings.Contains(strings.ToLower(text), s.text)
}

// node searches a node in memory.
func (s *search) node(p tree.Path, n tree.Node) error {
	if s.keys && p != s.under && s.holds(p.Last()) || s.values && s.inValue(n) {
		if err := s.hit(p, n); err != nil {
			return err
		}
	}
	for key, child := range n.Children() {
		if err := s.node(p.Child(key), child); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) inValue(n tree.Node) bool {
	switch n.Kind() {
	case tree.Null, tree.Object:
		return false
	case tree.String:
		return s.holds(n.Leaf().Text())
	}
	return s.holds(string(tree.AppendLeaf(nil, n.Leaf())))
}

// hit tells of a node that was found.
func (s *search) hit(p tree.Path, n tree.Node) error {
	e := HitEvent{Path: p.String()}
	if !n.IsNull() && !n.IsObject() {
		e.Value, e.Cut = leafText(n.Leaf(), defaultCut)
	}
	if err := s.say(Event{Name: "hit", Data: e}); err != nil {
		return err
	}
	if s.left--; s.left == 0 {
		return errEnough
	}
	return nil
}

// say tells an event. The turn is another's meanwhile: a client takes as long as it likes.
func (s *search) say(e Event) error {
	s.pace.turn.End()
	return s.tell(e)
}

// progress tells how far the search is, now and then.
func (s *search) progress(p tree.Path) error {
	select {
	case <-s.every.C:
		return s.say(Event{Name: "progress", Data: ProgressEvent{p.String(), s.bytes}})
	default:
		return nil
	}
}
