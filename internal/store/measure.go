package store

import (
	"errors"
	"slices"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// OrderPosition returns where the child called key of the node at p is in an order;
// false if there is no such child.
func (t Tree) OrderPosition(p tree.Path, key string, order query.Order) (query.Position, bool, error) {
	child := p.Child(key)
	exists, err := t.Exists(child)
	if err != nil || !exists {
		return query.Position{}, false, err
	}
	position := query.Position{Key: key}
	if order != query.ByKey() {
		position.Value, err = t.reader.OrderValue(child, order)
	}
	return position, err == nil, err
}

// Keys returns the keys of the children that Select selects, in the direction in
// which the limit counts: from the end of the order if it is one from there. It
// takes memory for each of them, so the limit should be small. Of long strings that
// begin alike only the last is sure to be in its place.
func (t Tree) Keys(p tree.Path, q query.Query, index *layout.Index) ([]string, error) {
	var keys []string
	err := t.eachSelected(p, q, index, func(component []byte) error {
		key, _, err := layout.CutComponent(component)
		keys = append(keys, key)
		return damage.Mark(err)
	})
	return keys, err
}

// ErrMany says that more children are selected than are to be counted.
var ErrMany = errors.New("too many children are selected")

// Measure counts the children that Select selects, and returns the key of the last
// of them in the direction in which the limit counts. It takes no memory for them.
// It fails with ErrMany if there are more than a number; 0 is none.
func (t Tree) Measure(p tree.Path, q query.Query, index *layout.Index, most int) (count int, last string, err error) {
	var component []byte
	err = t.eachSelected(p, q, index, func(next []byte) error {
		if count++; count > most && most > 0 {
			return ErrMany
		}
		component = append(component[:0], next...)
		return nil
	})
	if err == nil && count > 0 {
		last, _, err = layout.CutComponent(component)
		err = damage.Mark(err)
	}
	return count, last, err
}

// eachSelected calls yield with the components of the children that Select selects,
// in the direction in which the limit counts.
func (t Tree) eachSelected(p tree.Path, q query.Query, index *layout.Index, yield func(component []byte) error) error {
	s := &Selection{tree: t, path: p}
	if err := s.open(); err != nil || !s.isHeld && s.rows == nil {
		return err
	}
	if s.isHeld {
		keys := query.Select(s.held, q)
		if q.Last {
			slices.Reverse(keys)
		}
		return eachKey(keys, yield)
	}
	defer func() { _ = s.Close() }()
	if err := s.plan(q, index); err != nil {
		return err
	}
	return s.each(yield)
}

// eachKey calls yield with the components of keys.
func eachKey(keys []string, yield func(component []byte) error) error {
	var component []byte
	for _, key := range keys {
		component = layout.AppendComponent(component[:0], key)
		if err := yield(component); err != nil {
			return err
		}
	}
	return nil
}
