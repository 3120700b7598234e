package state

import (
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A View is a database at one commit. It must be closed, soon; what it prints does
// not need it any more. Of a database that was dropped, all that it is asked for fails
// with a fault.NotFound error.
type View struct {
	source *Source
	rows   *store.View
	done   <-chan struct{} // see Until
	*Published
}

// View returns the view that is made of a view of the store and of what was published
// with that. To close it is to release the view of the store.
func (s *Source) View(rows *store.View, p *Published) *View {
	return &View{source: s, rows: rows, Published: p}
}

// Close gives the view back.
func (v *View) Close() { v.rows.Release() }

// Hold returns the view for one more holder, who must close it, too.
func (v *View) Hold() *View {
	v.rows.Hold()
	return &View{source: v.source, rows: v.rows, Published: v.Published}
}

// Until says that nobody waits for what is read once done is closed. Long reads then
// fail with ErrUnwanted, also those by what the view has opened from now on.
func (v *View) Until(done <-chan struct{}) { v.done = done }

// Millis returns the time that rules see as now.
func (v *View) Millis() int64 { return v.source.Clock.Millis() }

// Tree returns the rows of the database. Of one that does not exist any more they are
// not all there.
func (v *View) Tree() store.Tree { return v.rows.Tree(v.source.ID).Until(v.done) }

// Exists returns an error if the database was dropped: then the view shows no data
// where there was some.
func (v *View) Exists() error {
	if v.Dropped {
		return NoDatabase(v.source.Name)
	}
	return nil
}

// Printer returns a printer of the node at p. It works on when the view is closed, and
// must be closed itself.
func (v *View) Printer(p tree.Path, form tree.Form) (*store.Printer, error) {
	if err := v.Exists(); err != nil {
		return nil, err
	}
	printer, err := v.Tree().Printer(p, form)
	return printer, Classify(err)
}

// Shallow is Printer for only the keys of the node.
func (v *View) Shallow(p tree.Path) (*store.Printer, error) {
	if err := v.Exists(); err != nil {
		return nil, err
	}
	printer, err := v.Tree().Shallow(p)
	return printer, Classify(err)
}

// ShallowPage is Shallow for up to limit keys, from the first one after a key on;
// from the first of all after the empty key. A limit of 0 is none. It is null if
// there are none. It must be closed.
func (v *View) ShallowPage(p tree.Path, after string, limit int) (*store.Selection, error) {
	if err := v.Exists(); err != nil {
		return nil, err
	}
	page, err := v.Tree().ShallowPage(p, after, limit)
	return page, Classify(err)
}

// Select returns the children of the node at p that a query selects. It must be
// closed. Without the index that the order needs it fails with a fault.Invalid
// error that says what to add to the rules.
func (v *View) Select(p tree.Path, q query.Query, form tree.Form) (*store.Selection, error) {
	if err := v.Exists(); err != nil {
		return nil, err
	}
	index, err := v.Settings.IndexFor(q, p)
	if err != nil {
		v.NoteUnindexed(p, q)
		return nil, err
	}
	selection, err := v.Tree().Select(p, q, index, form)
	return selection, Classify(err)
}

// Priority returns the priority of the node at p, null if there is none.
func (v *View) Priority(p tree.Path) (tree.Leaf, error) {
	if err := v.Exists(); err != nil {
		return tree.Leaf{}, err
	}
	priority, err := v.Tree().Priority(p)
	return priority, Classify(err)
}
