package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

const (
	// sortedResults is up to how many children a result is gathered and printed
	// in the order of keys; larger ones stream as they are found.
	sortedResults = 10_000
	// maxCut is how many strings that begin alike, and are longer than an index
	// row holds, are sorted for one query.
	maxCut = 10_000
	// maxScanned is how large a collection may be that is looked through as a
	// whole because its index is not ready.
	maxScanned = 1_000
)

// ErrNotReady says that an index is still being built. ErrAlike says that a
// query meets too many long strings that begin alike.
var (
	ErrNotReady = errors.New("the index is being built")
	ErrAlike    = fmt.Errorf("more than %d strings are longer than %d bytes and begin alike", maxCut, query.MaxIndexedText)
)

// A Selection prints the children of a node that a query selects. Unlike a
// Printer it needs its view until it is closed, and holds it by itself.
type Selection struct {
	Tree
	view *View
	path tree.Path
	form tree.Form

	// ready is the whole text, if the node was in a chunk or has no children, or
	// recalled: what was printed before.
	ready    []byte
	recalled bool
	draft    *draft // nil if the text is not to be remembered
	// rows is over the rows of the split node whose key is parent.
	rows   *pebble.Iterator
	parent []byte
	// walk calls yield with the selected children's components. In key order it
	// goes along the data, which is printed on the way.
	walk func(yield func(component []byte) error) error
	keys *keyWalk
	many bool // the result may be too large to be gathered
	how  string

	arrays bool      // see AllowArray
	held   tree.Node // the node, if it was in a chunk
	query  query.Query
}

// Select returns the children of the node at p that q selects. The index must
// be that of q's order, nil if it is not ready; orders by key and by priority
// need none. The tree must be that of a view.
func (t Tree) Select(p tree.Path, q query.Query, index *Index, form tree.Form) (*Selection, error) {
	s := &Selection{Tree: t, path: p, form: form, how: ByChunk}
	k := memoKey{id: t.id, path: p, form: form, selected: true, query: q}
	if s.ready = t.recall(&k); s.ready != nil {
		s.recalled = true
		return s, nil
	}
	l := s.locate(p)
	c, rows, err := s.open(l)
	switch {
	case err != nil:
		return nil, err
	case c != nil:
		defer c.release()
		n, err := s.decode(l, c)
		s.held, s.query = n.At(below(p, c.depth)), q
		s.ready = appendSelected(nil, s.held, q, form)
		return s, err
	case rows == nil:
		s.ready = []byte("null")
		return s, nil
	}
	s.rows, s.parent = rows, l.key
	if err := s.plan(q, index); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	t.origin.refs.Add(1) // it is held by the caller, so it is not closed
	s.view = t.origin
	s.draft = t.newDraft(&k)
	return s, nil
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
func (s *Selection) plan(q query.Query, index *Index) error {
	s.many = q.Limit == 0 || q.Limit > sortedResults
	byKey := q.Order == query.ByKey()
	if q.Order == query.ByPriority() {
		index = &Index{priorityIndex, q.Order}
		active, err := s.hasPriorityIndex(s.parent)
		if err != nil {
			return err
		}
		byKey = !active // no child has a priority
	}
	switch {
	case byKey:
		s.how = ByKeys
		s.keys = &keyWalk{Tree: s.Tree, parent: s.parent, query: q}
		return nil
	case index == nil:
		s.how = ByScan
		return s.scan(q)
	}
	s.how = ByIndex
	w := &indexWalk{Tree: s.Tree, path: s.path, parent: s.parent, query: q, number: index.Number}
	s.walk = w.each
	return nil
}

// scan looks through a small collection as a whole.
func (s *Selection) scan(q query.Query) error {
	var all []query.Position
	err := s.eachChild(s.parent, nil, func(end int, row []byte) (bool, error) {
		if len(all) == maxScanned {
			return false, ErrNotReady
		}
		key, _, err := cutComponent(row[len(s.parent):end])
		if err != nil {
			return false, err
		}
		value, err := s.orderValue(s.path.Child(key), q.Order)
		all = append(all, query.Position{Value: value, Key: key})
		return true, err
	})
	if err != nil {
		return err
	}
	chosen := q.Choose(all)
	s.walk = func(yield func([]byte) error) error {
		for _, p := range chosen {
			if err := yield(appendComponent(nil, p.Key)); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// Size returns the length of the text if it is known before it is written, as of
// Printer.
func (s *Selection) Size() (int, bool) { return len(s.ready), s.ready != nil && !s.recalled }

// An indexWalk finds children by the rows of an index.
type indexWalk struct {
	Tree
	path   tree.Path
	parent []byte
	query  query.Query
	number uint32
}

// each calls yield with the selected children's components, from the end of the
// order if the limit counts from there.
func (w *indexWalk) each(yield func(component []byte) error) error {
	prefix := indexPrefix(nil, w.parent, w.number)
	from := w.query.AppendLower(bytes.Clone(prefix), appendComponent)
	to := w.query.AppendUpper(bytes.Clone(prefix), appendComponent)
	if w.number == priorityIndex && len(from) == len(prefix) {
		from = append(from, 0) // the row that says that the index is there
	}
	if bytes.Compare(from, to) >= 0 {
		return nil
	}
	it, err := w.reader.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	first, next := it.First, it.Next
	if w.query.Last {
		first, next = it.Last, it.Prev
	}
	left := w.query.Limit
	group := cutGroup{indexWalk: w}
	take := func(component []byte) (bool, error) {
		left--
		return left != 0, yield(component)
	}
	for ok := first(); ok; ok = next() {
		w.cost.add(len(it.Key()))
		row := it.Key()[len(prefix):]
		n, cut := query.IndexValueLen(row)
		if n < 0 || componentLen(row[n:]) != len(row)-n {
			return rowError(it.Key(), errors.New("not an index row"))
		}
		if more, err := group.end(row[:n], take); err != nil || !more {
			return err
		}
		if cut {
			if err := group.add(row[:n], row[n:]); err != nil {
				return err
			}
			continue
		}
		if more, err := take(row[n:]); err != nil || !more {
			return err
		}
	}
	if _, err := group.end(nil, take); err != nil {
		return err
	}
	return damaged(it.Error())
}

// A cutGroup gathers neighbouring rows whose values were cut at the same place.
// Only the data tells their order.
type cutGroup struct {
	*indexWalk
	value []byte
	read  int
	found []query.Position
}

func (g *cutGroup) add(value, component []byte) error {
	if g.read++; g.read > maxCut {
		return ErrAlike
	}
	key, _, err := cutComponent(component)
	if err != nil {
		return damaged(err)
	}
	v, err := g.orderValue(g.path.Child(key), g.query.Order)
	if err != nil {
		return err
	}
	g.value = append(g.value[:0], value...)
	if p := (query.Position{Value: v, Key: key}); g.query.Contains(p) {
		g.found = append(g.found, p)
	}
	return nil
}

// end takes the children of the group, unless value is still the same.
func (g *cutGroup) end(value []byte, take func([]byte) (bool, error)) (bool, error) {
	if len(g.found) == 0 || value != nil && bytes.Equal(value, g.value) {
		return true, nil
	}
	slices.SortFunc(g.found, query.Compare)
	if g.query.Last {
		slices.Reverse(g.found)
	}
	for _, p := range g.found {
		if more, err := take(appendComponent(nil, p.Key)); err != nil || !more {
			return false, err
		}
	}
	g.found = g.found[:0]
	return true, nil
}
