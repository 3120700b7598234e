package scan

import (
	"bufio"
	"errors"
	"io"
	"slices"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// flushBytes is how much text is gathered before it is written.
const flushBytes = 32 << 10

// Print writes the children of a node that are within the bounds of a query, which must
// have no limit, as an object. Of a node without children it writes null.
//
// A pass gives up its turn while it writes, which takes as long as a client likes.
func Print(w io.Writer, n Node, q query.Query, form tree.Form) error {
	p := n.pass(q.Order)
	out := &printer{pass: p, form: form, w: w, buf: []byte{'{'}}
	object, err := p.each(func(c child) error {
		if !q.Contains(c.Position) {
			return nil
		}
		return out.member(c)
	})
	switch {
	case err != nil:
		return err
	case !object:
		out.buf = append(out.buf[:0], "null"...)
	default:
		out.buf = append(out.buf, '}')
	}
	return out.flush()
}

// A printer writes children as a pass comes to them.
type printer struct {
	*pass
	form tree.Form
	w    io.Writer
	buf  []byte
	some bool // a member was written
}

func (p *printer) member(c child) (err error) {
	if p.some {
		p.buf = append(p.buf, ',')
	}
	p.some = true
	p.buf = append(tree.AppendString(p.buf, c.Key), ':')
	switch {
	case !c.node.IsNull():
		p.buf = tree.AppendJSON(p.buf, c.node, p.form)
	case c.row != nil:
		if p.buf, err = layout.AppendChunkJSON(p.buf, c.row, p.form); err != nil {
			return err
		}
	default:
		return p.split(c.Key)
	}
	if len(p.buf) > flushBytes {
		return p.flush()
	}
	return nil
}

// split writes a child that has several rows.
func (p *printer) split(key string) error {
	if err := p.flush(); err != nil {
		return err
	}
	return printChild(p.w, p.Tree, p.Path.Child(key), p.form)
}

// flush writes what was gathered. The turn is another's meanwhile, and from then on
// until the next child is looked at.
func (p *printer) flush() error {
	p.turn.end()
	_, err := p.w.Write(p.buf)
	p.buf = p.buf[:0]
	return err
}

func printChild(w io.Writer, t store.Tree, p tree.Path, form tree.Form) error {
	printer, err := t.Printer(p, form)
	if err != nil {
		return err
	}
	return errors.Join(printer.PrintTo(w), printer.Close())
}

// Print writes the children of a node that a query selects, which are known, as an
// object in the order of keys. Of a node without children it writes null.
func (k *Known) Print(w io.Writer, n Node, q query.Query, form tree.Form) error {
	keys := make([]string, 0, len(k.Shown(q)))
	for _, p := range k.Shown(q) {
		keys = append(keys, p.Key)
	}
	slices.SortFunc(keys, tree.CompareKeys)
	if len(keys) == 0 {
		first, err := n.Tree.NextChild(n.Path, "")
		if err != nil {
			return err
		}
		text := "{}"
		if first == "" {
			text = "null"
		}
		_, err = io.WriteString(w, text)
		return err
	}
	out := bufio.NewWriterSize(w, flushBytes)
	separator := byte('{')
	for i, key := range keys {
		if err := n.Tree.Reader().Waiter.Left(i); err != nil {
			return err
		}
		_ = out.WriteByte(separator) // Flush tells its errors
		_, _ = out.Write(append(tree.AppendString(nil, key), ':'))
		if err := printChild(out, n.Tree, n.Path.Child(key), form); err != nil {
			return err
		}
		separator = ','
	}
	_ = out.WriteByte('}')
	return out.Flush()
}
