package rows

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
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
	// in the log any more, nor in the archive. It is 0 if nothing is missing.
	Reaches int64 `json:"reaches"`
	// Note says why older commits are missing that should be there.
	Note string `json:"note,omitempty"`
}

// Missing says in one line which commits are not in the list though they may have been made,
// nothing if all are.
func (h *History) Missing() (text string) {
	if h.Reaches > 0 {
		text = "nothing is known from before " + time.UnixMilli(h.Reaches).UTC().Format(time.RFC3339) + "; "
	}
	return strings.TrimSuffix(text+h.Note, "; ")
}

// A HistoryRequest says what is listed.
type HistoryRequest struct {
	Path  tree.Path
	Since time.Time // zero for all that is there
	// Behind, if not empty, is the id of a commit that the list begins behind, or what a
	// history said in To.
	Behind string
	Limit  int
	// Older reads what the change log does not hold any more; it may be nil.
	Older Older

	maxBytes int64 // of the change log that is read, historyBytes by default
}

func (r HistoryRequest) logBytes() int64 {
	if r.maxBytes > 0 {
		return r.maxBytes
	}
	return historyBytes
}

// Older reads the commits of a database from an archive, in the order of their positions, and
// yields each with the segment that it is in, until yield returns false. First is the time from
// which on all were read. If there is more than it reads in one call, next is the segment to go
// on with.
type Older func(ctx context.Context, q OlderQuery, yield func(segment uint64, c tree.Change) bool) (first time.Time, next uint64, err error)

// An OlderQuery says which commits are read: those of a time, or from a segment on if it is not
// 0, until another time.
type OlderQuery struct {
	Database    uint32
	From, Until time.Time
	Segment     uint64
}

// ReadHistory lists the commits of a database that touched a path: from the archive where the
// change log does not reach, then from the log.
func ReadHistory(ctx context.Context, d *engine.Database, req HistoryRequest) (History, error) {
	if req.Limit <= 0 || req.Limit > maxHistory {
		req.Limit = maxHistory
	}
	v := d.View()
	defer v.Close()
	v.Until(ctx.Done())
	if err := v.Exists(); err != nil {
		return History{}, err
	}
	h := &historian{request: req, epoch: d.Epoch(), list: History{Entries: []HistoryEntry{}, To: ID(d.Epoch(), v.Position)}}
	h.goOn(req.Behind)
	oldest, millis, err := oldestChange(v.Tree())
	if err != nil {
		return History{}, state.Classify(err)
	}
	if oldest == 0 { // nothing is left of it
		oldest, millis = v.Position+1, v.Millis()
	}
	h.known = h.behind == 0 && oldest == 1 // there was nothing at all before the first commit
	if oldest > h.behind+1 {
		h.list.Reaches = millis
		if h.readOlder(ctx, uint32(v.Tree().Reader().ID), oldest, millis) {
			return h.list, nil
		}
		h.behind, h.segment = oldest-1, 0
	}
	err = h.readLog(v)
	return h.list, err
}

// readLog lists commits of the change log. Where that is too long to be read at once, another history
// goes on.
func (h *historian) readLog(v *state.View) error {
	err := v.Tree().ChangesAt(h.behind, v.Position, []tree.Path{h.request.Path}, h.request.logBytes(), h.add)
	if much, ok := errors.AsType[*store.TooMuchError](err); ok && much.Until > h.behind {
		h.list.More, h.list.To = true, ID(h.epoch, much.Until)
		return nil
	}
	return state.Classify(err)
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
	segment uint64 // of the archive that is being read; 0 for the change log
	node    tree.Node
	known   bool  // the node is what it was at this commit
	shown   *Seen // the text of the node; nil if it was not needed since it changed
	list    History
}

// add lists a commit, if it is one to be listed. It reports whether there is room for more.
func (h *historian) add(c tree.Change) bool {
	if c.Settings {
		return true
	}
	if len(h.list.Entries) == h.request.Limit {
		h.list.More, h.list.To = true, h.place(h.list.Entries[len(h.list.Entries)-1].At)
		return false
	}
	isListed := h.request.Since.IsZero() || c.Millis >= h.request.Since.UnixMilli()
	var before *Seen
	if isListed {
		before = h.seen()
	}
	if !h.follow(c) || !isListed {
		return true
	}
	h.list.Entries = append(h.list.Entries, HistoryEntry{
		At: ID(h.epoch, c.Position), Time: c.Millis, Who: newWho(c.Author), Path: c.At.String(), Before: before, After: h.seen(),
	})
	return true
}

// place returns where to go on after a commit: in the archive with the segment, which takes long
// to find.
func (h *historian) place(id string) string {
	if h.segment == 0 {
		return id
	}
	return id + "@" + strconv.FormatUint(h.segment, 10)
}

// goOn goes on after what place has returned. Anything else begins at the beginning.
func (h *historian) goOn(behind string) {
	id, segment, _ := strings.Cut(behind, "@")
	if epoch, position, ok := ParseID(id); ok && epoch == h.epoch {
		h.behind = position
		h.segment, _ = strconv.ParseUint(segment, 10, 64)
	}
}

// readOlder lists commits from the archive, up to before the oldest one in the log. It reports
// whether there are more of them, in the archive or in the log, than fit into the list. What
// cannot be read is missing, which the list says.
func (h *historian) readOlder(ctx context.Context, database uint32, oldest uint64, millis int64) (full bool) {
	wantsOlder := h.request.Since.IsZero() || h.request.Since.Before(time.UnixMilli(millis))
	if h.request.Older == nil || !wantsOlder {
		return false
	}
	q := OlderQuery{Database: database, From: h.request.Since, Until: time.UnixMilli(millis), Segment: h.segment}
	last, reached := h.behind, int64(0)
	first, next, err := h.request.Older(ctx, q, func(segment uint64, c tree.Change) bool {
		switch {
		case c.Position <= h.behind:
			return true
		case c.Position >= oldest:
			return false
		case c.Position == 1:
			h.known = true
		case c.Position != last+1:
			h.known, reached = false, c.Millis // what is between is missing, or older than was asked for
		}
		added := h.add(c)
		if added {
			last, h.segment = c.Position, segment
		}
		return added
	})
	if err != nil {
		h.list.Note = "the archive cannot be read: " + fault.Public(err)
		h.known = false
		return h.list.More
	}
	h.known = h.known && last == oldest-1
	isWhole := last == oldest-1 && (reached == 0 || !h.request.Since.IsZero() && !first.After(h.request.Since) || h.request.Behind != "")
	switch {
	case h.list.More || next > 0 || isWhole:
		h.list.Reaches = 0
	case reached > 0 && last == oldest-1:
		h.list.Reaches = reached
	}
	if next > 0 && !h.list.More {
		h.segment = next
		h.list.More, h.list.To = true, h.place(ID(h.epoch, last))
	}
	return h.list.More
}

// follow applies a commit to the node, and reports whether it touched it.
func (h *historian) follow(c tree.Change) (touched bool) {
	defer func() {
		if touched {
			h.shown = nil
		}
	}()
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
	if h.shown == nil {
		head, isAll := tree.AppendHead(nil, h.node, tree.Export, historyCut*utf8.UTFMax)
		text := string(head)
		if end := prefix(text, historyCut); end < len(text) || !isAll {
			h.shown = &Seen{strings.Clone(text[:end]), true}
		} else {
			h.shown = &Seen{Value: text}
		}
	}
	return h.shown
}
