package store

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// A View is the store at one moment. All it shows is durable. Views are
// numbered; a later one has a greater number and shows all that the earlier
// ones show, and later commits.
type View struct {
	number   uint64
	store    *Store
	snapshot *pebble.Snapshot
	// refs counts the holders: the store itself while the view is its newest,
	// and whoever got it from Store.View. The last one closes the snapshot,
	// after which the count stays zero.
	refs atomic.Int64
}

// newView takes a snapshot, held once.
func (s *Store) newView(number uint64) *View {
	v := &View{number: number, store: s, snapshot: s.db.NewSnapshot()}
	v.refs.Store(1)
	s.health.views.Add(1)
	return v
}

// View returns the newest view. The caller must release it, soon: a view that
// is held makes compactions keep what it shows.
func (s *Store) View() *View {
	for {
		// The view may be replaced and closed between the two steps; then
		// there is a newer one.
		v := s.view.Load()
		if v.acquire() {
			return v
		}
		if v == s.view.Load() {
			panic("store: View after Close") // nothing newer will come
		}
	}
}

func (v *View) acquire() bool {
	for {
		n := v.refs.Load()
		if n == 0 {
			return false
		}
		if v.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Hold has somebody who holds the view hold it once more.
func (v *View) Hold() { v.refs.Add(1) }

// Number returns the view's number.
func (v *View) Number() uint64 { return v.number }

// Tree returns a database as the view shows it.
func (v *View) Tree(id layout.ID) Tree {
	return Tree{store: v.store, reader: v.store.reader(v.snapshot, id, v.number), origin: v}
}

// Release gives the view back. It must not be used afterwards.
func (v *View) Release() {
	if v.refs.Add(-1) > 0 {
		return
	}
	v.store.health.views.Add(-1)
	if err := v.snapshot.Close(); err != nil {
		v.store.opts.Logger.Error("close a snapshot", "error", err)
	}
}

// Live returns a database with everything that was committed, durable or not.
// Only the goroutine that orders the database's writes may use it, and nobody
// may be told what it shows before a later ticket is Visible.
func (s *Store) Live(id layout.ID) Tree { return Tree{store: s, reader: s.reader(s.db, id, seek.Live)} }

func (s *Store) reader(source pebble.Reader, id layout.ID, view uint64) seek.Reader {
	return seek.Reader{Shared: &s.shared, Source: source, ID: id, View: view, Rows: s.rows}
}
