package rows

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A Page is some of the children of a node, in the order of their keys.
type Page struct {
	// At is the epoch and the position that the page shows, as the ids of streams spell
	// them.
	At   string `json:"at"`
	Path string `json:"path"`
	// Shown is the node itself: the text of a leaf, the priority of either.
	Shown
	// Before and After say that the node has children before the first row, and after the
	// last one. startAt and endAt hide those beyond them; startAfter and endBefore, which say
	// where a page goes on, do not.
	Before bool  `json:"before"`
	After  bool  `json:"after"`
	Rows   []Row `json:"rows"`
}

// AppendJSON appends the page as JSON.
func (p Page) AppendJSON(dst []byte) []byte { return appendJSON(dst, p) }

// appendJSON appends a value of this package, with < and > as they are.
func appendJSON(dst []byte, v any) []byte {
	out := bytes.NewBuffer(dst)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // none of our types fails
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// Bounds of a page.
const (
	maxRows     = 1000
	defaultRows = 100
	minCut      = 16
	maxCut      = 4096
	defaultCut  = 160
)

// A PageBound is when a page ends before it has as many rows as were asked for. It has one
// row at least.
type PageBound struct {
	Bytes   int // that were read
	Time    time.Duration
	Counted int // children of a row that are counted
}

// DefaultPageBound is that of all pages but some of tests.
func DefaultPageBound() PageBound {
	return PageBound{Bytes: 8 << 20, Time: 50 * time.Millisecond, Counted: maxCounted}
}

// A ListRequest says which children a page has.
type ListRequest struct {
	query query.Query // by key
	outer query.Query // without the bounds at which a page goes on
	cut   int
	bound PageBound
}

// ParseList reads a request from the parameters of a URL. Get returns the value of one, and
// whether it is there.
func ParseList(get func(name string) (string, bool)) (ListRequest, error) {
	r := ListRequest{cut: defaultCut, bound: DefaultPageBound()}
	var err error
	if r.query, err = parseKeys(get); err != nil {
		return r, err
	}
	if r.query.Limit == 0 {
		r.query.Limit = defaultRows
	}
	if r.query.Limit > maxRows {
		return r, fault.New(fault.Invalid, "a page has at most %d rows", maxRows)
	}
	r.outer = r.query
	for _, b := range []*query.Bound{&r.outer.Lower, &r.outer.Upper} {
		if b.Exclusive {
			*b = query.Bound{}
		}
	}
	if text, ok := get("cut"); ok {
		if r.cut, err = strconv.Atoi(text); err != nil || r.cut < minCut || r.cut > maxCut {
			return r, fault.New(fault.Invalid, "cut must be a number from %d to %d", minCut, maxCut)
		}
	}
	return r, nil
}

// parseKeys reads the query by key of a request.
func parseKeys(get func(name string) (string, bool)) (query.Query, error) {
	for _, name := range []string{"orderBy", "equalTo"} {
		if _, ok := get(name); ok {
			return query.Query{}, fault.New(fault.Invalid, "%s has no place beside list: rows are in the order of their keys", name)
		}
	}
	q, _, err := query.Parse(func(name string) (string, bool) {
		if name == "orderBy" {
			return `"$key"`, true
		}
		return get(name)
	})
	return q, err
}

// Bounded returns the request with another bound.
func (r ListRequest) Bounded(b PageBound) ListRequest {
	r.bound = b
	return r
}

// ID returns the id of a position: that of the epoch, and the position.
func ID(epoch, position uint64) string {
	return strconv.FormatUint(epoch, 10) + "-" + strconv.FormatUint(position, 10)
}

// ParseID reads what ID returns; false for anything else.
func ParseID(text string) (epoch, position uint64, ok bool) {
	first, second, ok := strings.Cut(text, "-")
	epoch, err := strconv.ParseUint(first, 10, 64)
	position, err2 := strconv.ParseUint(second, 10, 64)
	return epoch, position, ok && err == nil && err2 == nil
}

// List returns a page of the children of the node at p, as of the newest commit. Nobody
// waits for it once done is closed. A nil database has no data.
func List(d *engine.Database, p tree.Path, req ListRequest, done <-chan struct{}) (Page, error) {
	if d == nil {
		return Page{At: ID(0, 0), Path: p.String(), Shown: Shown{Type: TypeNone}, Rows: []Row{}}, nil
	}
	v := d.View()
	defer v.Close()
	v.Until(done)
	return listOn(v, d.Epoch(), p, req)
}

// listOn is List on a view.
func listOn(v *state.View, epoch uint64, p tree.Path, req ListRequest) (Page, error) {
	if err := v.Exists(); err != nil {
		return Page{}, err
	}
	l := &lister{walk: newWalk(v.Tree(), p, req.cut, req.bound.Counted), req: req}
	l.page = Page{At: ID(epoch, v.Position), Path: p.String(), Rows: []Row{}}
	if err := l.read(); err != nil {
		return Page{}, state.Classify(err)
	}
	return l.page, nil
}

// A lister makes a page.
type lister struct {
	*walk
	req  ListRequest
	page Page
}

// read fills the page.
func (l *lister) read() error {
	reader := l.tree.Reader()
	at := reader.Locate(l.path)
	c, rows, err := reader.Open(at)
	switch {
	case err != nil:
		return err
	case c != nil:
		defer c.Release()
		n, err := reader.Decode(at, c)
		if err != nil {
			return err
		}
		n = n.At(layout.Below(l.path, c.Depth))
		if l.page.Shown = show(n, l.cut); n.IsObject() {
			l.page.Value = ""
			l.readHeld(n)
		}
		return nil
	case rows == nil:
		l.page.Type = TypeNone
		return nil
	}
	priority, err := reader.SplitPriority(at.Key)
	if err == nil {
		l.page.Type, l.page.Priority = TypeObject, priorityText(priority)
		err = l.readRows(rows, at.Key)
	}
	return errors.Join(err, damage.Mark(rows.Close()))
}

// readHeld fills the page from a node in memory, which is small.
func (l *lister) readHeld(n tree.Node) {
	var keys []string
	for key := range n.Children() {
		at := query.Position{Key: key}
		upper := query.Query{Order: l.req.query.Order, Upper: l.req.query.Upper}
		switch {
		case l.req.query.Contains(at):
			keys = append(keys, key)
		case !l.req.outer.Contains(at):
		case upper.Contains(at): // it is beyond the lower bound
			l.page.Before = true
		default:
			l.page.After = true
		}
	}
	if over := len(keys) - l.req.query.Limit; over > 0 && l.req.query.Last {
		keys, l.page.Before = keys[over:], true
	} else if over > 0 {
		keys, l.page.After = keys[:l.req.query.Limit], true
	}
	for _, key := range keys {
		l.page.Rows = append(l.page.Rows, l.held(key, n.Child(key)))
	}
}

// readRows fills the page from the rows of a split node with a key.
func (l *lister) readRows(rows *seek.Stepper, parent []byte) error {
	within, _ := l.req.query.KeyRange() // by key there always is one
	around, _ := l.req.outer.KeyRange()
	from, to := layout.ChildBounds(parent, within)
	low, high := layout.ChildBounds(parent, around)
	if l.req.query.Last {
		var err error
		if from, err = l.lastFrom(rows, len(parent), from, to); err != nil {
			return err
		}
	}
	l.page.Before = rows.SeekLT(from) && bytes.Compare(rows.Key(), low) >= 0
	late := time.NewTimer(l.req.bound.Time)
	defer late.Stop()
	rows.SeekGE(from)
	for rows.Valid() && bytes.Compare(rows.Key(), to) < 0 {
		if err := l.tree.Reader().Waiter.Left(len(l.page.Rows)); err != nil {
			return err
		}
		row, err := l.next(rows, len(parent))
		if err != nil {
			return err
		}
		l.page.Rows = append(l.page.Rows, row)
		if len(l.page.Rows) == l.req.query.Limit || l.cost.Bytes >= l.req.bound.Bytes || isLate(late) {
			break
		}
	}
	l.page.After = rows.Valid() && bytes.Compare(rows.Key(), high) < 0
	return damage.Mark(rows.Error())
}

func isLate(t *time.Timer) bool {
	select {
	case <-t.C:
		return true
	default:
		return false
	}
}

// lastFrom goes back from an end by as many children as the page may have, and returns where
// the first of them begins.
func (l *lister) lastFrom(rows *seek.Stepper, parent int, from, to []byte) ([]byte, error) {
	left := l.req.query.Limit
	first := from
	for ok := rows.SeekLT(to); ok && bytes.Compare(rows.Key(), from) >= 0; {
		if err := l.tree.Reader().Waiter.Left(left); err != nil {
			return nil, err
		}
		end, err := layout.ChildEnd(rows.Key(), parent)
		if err != nil {
			return nil, damage.Mark(err)
		}
		if left--; left == 0 {
			first = bytes.Clone(rows.Key()[:end])
			break
		}
		ok = rows.BackOverChild(end)
	}
	return first, damage.Mark(rows.Error())
}
