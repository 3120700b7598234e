package store

import (
	"bytes"
	"slices"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// Stand returns where the child called key of the node at p stands in an order;
// false if there is no such child.
func (t Tree) Stand(p tree.Path, key string, order query.Order) (query.Position, bool, error) {
	child := p.Child(key)
	exists, err := t.Exists(child)
	if err != nil || !exists {
		return query.Position{}, false, err
	}
	stand := query.Position{Key: key}
	if order != query.ByKey() {
		stand.Value, err = t.orderValue(child, order)
	}
	return stand, err == nil, err
}

// Keys returns the keys of the children that Select selects, in the direction in
// which the limit counts: from the end of the order if it is one from there.
func (v *View) Keys(id ID, p tree.Path, q query.Query, index *Index) ([]string, error) {
	s := &Selection{Tree: v.Tree(id), path: p}
	l := s.locate(p)
	c, rows, err := s.open(l)
	if err != nil || c == nil && rows == nil {
		return nil, err
	}
	if c != nil {
		defer c.release()
		n, err := s.decode(l, c)
		keys := query.Select(n.At(below(p, c.depth)), q)
		if q.Last {
			slices.Reverse(keys)
		}
		return keys, err
	}
	s.rows, s.parent = rows, l.key
	defer func() { _ = s.Close() }()
	if err := s.plan(q, index); err != nil {
		return nil, err
	}
	each := s.walk
	if s.keys != nil {
		each = s.keys.each
	}
	var keys []string
	err = each(func(component []byte) error {
		key, _, err := cutComponent(component)
		keys = append(keys, key)
		return damaged(err)
	})
	if s.how == ByScan && q.Last {
		slices.Reverse(keys) // what was sorted here is in the order itself
	}
	return keys, err
}

// each calls yield with the components of the selected children, from the end of
// the range if the limit counts from there.
func (w *keyWalk) each(yield func(component []byte) error) error {
	from, to, ok := w.bounds()
	if !ok {
		return nil
	}
	left := w.query.Limit
	if !w.query.Last {
		return w.eachChild(w.parent, from, func(end int, key []byte) (bool, error) {
			if bytes.Compare(key, to) >= 0 {
				return false, nil
			}
			left--
			return left != 0, yield(key[len(w.parent):end])
		})
	}
	it, err := w.iterator(w.parent)
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = it.Close() }()
	for it.SeekLT(to) && bytes.Compare(it.Key(), from) >= 0 {
		end, err := childEnd(it.Key(), len(w.parent))
		if err != nil {
			return damaged(err)
		}
		to = bytes.Clone(it.Key()[:end])
		if err := yield(to[len(w.parent):]); err != nil {
			return err
		}
		if left--; left == 0 {
			return nil
		}
	}
	return damaged(it.Error())
}
