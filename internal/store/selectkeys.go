package store

import (
	"bytes"
	"errors"
	"io"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A keyWalk selects children in the order of their keys, which is the order of
// the rows: it prints them as it goes along.
type keyWalk struct {
	of     *Selection
	reader seek.Reader
	parent []byte
	query  query.Query
	// shallow says that the children print as true.
	shallow bool
}

// print writes the selected children as an object. It goes along them by a
// stepper over the rows of the parent. The draft may be nil.
func (w *keyWalk) print(out io.Writer, rows *seek.Stepper, form tree.Form, d *memo.Draft) error {
	from, to, ok := w.bounds()
	if !ok {
		_, err := out.Write([]byte("{}"))
		return err
	}
	if w.query.Last && w.query.Limit > 0 {
		var err error
		if from, err = w.lastFrom(rows, from, to); err != nil {
			return err
		}
	}
	buf := printBuffers.Get().(*[]byte)
	defer printBuffers.Put(buf)
	p := &Printer{form: form, waiter: w.reader.Waiter, between: w.of.between, rows: rows, w: out, buf: append((*buf)[:0], '{'), draft: d}
	rows.SeekGE(from)
	if err := w.printRange(p, to); err != nil {
		return damage.Mark(err)
	}
	p.buf = append(bytes.TrimSuffix(p.buf, []byte{','}), '}')
	p.draft.Keep(p.buf)
	return p.flush()
}

// bounds returns the data keys between which the selected children are; false if
// there are none.
func (w *keyWalk) bounds() (from, to []byte, ok bool) {
	r, ok := w.query.KeyRange()
	if !ok {
		return nil, nil, false
	}
	from, to = layout.ChildBounds(w.parent, r)
	return from, to, true
}

// printRange prints children up to an end, or up to the limit.
func (w *keyWalk) printRange(p *Printer, to []byte) error {
	for left := w.query.Limit; p.rows.Valid() && bytes.Compare(p.rows.Key(), to) < 0; {
		end, err := layout.ChildEnd(p.rows.Key(), len(w.parent))
		if err != nil {
			return err
		}
		if p.buf, err = layout.AppendKeyJSON(p.buf, p.rows.Key()[len(w.parent):end]); err != nil {
			return err
		}
		if w.shallow {
			err = p.mention(end)
		} else {
			p.buf = append(p.buf, ':')
			err = p.child(end)
		}
		if err != nil {
			return err
		}
		if left--; left == 0 {
			return nil
		}
	}
	return p.rows.Error()
}

// lastFrom goes back from an end by as many children as the limit allows, and
// returns where the first of them begins.
func (w *keyWalk) lastFrom(rows *seek.Stepper, from, to []byte) ([]byte, error) {
	var first []byte
	left := w.query.Limit
	err := w.eachBack(rows, from, to, func(end int) (bool, error) {
		if left--; left == 0 {
			first = bytes.Clone(rows.Key()[:end])
		}
		return left > 0, nil
	})
	if first == nil {
		first = from // there are fewer
	}
	return first, err
}

// eachBack calls yield for each child between two keys, from the last one to the
// first, until it returns false. The child's key is the first end bytes of the
// current row's.
func (w *keyWalk) eachBack(rows *seek.Stepper, from, to []byte, yield func(end int) (bool, error)) error {
	child := 0
	for ok := rows.SeekLT(to); ok && bytes.Compare(rows.Key(), from) >= 0; child++ {
		if err := w.of.left(child); err != nil {
			return err
		}
		end, err := layout.ChildEnd(rows.Key(), len(w.parent))
		if err != nil {
			return damage.Mark(err)
		}
		if more, err := yield(end); err != nil || !more {
			return err
		}
		ok = rows.BackOverChild(end)
	}
	return damage.Mark(rows.Error())
}

// each calls yield with the components of the selected children, from the end of
// the range if the limit counts from there.
func (w *keyWalk) each(yield func(component []byte) error) error {
	from, to, ok := w.bounds()
	if !ok {
		return nil
	}
	child := 0
	take := func(key []byte, end int) (bool, error) {
		child++
		return child != w.query.Limit, yield(key[len(w.parent):end])
	}
	if !w.query.Last {
		return w.reader.EachChild(w.parent, from, func(end int, key []byte) (bool, error) {
			if bytes.Compare(key, to) >= 0 {
				return false, nil
			}
			if err := w.of.left(child); err != nil {
				return false, err
			}
			return take(key, end)
		})
	}
	rows, err := w.reader.Stepper(w.parent)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	return w.eachBack(rows, from, to, func(end int) (bool, error) { return take(rows.Key(), end) })
}

// ShallowPage returns the keys of the node's children after a key, from the first
// one if it is empty, each with the value true; at most limit of them, 0 for all.
// It is null if there are none, and of a leaf the first page is the leaf.
func (t Tree) ShallowPage(p tree.Path, after string, limit int) (*Selection, error) {
	s := &Selection{tree: t, path: p, how: ByChunk}
	q := query.Query{Order: query.ByKey(), Limit: limit}
	if after != "" {
		q.Lower = q.Edge(query.Position{Key: after}, true)
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	switch {
	case s.isHeld:
		s.ready = appendShallow(nil, s.held, q)
		s.held = tree.Node{} // which would print as an array
		return s, nil
	case s.rows == nil:
		s.ready = []byte("null")
		return s, nil
	}
	rows := s.rows
	s.how = ByKeys
	s.keys = &keyWalk{of: s, reader: t.reader, parent: s.parent, query: q, shallow: true}
	if from, _, _ := s.keys.bounds(); !rows.SeekGE(from) {
		s.ready = []byte("null")
		return s, damage.Mark(errors.Join(rows.Error(), s.Close()))
	}
	t.origin.Hold()
	s.view = t.origin
	return s, nil
}

// appendShallow is ShallowPage for a node in memory.
func appendShallow(dst []byte, n tree.Node, q query.Query) []byte {
	if !n.IsObject() && !q.Lower.Set {
		return tree.AppendJSON(dst, n, tree.Plain)
	}
	keys := query.Select(n, q)
	if len(keys) == 0 {
		return append(dst, "null"...)
	}
	for i, key := range keys {
		dst = append(dst, "{,"[min(i, 1)])
		dst = append(tree.AppendString(dst, key), ":true"...)
	}
	return append(dst, '}')
}
