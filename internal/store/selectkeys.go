package store

import (
	"bytes"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// A keyWalk selects children in the order of their keys, which is the order of
// the rows: it prints them as it goes along.
type keyWalk struct {
	Tree
	parent []byte
	query  query.Query
}

// print writes the selected children as an object. It goes along them by an
// iterator over the rows of the parent. The draft may be nil.
func (w *keyWalk) print(out io.Writer, it *pebble.Iterator, form tree.Form, d *draft) error {
	from, to, ok := w.bounds()
	if !ok {
		_, err := out.Write([]byte("{}"))
		return err
	}
	rows := &stepper{Iterator: it, store: w.store, cost: w.cost}
	if w.query.Last && w.query.Limit > 0 {
		var err error
		if from, err = w.lastFrom(rows, from, to); err != nil {
			return err
		}
	}
	buf := printBuffers.Get().(*[]byte)
	defer printBuffers.Put(buf)
	p := &Printer{store: w.store, form: form, waiter: w.waiter, rows: rows, w: out, buf: append((*buf)[:0], '{'), draft: d}
	rows.SeekGE(from)
	if err := w.printRange(p, to); err != nil {
		return damaged(err)
	}
	p.buf = append(bytes.TrimSuffix(p.buf, []byte{','}), '}')
	p.draft.keep(p.buf)
	return p.flush()
}

// bounds returns the data keys between which the selected children are; false if
// there are none.
func (w *keyWalk) bounds() (from, to []byte, ok bool) {
	r, ok := w.query.KeyRange()
	if !ok {
		return nil, nil, false
	}
	from = append(bytes.Clone(w.parent), priorityMark, 0) // behind the priority
	to = subtreeEnd(nil, w.parent)
	if r.Lower.Key != "" {
		from = edgeKey(w.parent, r.Lower)
	}
	if r.Upper.Key != "" {
		to = edgeKey(w.parent, r.Upper)
	}
	return from, to, true
}

// printRange prints children up to an end, or up to the limit.
func (w *keyWalk) printRange(p *Printer, to []byte) error {
	for left := w.query.Limit; p.rows.Valid() && bytes.Compare(p.rows.Key(), to) < 0; {
		end, err := childEnd(p.rows.Key(), len(w.parent))
		if err != nil {
			return err
		}
		if p.buf, err = appendKeyJSON(p.buf, p.rows.Key()[len(w.parent):end]); err != nil {
			return err
		}
		p.buf = append(p.buf, ':')
		if err := p.child(end); err != nil {
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
func (w *keyWalk) lastFrom(rows *stepper, from, to []byte) ([]byte, error) {
	for child := range w.query.Limit {
		if err := w.waiter.left(child); err != nil {
			return nil, err
		}
		if !rows.SeekLT(to) || bytes.Compare(rows.Key(), from) < 0 {
			return from, damaged(rows.Error())
		}
		end, err := childEnd(rows.Key(), len(w.parent))
		if err != nil {
			return nil, damaged(err)
		}
		to = bytes.Clone(rows.Key()[:end])
	}
	return to, nil
}

// edgeKey returns the data key of an edge among the children of a parent.
func edgeKey(parent []byte, edge query.KeyEdge) []byte {
	key := appendComponent(bytes.Clone(parent), edge.Key)
	if edge.After {
		return append(key, subtreeMark)
	}
	return key
}
