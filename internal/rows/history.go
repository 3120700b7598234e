package rows

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// maxHistory is how many commits a history lists at most, and historyBytes how much of the
	// change log is read for it.
	maxHistory   = 1000
	historyBytes = 256 << 20
	// historyCut is how many characters of a value are shown, and historyNode the largest node
	// that is followed from commit to commit.
	historyCut  = 1000
	historyNode = 1 << 20
)

// A Who is who has made a commit.
type Who struct {
	By  string `json:"by"`
	UID string `json:"uid,omitempty"`
}

// newWho returns an author as it is shown, nil for a commit of a version that did not note it.
func newWho(a tree.Author) *Who {
	if a.By == "" {
		return nil
	}
	return &Who{a.By, a.UID}
}

// String writes who it was for people.
func (w *Who) String() string {
	if w == nil {
		return "not known"
	}
	return strings.TrimSuffix(w.By+" "+w.UID, " ")
}

// A HistoryEntry is a commit that touched a path.
type HistoryEntry struct {
	At   string `json:"at"`
	Time int64  `json:"time"` // in milliseconds since the UNIX epoch
	Who  *Who   `json:"who,omitempty"`
	// Path is where the write was made.
	Path string `json:"path"`
	// Before and After are the node at the path that was asked for, as JSON text in export
	// form. Both are missing where they are not known: before the first commit of the list
	// that set the node as a whole, and of what is too large.
	Before *Seen `json:"before,omitempty"`
	After  *Seen `json:"after,omitempty"`
}

// Seen is the text of a node, which may be cut.
type Seen struct {
	Value string `json:"value"`
	Cut   bool   `json:"cut,omitempty"`
}

// String writes the node for people, as far as it is known.
func (s *Seen) String() string {
	switch {
	case s == nil:
		return "?"
	case s.Cut:
		return s.Value + "…"
	}
	return s.Value
}

// A History lists commits that touched a path, the oldest first.
type History struct {
	Entries []HistoryEntry `json:"entries"`
	// More says that there are later ones than are listed. To goes on behind the last that
	// was looked at, in a stream of changes or in another history.
	More bool   `json:"more"`
	To   string `json:"to"`
	// Reaches is the time of the oldest commit that could be looked at: what was before is not
	// in the log any more. It is 0 if nothing is missing.
	Reaches int64 `json:"reaches"`
}

// A HistoryRequest says what is listed.
type HistoryRequest struct {
	Path  tree.Path
	Since time.Time // zero for all that is there
	// Behind, if not empty, is the id of a commit that the list begins behind.
	Behind string
	Limit  int
}

// ReadHistory lists the commits of a database that touched a path.
func ReadHistory(d *engine.Database, req HistoryRequest, done <-chan struct{}) (History, error) {
	if req.Limit <= 0 || req.Limit > maxHistory {
		req.Limit = maxHistory
	}
	v := d.View()
	defer v.Close()
	v.Until(done)
	if err := v.Exists(); err != nil {
		return History{}, err
	}
	h := &historian{request: req, epoch: d.Epoch(), list: History{Entries: []HistoryEntry{}, To: ID(d.Epoch(), v.Position)}}
	if epoch, position, ok := ParseID(req.Behind); ok && epoch == d.Epoch() {
		h.behind = position
	}
	oldest, millis, err := oldestChange(v.Tree())
	if err != nil {
		return History{}, state.Classify(err)
	}
	if oldest > h.behind+1 {
		h.list.Reaches, h.behind = millis, oldest-1
	} else {
		h.known = h.behind == 0 // there was nothing at all before the first commit
	}
	err = v.Tree().ChangesAt(h.behind, v.Position, []tree.Path{req.Path}, historyBytes, h.add)
	if err != nil && !errors.Is(err, store.ErrTrimmed) {
		return History{}, state.Classify(err)
	}
	return h.list, nil
}

// oldestChange returns the position and the time of the oldest commit in the log, 0 if there is
// none.
func oldestChange(t store.Tree) (position uint64, millis int64, err error) {
	it, err := t.Reader().LogRows(0)
	if err != nil {
		return 0, 0, damage.Mark(err)
	}
	if it.First() {
		var row []byte
		if row, err = it.ValueAndErr(); err == nil && len(row) >= layout.LogHead {
			position, millis = layout.LogPosition(it.Key()), layout.LogMillis(row)
		}
	}
	return position, millis, damage.Mark(errors.Join(err, it.Error(), it.Close()))
}

// A historian follows the node at a path from commit to commit.
type historian struct {
	request HistoryRequest
	epoch   uint64
	behind  uint64
	node    tree.Node
	known   bool // the node is what it was at this commit
	list    History
}

// add lists a commit, if it is one to be listed. It reports whether there is room for more.
func (h *historian) add(c tree.Change) bool {
	if c.Settings {
		return true
	}
	if len(h.list.Entries) == h.request.Limit {
		h.list.More, h.list.To = true, h.list.Entries[len(h.list.Entries)-1].At
		return false
	}
	before := h.seen()
	if !h.follow(c) {
		return true
	}
	if c.Millis < h.request.Since.UnixMilli() && !h.request.Since.IsZero() {
		return true
	}
	h.list.Entries = append(h.list.Entries, HistoryEntry{
		At: ID(h.epoch, c.Position), Time: c.Millis, Who: newWho(c.Author), Path: c.At.String(), Before: before, After: h.seen(),
	})
	return true
}

// follow applies a commit to the node, and reports whether it touched it.
func (h *historian) follow(c tree.Change) (touched bool) {
	p := h.request.Path
	if c.Truncated {
		h.known = false
		return c.At.Overlaps(p)
	}
	var below []tree.Assignment
	for _, a := range c.Assignments {
		switch {
		case a.Void || !a.Path.Overlaps(p) || a.Priority && !p.Contains(a.Path):
		case !a.Priority && a.Path.Contains(p): // then there is no other
			h.node, h.known, touched = a.Node.At(a.Path.Below(p)), true, true
		default:
			below, touched = append(below, a), true
		}
	}
	if len(below) > 0 {
		editor := tree.NewEditor(h.node)
		editor.Apply(p, slices.Values(below))
		h.node = editor.Node()
	}
	if h.node.Bytes() > historyNode {
		h.node, h.known = tree.Node{}, false
	}
	return touched
}

// seen returns the node as it is shown, nil if it is not known.
func (h *historian) seen() *Seen {
	if !h.known {
		return nil
	}
	text := string(tree.AppendJSON(nil, h.node, tree.Export))
	if end := prefix(text, historyCut); end < len(text) {
		return &Seen{strings.Clone(text[:end]), true}
	}
	return &Seen{Value: text}
}
