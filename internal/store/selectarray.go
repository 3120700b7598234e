package store

import (
	"errors"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
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

// indexes returns the keys of the result as indexes; false if it does not print as
// an array. It takes a bit for each of them, once it is known that there are not
// many more than children.
func (s *Selection) indexes() (indexSet, bool, error) {
	last, count := int32(0), 0
	err := s.eachIndex(func(index int32) {
		last = max(last, index)
		count++
	})
	if errors.Is(err, errNoArray) || err == nil && (count == 0 || !tree.ArrayRule(int64(last), int64(count))) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	set := make(indexSet, last/64+1)
	return set, true, s.eachIndex(set.add)
}

// eachIndex calls yield with the keys of the result as indexes. It fails with
// errNoArray if one of them is none.
func (s *Selection) eachIndex(yield func(index int32)) error {
	row := 0
	return s.each(func(component []byte) error {
		if err := s.tree.reader.Waiter.Left(row); err != nil {
			return err
		}
		row++
		key, _, err := layout.CutComponent(component)
		if err != nil {
			return damage.Mark(err)
		}
		index, ok := tree.ArrayIndex(key)
		if !ok {
			return errNoArray
		}
		yield(index)
		return nil
	})
}

// An indexSet has a bit for each index that is in it.
type indexSet []uint64

func (s indexSet) add(index int32) { s[index/64] |= 1 << (index % 64) }

// all returns the indexes in order.
func (s indexSet) all(yield func(index int32) bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			if !yield(int32(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// printArray writes the result as an array.
func (s *Selection) printArray(w io.Writer, indexes indexSet) error {
	s.draft = nil
	r := s.result(w, '[')
	defer r.free()
	var component []byte
	next := int32(0)
	for index := range indexes.all {
		for ; next < index; next++ {
			r.buf = append(r.buf, "null,"...)
		}
		next++
		component = layout.AppendInteger(component[:0], index)
		if err := r.value(component); err != nil {
			return err
		}
	}
	return r.end(']')
}
