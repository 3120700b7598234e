package store

import (
	"errors"
	"slices"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// sortedResults is up to how many children a result is gathered and printed
	// in the order of keys; larger ones stream as they are found.
	sortedResults = 10_000
	// maxScanned is how large a collection may be that is looked through as a
	// whole because its index is not ready, and maxScannedBytes how long the
	// values that it is ordered by.
	maxScanned      = 1_000
	maxScannedBytes = 32 << 20
)

// selectBounds are sortedResults and maxAlike, for tests to lower.
type selectBounds struct{ sorted, alike int }

func usualBounds() selectBounds { return selectBounds{sorted: sortedResults, alike: maxAlike} }

// ErrNotReady says that an index is still being built.
var ErrNotReady = errors.New("the index is being built")

// A Selection prints the children of a node that a query selects. Unlike a
// Printer it needs its view until it is closed, and holds it by itself.
type Selection struct {
	tree Tree
	view *View
	path tree.Path
	form tree.Form

	// ready is the whole text, if the node was in a chunk or has no children, or
	// recalled: what was printed before.
	ready    []byte
	recalled bool
	draft    *memo.Draft // nil if the text is not to be remembered
	// rows is over the rows of the split node whose key is parent.
	rows   *seek.Stepper
	parent []byte
	// walk calls yield with the selected children's components. In key order it
	// goes along the data, which is printed on the way.
	walk func(yield func(component []byte) error) error
	keys *keyWalk
	many bool // the result may be too large to be gathered
	how  string

	between func() error // see Between

	arrays bool      // see AllowArray
	held   tree.Node // the node, if it was in a chunk
	isHeld bool
	query  query.Query
	index  *layout.Index
}

// Select returns the children of the node at p that q selects. The index must
// be that of q's order, nil if it is not ready; orders by key and by priority
// need none. The tree must be that of a view.
func (t Tree) Select(p tree.Path, q query.Query, index *layout.Index, form tree.Form) (*Selection, error) {
	s := &Selection{tree: t, path: p, form: form, how: ByChunk, query: q, index: index}
	k := memo.Key{ID: t.reader.ID, Path: p, Form: form, Selected: true, Query: q}
	if s.ready = t.recall(&k); s.ready != nil {
		s.recalled = true
		return s, nil
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	switch {
	case s.isHeld:
		s.ready = appendSelected(nil, s.held, q, form)
		return s, nil
	case s.rows == nil:
		s.ready = []byte("null")
		return s, nil
	}
	if err := s.plan(q, index); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	t.origin.Hold()
	s.view = t.origin
	s.draft = t.newDraft(&k)
	return s, nil
}

// open finds the node of the selection. Afterwards it is held in memory, or rows is
// over its rows, or there is no data.
func (s *Selection) open() error {
	l := s.tree.reader.Locate(s.path)
	c, rows, err := s.tree.reader.Open(l)
	if err != nil || c == nil {
		s.rows, s.parent = rows, l.Key
		return err
	}
	defer c.Release()
	n, err := s.tree.reader.Decode(l, c)
	s.held, s.isHeld = n.At(layout.Below(s.path, c.Depth)), true
	return err
}

// appendSelected appends the selected children of a node in memory.
func appendSelected(dst []byte, n tree.Node, q query.Query, form tree.Form) []byte {
	if !n.IsObject() {
		return append(dst, "null"...)
	}
	keys := query.Select(n, q)
	slices.SortFunc(keys, tree.CompareKeys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(tree.AppendString(dst, key), ':')
		dst = tree.AppendJSON(dst, n.Child(key), form)
	}
	return append(dst, '}')
}

// plan decides how the children of a split node are found.
func (s *Selection) plan(q query.Query, index *layout.Index) error {
	s.query = q
	s.many = q.Limit == 0 || q.Limit > s.tree.store.bounds.sorted
	byKey := q.Order == query.ByKey()
	if q.Order == query.ByPriority() {
		k, err := s.tree.reader.Keeping(s.parent)
		if err != nil {
			return err
		}
		if index = nil; !k.IsBuilding() {
			built := layout.ByPriority()
			index = &built
		}
		byKey = !k.Kept // no child has a priority
	}
	switch {
	case byKey:
		s.how = ByKeys
		s.keys = &keyWalk{of: s, reader: s.tree.reader, parent: s.parent, query: q}
		return nil
	case index == nil:
		s.how = ByScan
		return s.scan(q)
	}
	s.how = ByIndex
	w := &indexWalk{of: s, reader: s.tree.reader, most: s.tree.store.bounds.alike, path: s.path, parent: s.parent, query: q, number: index.Number}
	s.walk = w.each
	return nil
}

// Again returns a selection of the same children. It is called before PrintTo.
func (s *Selection) Again() (Text, error) {
	if s.ready != nil {
		return &Selection{ready: s.ready}, nil
	}
	return s.tree.Select(s.path, s.query, s.index, s.form)
}

// Between has f called now and then while rows are looked at of which nothing is
// written yet. If it fails, PrintTo does.
func (s *Selection) Between(f func() error) { s.between = f }

func (s *Selection) left(row int) error { return s.tree.reader.Waiter.Pace(row, s.between) }

// scan looks through a small collection as a whole.
func (s *Selection) scan(q query.Query) error {
	var all []query.Position
	left := maxScannedBytes
	err := s.tree.reader.EachChild(s.parent, nil, func(end int, row []byte) (bool, error) {
		if len(all) == maxScanned || left < 0 {
			return false, ErrNotReady
		}
		key, _, err := layout.CutComponent(row[len(s.parent):end])
		if err != nil {
			return false, err
		}
		value, err := s.tree.reader.OrderValue(s.path.Child(key), q.Order)
		left -= value.TextBytes()
		all = append(all, query.Position{Value: value.Clone(), Key: key})
		return true, err
	})
	if err != nil {
		return err
	}
	var keys []string
	for _, p := range q.Choose(all) {
		keys = append(keys, p.Key)
	}
	if q.Last {
		slices.Reverse(keys)
	}
	s.walk = func(yield func([]byte) error) error { return eachKey(keys, yield) }
	return nil
}

// each calls yield with the components of the selected children of a split node, in
// the direction in which the limit counts.
func (s *Selection) each(yield func(component []byte) error) error {
	if s.keys != nil {
		return s.keys.each(yield)
	}
	return s.walk(yield)
}

// Size returns the length of the text if it is known before it is written, as of
// Printer.
func (s *Selection) Size() (int, bool) { return len(s.ready), s.ready != nil && !s.recalled }
