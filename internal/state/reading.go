package state

import (
	"errors"
	"io"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A Reading is what a view shows at a location, as text. It opens the rows when it is
// printed and not before: until then it holds the view and nothing else, so that a client
// may have many that it does not take.
type Reading struct {
	view    *View // nil when it was closed
	path    tree.Path
	query   *query.Query // nil for the whole node
	form    tree.Form
	between func() error
}

// Read returns what is at p: all of it, or what a query selects. It must be closed. It
// works on when the view is closed. Without the index that the query needs it fails as
// Select does.
func (v *View) Read(p tree.Path, q *query.Query, form tree.Form) (*Reading, error) {
	if err := v.Exists(); err != nil {
		return nil, err
	}
	if q != nil {
		if _, err := v.Settings.IndexFor(*q, p); err != nil {
			v.NoteUnindexed(p, *q)
			return nil, err
		}
	}
	return &Reading{view: v.hold(), path: p, query: q, form: form}, nil
}

// hold is Hold for what ends when nobody waits for the view.
func (v *View) hold() *View {
	held := v.Hold()
	held.Until(v.done)
	return held
}

// Between has f called now and then while rows are looked at of which nothing is written
// yet. If it fails, PrintTo does.
func (r *Reading) Between(f func() error) { r.between = f }

// Again returns another reading of the same.
func (r *Reading) Again() (store.Text, error) {
	again := *r
	again.view = r.view.hold()
	return &again, nil
}

// PrintTo writes the text. After an error, what was written is a fragment.
func (r *Reading) PrintTo(w io.Writer) error {
	text, err := r.open()
	if err != nil {
		return err
	}
	if r.between != nil {
		text.Between(r.between)
	}
	return Classify(errors.Join(text.PrintTo(w), text.Close()))
}

// A pacedText is one that can be held up while it is printed.
type pacedText interface {
	store.Text
	Between(f func() error)
}

func (r *Reading) open() (pacedText, error) {
	if r.query == nil {
		return r.view.Printer(r.path, r.form)
	}
	return r.view.Select(r.path, *r.query, r.form)
}

// Close gives the view back. It can be called more than once.
func (r *Reading) Close() error {
	if r.view != nil {
		r.view.Close()
		r.view = nil
	}
	return nil
}
