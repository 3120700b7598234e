package store

import (
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// AllowArray has the result print as an array if it is what a node would print as
// one: its keys are indexes, at least half of those up to the last.
func (s *Selection) AllowArray() {
	if s.form == tree.Export {
		return
	}
	s.arrays = true
	if s.ready == nil || !s.held.IsObject() {
		return
	}
	var indexes []int32
	for _, key := range query.Select(s.held, s.query) {
		index, ok := tree.ArrayIndex(key)
		if !ok {
			return
		}
		indexes = append(indexes, index)
	}
	slices.Sort(indexes)
	if !isArray(indexes) {
		return
	}
	s.ready = append(s.ready[:0], '[')
	for next, i := int32(0), 0; i < len(indexes); next++ {
		if next > 0 {
			s.ready = append(s.ready, ',')
		}
		if next < indexes[i] {
			s.ready = append(s.ready, "null"...)
			continue
		}
		s.ready = tree.AppendJSON(s.ready, s.held.Child(strconv.Itoa(int(next))), s.form)
		i++
	}
	s.ready = append(s.ready, ']')
}

func isArray(indexes []int32) bool {
	return len(indexes) > 0 && tree.ArrayRule(int64(indexes[len(indexes)-1]), int64(len(indexes)))
}

var errNoArray = errors.New("not an array")

// indexes returns the keys of the result as indexes, in order; false if it does
// not print as an array.
func (s *Selection) indexes() ([]int32, bool, error) {
	var indexes []int32
	each := s.walk
	if s.keys != nil {
		each = s.keys.each
	}
	err := each(func(component []byte) error {
		if err := s.waiter.left(len(indexes)); err != nil {
			return err
		}
		key, _, err := cutComponent(component)
		if err != nil {
			return damaged(err)
		}
		index, ok := tree.ArrayIndex(key)
		if !ok {
			return errNoArray
		}
		indexes = append(indexes, index)
		return nil
	})
	if errors.Is(err, errNoArray) {
		return nil, false, nil
	}
	slices.Sort(indexes)
	return indexes, err == nil && isArray(indexes), err
}

// printArray writes the result as an array.
func (s *Selection) printArray(w io.Writer, indexes []int32) error {
	s.draft = nil
	r := s.result(w, '[')
	defer r.free()
	var component []byte
	next := int32(0)
	for _, index := range indexes {
		for ; next < index; next++ {
			r.buf = append(r.buf, "null,"...)
		}
		next++
		component = appendInteger(component[:0], index)
		if err := r.value(component); err != nil {
			return err
		}
	}
	return r.end(']')
}
