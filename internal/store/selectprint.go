package store

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// PrintTo writes the result as an object; it can be called once.
func (s *Selection) PrintTo(w io.Writer) error {
	if s.ready != nil {
		_, err := w.Write(s.ready)
		return err
	}
	if s.arrays {
		if indexes, ok, err := s.indexes(); err != nil {
			return err
		} else if ok {
			return s.printArray(w, indexes)
		}
	}
	if s.keys != nil {
		return s.keys.print(w, s.rows, s.form, s.draft)
	}
	if s.how == ByIndex && s.many && s.query.Limit > 0 {
		// The walk may end with ErrAlike. An answer that has begun could not be
		// refused any more.
		if err := s.walk(func([]byte) error { return nil }); err != nil {
			return err
		}
	}
	r := s.result(w, '{')
	defer r.free()
	var err error
	if s.many {
		err = s.walk(r.member)
	} else {
		err = r.sorted(r.member)
	}
	if err != nil {
		return err
	}
	return r.end('}')
}

// sorted calls yield with the selected children's components in the order of keys.
func (r *result) sorted(yield func(component []byte) error) error {
	if err := r.walk(r.note); err != nil {
		return err
	}
	layout.SortComponents(r.found)
	for component := range r.ahead.Each(r.tree.reader, r.rows, r.parent, r.found) {
		if err := yield(component); err != nil {
			return err
		}
	}
	return nil
}

// A result is a selection while it is printed.
type result struct {
	*Selection
	w   io.Writer
	buf []byte
	key []byte // that of the parent, and behind it a child's component

	remembered []byte // memory for a row that was remembered

	// found are components to be printed when all are known; they point into noted.
	found [][]byte
	noted []byte
	ahead seek.Ahead
}

// results are used again: most of them never grow.
var results = sync.Pool{New: func() any {
	return &result{
		buf:   make([]byte, 0, flushBytes+2*layout.MaxChunkBytes),
		found: make([][]byte, 0, usualResults),
		noted: make([]byte, 0, 32*usualResults),
	}
}}

const usualResults = 128

func (s *Selection) result(w io.Writer, open byte) *result {
	r := results.Get().(*result)
	r.Selection, r.w = s, w
	r.buf = append(r.buf[:0], open)
	r.key = append(r.key[:0], s.parent...)
	return r
}

// free gives r back, unless it has grown large.
func (r *result) free() {
	if cap(r.buf) > 2*flushBytes || cap(r.found) > 8*usualResults || cap(r.noted) > flushBytes {
		return
	}
	clear(r.found)
	r.Selection, r.w, r.found, r.noted = nil, nil, r.found[:0], r.noted[:0]
	results.Put(r)
}

// note remembers a component for later.
func (r *result) note(component []byte) error {
	if err := r.tree.reader.Waiter.Left(len(r.found)); err != nil {
		return err
	}
	start := len(r.noted)
	r.noted = append(r.noted, component...)
	r.found = append(r.found, r.noted[start:len(r.noted):len(r.noted)])
	return nil
}

// member appends a child with its key.
func (r *result) member(component []byte) error {
	var err error
	if r.buf, err = layout.AppendKeyJSON(r.buf, component); err != nil {
		return damage.Mark(err)
	}
	r.buf = append(r.buf, ':')
	return r.value(component)
}

// value appends a child and a comma.
//
// All children are looked up by one iterator. In prefix mode it asks the bloom
// filters, as a Get does, but it need not find and open the tables for every
// child again; and from one child to the next in key order it searches on from
// where it is.
func (r *result) value(component []byte) error {
	r.key = append(r.key[:len(r.parent)], component...)
	row, err := r.tree.reader.RowBy(r.rows, r.key, &r.remembered)
	if err != nil {
		return err
	}
	if row == nil {
		return r.split(component)
	}
	r.tree.reader.Cost.Add(len(row))
	if r.buf, err = layout.AppendChunkJSON(r.buf, row, r.form); err != nil {
		return damage.AtRow(r.key, err)
	}
	return r.separate()
}

// split appends a child that has no row of its own.
func (r *result) split(component []byte) error {
	key, _, err := layout.CutComponent(component)
	if err != nil {
		return damage.Mark(err)
	}
	printer, err := r.tree.Printer(r.path.Child(key), r.form)
	if err != nil {
		return err
	}
	defer func() { _ = printer.Close() }()
	printer.Between(r.between)
	if _, known := printer.Size(); known && string(printer.ready) == "null" {
		return damage.Mark(fmt.Errorf("%w: an index row for a child that is not there", damage.ErrMalformedRow))
	}
	if err := r.flush(); err != nil {
		return err
	}
	if err := printer.PrintTo(r.w); err != nil {
		return err
	}
	return r.separate()
}

// separate writes what was gathered if it is enough, and then a comma, which
// stays in the buffer for the end to replace.
func (r *result) separate() error {
	if len(r.buf) > flushBytes {
		if err := r.flush(); err != nil {
			return err
		}
	}
	r.buf = append(r.buf, ',')
	return nil
}

func (r *result) flush() error {
	if err := r.tree.reader.Waiter.Left(0); err != nil {
		return err
	}
	_, err := r.w.Write(r.buf)
	r.buf, r.draft = r.buf[:0], nil
	return err
}

func (r *result) end(shut byte) error {
	r.buf = append(bytes.TrimSuffix(r.buf, []byte{','}), shut)
	r.draft.Keep(r.buf)
	return r.flush()
}

// Close gives back what the selection holds. It can be called more than once.
func (s *Selection) Close() error {
	var err error
	if s.rows != nil {
		err = s.rows.Close()
		s.rows = nil
	}
	if s.view != nil {
		s.view.Release()
		s.view = nil
	}
	return damage.Mark(err)
}
