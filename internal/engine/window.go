package engine

import (
	"errors"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// A window is what a filtered watch shows of the children of a node: those within
// the bounds of its query, from one end up to an edge. Only the edge and the
// number within it are remembered; where a child stands, the views tell.
type window struct {
	count int             // of children within, if the query has a limit
	edge  *query.Position // nil if everything within the bounds is shown

	priority tree.Leaf // of a watch that shows only the priority
}

// filter returns the query, nil if there is none.
func (k *placeKey) filter() *query.Query {
	if !k.filtered {
		return nil
	}
	return &k.query
}

// newWindow returns the window as a snapshot shows it.
func (s *Snapshot) newWindow(k placeKey) (window, error) {
	var w window
	if k.priority {
		var err error
		_, w.priority, err = s.tree().Look(k.path)
		return w, classify(err)
	}
	if !k.filtered || k.query.Limit == 0 {
		return w, nil
	}
	keys, err := s.keys(k.path, k.query)
	if err != nil {
		return w, err
	}
	w.count = len(keys)
	if w.count == k.query.Limit {
		w.edge, err = s.stand(k, keys[len(keys)-1])
	}
	return w, err
}

// keys returns the keys that a query selects, in the direction of its limit.
func (s *Snapshot) keys(p tree.Path, q query.Query) ([]string, error) {
	index, err := s.settings.indexFor(q, p.String(), s.settings.indexes.At(p))
	if err != nil {
		return nil, err
	}
	keys, err := s.view.Keys(s.database.id, p, q, index)
	return keys, classify(err)
}

// stand returns where a child stands; nil if there is none.
func (s *Snapshot) stand(k placeKey, key string) (*query.Position, error) {
	stand, ok, err := s.tree().Stand(k.path, key, k.query.Order)
	if err != nil || !ok {
		return nil, classify(err)
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

// slide moves the window from one snapshot to another, between which the touched
// children changed and no others.
func (w *window) slide(k placeKey, before, after *Snapshot, touched []string) (moves, error) {
	m := make(moves, len(touched))
	for _, key := range touched {
		was, err := before.stand(k, key)
		if err != nil {
			return nil, err
		}
		is, err := after.stand(k, key)
		if err != nil {
			return nil, err
		}
		shown, shows := w.shows(k.query, was), w.shows(k.query, is)
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
	switch limit := k.query.Limit; {
	case limit > 0 && w.count > limit:
		return m, w.shrink(k, after, m)
	case limit > 0 && w.count < limit && w.edge != nil:
		return m, w.widen(k, after, m)
	}
	return m, nil
}

// shrink moves the edge inwards until no more than the limit are within.
func (w *window) shrink(k placeKey, after *Snapshot, m moves) error {
	excess := w.count - k.query.Limit
	q := k.query
	if w.edge != nil {
		q = within(q, *w.edge)
	}
	q.Limit, q.Last = excess+1, !k.query.Last
	keys, err := after.keys(k.path, q)
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
	w.count = k.query.Limit
	w.edge, err = after.stand(k, keys[excess])
	return err
}

// widen moves the edge outwards until the limit is reached, or the end.
func (w *window) widen(k placeKey, after *Snapshot, m moves) error {
	missing := k.query.Limit - w.count
	q := beyond(k.query, *w.edge)
	q.Limit = missing
	keys, err := after.keys(k.path, q)
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
		w.edge, err = after.stand(k, keys[len(keys)-1])
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
