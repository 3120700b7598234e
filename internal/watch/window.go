package watch

import (
	"errors"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/tree"
)

// A window is what a filtered watch shows of the children of a node: those within
// the bounds of its query, from one end up to an edge. Only the edge and the
// number within it are remembered; where a child stands, the views tell. Without an
// index there is no way to find who is next to the edge, so all within it are remembered.
type window struct {
	count int             // of children within, if the query has a limit
	edge  *query.Position // nil if everything within the bounds is shown
	known *scan.Known     // in place of both, if the query has a limit and lacks its index

	priority tree.Leaf // of a watch that shows only the priority
}

// filter returns the query, nil if there is none.
func (k *placeKey) filter() *query.Query {
	if !k.filtered {
		return nil
	}
	q := k.query.Query()
	return &q
}

// counted reports whether the window has a count.
func (k *placeKey) counted() bool { return k.filtered && !k.priority && k.query.Query().Limit > 0 }

// newWindow returns the window as a view shows it. It fails with store.ErrMany
// if more children than a number are to be counted for it, or looked at; 0 is none.
func (k placeKey) newWindow(v *state.View, most int) (window, error) {
	var w window
	if err := v.Exists(); err != nil {
		return w, err
	}
	if k.priority {
		var err error
		w.priority, err = v.Tree().Priority(k.path)
		return w, state.Classify(err)
	}
	if !k.counted() {
		return w, nil
	}
	if scans, err := k.scans(v); scans || err != nil {
		if err == nil {
			w.known, err = scan.Find(k.node(v, most), k.query.Query())
		}
		return w, state.Classify(err)
	}
	index, err := v.Settings.IndexFor(k.query.Query(), k.path)
	if err != nil {
		return w, err
	}
	var last string
	if w.count, last, err = v.Tree().Measure(k.path, k.query.Query(), index, most); err != nil {
		return w, state.Classify(err)
	}
	if w.count == k.query.Query().Limit {
		w.edge, err = k.stand(v, last)
	}
	return w, err
}

// keys returns the keys that a query selects, in the direction of its limit, which
// must be small.
func (k placeKey) keys(v *state.View, q query.Query) ([]string, error) {
	if err := v.Exists(); err != nil {
		return nil, err
	}
	index, err := v.Settings.IndexFor(q, k.path)
	if err != nil {
		return nil, err
	}
	keys, err := v.Tree().Keys(k.path, q, index)
	return keys, state.Classify(err)
}

// stand returns where a child stands; nil if there is none.
func (k placeKey) stand(v *state.View, key string) (*query.Position, error) {
	stand, ok, err := v.Tree().OrderPosition(k.path, key, k.query.Query().Order)
	if err != nil || !ok {
		return nil, state.Classify(err)
	}
	return &stand, nil
}

// shows reports whether a child at a position, nil for no child, is in the window.
func (w *window) shows(q query.Query, p *query.Position) bool {
	switch {
	case p == nil || !q.Contains(*p):
		return false
	case w.edge == nil:
		return true
	case q.Last:
		return query.Compare(*p, *w.edge) >= 0
	default:
		return query.Compare(*p, *w.edge) <= 0
	}
}

// A move is what became of a child in a window.
type move uint8

const (
	stayed move = iota
	entered
	left
	outside
)

// moves are what became of the children that a delivery changed, and of others that
// had to make room for them or took their place.
type moves map[string]move

// slide moves the window from one view to another, between which the touched
// children changed and no others. It fails with store.ErrMany if it must look at more
// children than a number.
func (w *window) slide(k placeKey, before, after *state.View, touched []string, most int) (moves, error) {
	if w.known != nil {
		return w.slideKnown(k, after, touched, most)
	}
	m := make(moves, len(touched))
	for _, key := range touched {
		was, err := k.stand(before, key)
		if err != nil {
			return nil, err
		}
		is, err := k.stand(after, key)
		if err != nil {
			return nil, err
		}
		shown, shows := w.shows(k.query.Query(), was), w.shows(k.query.Query(), is)
		switch {
		case shown && shows:
			m[key] = stayed
		case shown:
			m[key] = left
			w.count--
		case shows:
			m[key] = entered
			w.count++
		default:
			m[key] = outside
		}
	}
	switch limit := k.query.Query().Limit; {
	case limit > 0 && w.count > limit:
		return m, w.shrink(k, after, m)
	case limit > 0 && w.count < limit && w.edge != nil:
		return m, w.widen(k, after, m)
	}
	return m, nil
}

// shrink moves the edge inwards until no more than the limit are within.
func (w *window) shrink(k placeKey, after *state.View, m moves) error {
	excess := w.count - k.query.Query().Limit
	q := k.query.Query()
	if w.edge != nil {
		q = within(q, *w.edge)
	}
	q.Limit, q.Last = excess+1, !k.query.Query().Last
	keys, err := k.keys(after, q)
	if err != nil {
		return err
	}
	if len(keys) != excess+1 {
		return errWindow
	}
	for _, key := range keys[:excess] {
		switch was, touched := m[key]; {
		case !touched, was == stayed:
			m[key] = left
		case was == entered:
			m[key] = outside
		}
	}
	w.count = k.query.Query().Limit
	w.edge, err = k.stand(after, keys[excess])
	return err
}

// widen moves the edge outwards until the limit is reached, or the end.
func (w *window) widen(k placeKey, after *state.View, m moves) error {
	missing := k.query.Query().Limit - w.count
	q := beyond(k.query.Query(), *w.edge)
	q.Limit = missing
	keys, err := k.keys(after, q)
	if err != nil {
		return err
	}
	for _, key := range keys {
		switch was, touched := m[key]; {
		case !touched, was == outside:
			m[key] = entered
		case was == left:
			m[key] = stayed
		}
	}
	w.count += len(keys)
	w.edge = nil
	if len(keys) == missing {
		w.edge, err = k.stand(after, keys[len(keys)-1])
	}
	return err
}

// within returns the query of what is up to an edge, beyond that of what is
// behind it.
func within(q query.Query, edge query.Position) query.Query {
	if q.Last {
		q.Lower = q.Edge(edge, false)
	} else {
		q.Upper = q.Edge(edge, false)
	}
	return q
}

func beyond(q query.Query, edge query.Position) query.Query {
	if q.Last {
		q.Upper = q.Edge(edge, true)
	} else {
		q.Lower = q.Edge(edge, true)
	}
	return q
}

// errWindow says that a window and its index do not agree.
var errWindow = errors.New("the window of a query has lost count")
