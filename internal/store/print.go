package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/memo"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// flushBytes is how much a printer gathers before it writes.
const flushBytes = 32 << 10

// printBuffers are what printers gather in; most of them never grow.
var printBuffers = sync.Pool{New: func() any {
	buf := make([]byte, 0, flushBytes+2*layout.MaxChunkBytes)
	return &buf
}}

// A Printer prints one node, of whatever size, in constant memory. It holds
// what it needs of the store by itself, so its view can be released before it
// writes; a slow reader then keeps files from being deleted, but does not make
// compactions keep dead rows.
type Printer struct {
	form tree.Form
	// ready is the whole text, if the node was in a chunk or absent, or recalled:
	// what was printed before.
	ready    []byte
	recalled bool
	// rows is an iterator over the rows of a split node, at its first row.
	rows *seek.Stepper
	// prefix is the length of the split node's key.
	prefix  int
	shallow bool
	waiter  seek.Waiter
	between func() error // see Between

	buf   []byte
	w     io.Writer
	draft *memo.Draft // nil if buf is not the whole text
	shape *memo.Draft // of the bracket that the text begins with, see isArray
	// shapeFrom is from how many children on that bracket is remembered: those of more than a few chunks.
	shapeFrom int64
}

// A Text is one that is printed once, and must be closed.
type Text = interface {
	PrintTo(w io.Writer) error
	Close() error
}

// Print writes the node at p as compact JSON, null if there is none.
func (t Tree) Print(w io.Writer, p tree.Path, form tree.Form) error {
	printer, err := t.Printer(p, form)
	if err != nil {
		return err
	}
	err = printer.PrintTo(w)
	return errors.Join(err, printer.Close())
}

// Printer returns a printer of the node at p.
func (t Tree) Printer(p tree.Path, form tree.Form) (*Printer, error) {
	return t.printer(p, &Printer{form: form, waiter: t.reader.Waiter})
}

// Shallow returns a printer that shows only the keys of the node's children,
// each with the value true, and a leaf as it is.
func (t Tree) Shallow(p tree.Path) (*Printer, error) {
	return t.printer(p, &Printer{shallow: true, waiter: t.reader.Waiter})
}

func (t Tree) printer(p tree.Path, printer *Printer) (*Printer, error) {
	k := memo.Key{ID: t.reader.ID, Path: p, Form: printer.form, Shallow: printer.shallow}
	if printer.ready = t.recall(&k); printer.ready != nil {
		printer.recalled = true
		return printer, nil
	}
	l := t.reader.Locate(p)
	c, rows, err := t.reader.Open(l)
	switch {
	case err != nil:
		return nil, err
	case c != nil:
		defer c.Release()
		printer.ready, err = printer.chunk(t, l, c, p)
		return printer, err
	case rows == nil:
		printer.ready = []byte("null")
		return printer, nil
	}
	printer.rows = rows
	printer.prefix = len(l.Key)
	printer.draft = t.newDraft(&k)
	if printer.form != tree.Export && !printer.shallow {
		printer.shape, printer.shapeFrom = newShape(t, p), int64(t.store.opts.ChunkBytes/2)
	}
	return printer, nil
}

// chunk returns the text of a node that is inside a chunk.
func (p *Printer) chunk(t Tree, l layout.Location, c *seek.Chunk, path tree.Path) ([]byte, error) {
	if c.Depth == l.Depth() && !p.shallow {
		text, err := layout.AppendChunkJSON(nil, c.Row, p.form)
		if err != nil {
			return nil, damage.AtRow(l.Key, err)
		}
		return text, nil
	}
	path = layout.Below(path, c.Depth)
	if len(c.Row) > 1 && c.Row[0] == 0 && !p.shallow {
		if text, ok := layout.FindJSON(c.Row[1:], path); ok {
			return bytes.Clone(text), nil
		}
	}
	n, err := t.reader.Decode(l, c)
	if err != nil {
		return nil, err
	}
	n = n.At(path)
	if !p.shallow || !n.IsObject() {
		return tree.AppendJSON(nil, n, p.form), nil
	}
	text := []byte{'{'}
	for key := range n.Children() {
		text = append(tree.AppendString(text, key), ":true,"...)
	}
	text[len(text)-1] = '}'
	return text, nil
}

// Size returns the length of the text if it is known before it is written: of
// nodes that are not split. Whether a text is recalled must not be seen.
func (p *Printer) Size() (bytes int, known bool) {
	return len(p.ready), p.rows == nil && !p.recalled
}

// Between has f called now and then while rows are looked at of which nothing is
// written yet. If it fails, the printer does.
func (p *Printer) Between(f func() error) { p.between = f }

// Again returns a printer of the same text, with what it needs of its own. It is called
// before PrintTo.
func (p *Printer) Again() (again Text, err error) {
	other := *p
	if other.draft = nil; p.rows != nil {
		other.rows, err = p.rows.CopyHere()
	}
	return &other, err
}

// PrintTo writes the node; it can be called once. After an error the text that
// was written is a fragment.
func (p *Printer) PrintTo(w io.Writer) error {
	if p.rows == nil {
		_, err := w.Write(p.ready)
		return err
	}
	p.w = w
	buf := printBuffers.Get().(*[]byte)
	p.buf = (*buf)[:0]
	defer printBuffers.Put(buf) // as it was: a large leaf may have made p.buf large
	var err error
	if p.shallow {
		err = p.keys(p.prefix)
	} else {
		err = p.split(p.prefix)
	}
	if err == nil {
		err = p.rows.Error()
	}
	if err != nil {
		return damage.Mark(err)
	}
	p.draft.Keep(p.buf)
	return p.flush()
}

// Close frees what the printer holds. It can be called more than once.
func (p *Printer) Close() error {
	if p.rows == nil {
		return nil
	}
	rows := p.rows
	p.rows = nil
	return rows.Close()
}

func (p *Printer) flush() error {
	if err := p.waiter.Left(0); err != nil {
		return err
	}
	_, err := p.w.Write(p.buf)
	p.buf, p.draft = p.buf[:0], nil
	return err
}

// split prints the split node whose key is the first prefix bytes of the
// current row's, and leaves the iterator behind it.
func (p *Printer) split(prefix int) error {
	node := string(p.rows.Key()[:prefix])
	priority, err := p.priority(prefix)
	if err != nil {
		return err
	}
	array, err := p.isArray(prefix)
	if err != nil {
		return err
	}
	open, shut := byte('{'), byte('}')
	if array {
		open, shut = '[', ']'
	}
	p.buf = append(p.buf, open)
	if p.form == tree.Export && !priority.IsNull() {
		p.buf = append(tree.AppendLeaf(append(p.buf, `".priority":`...), priority), ',')
	}
	children, err := p.children(node, array)
	if err == nil && children == 0 {
		err = fmt.Errorf("%w: node %x has a priority but no children", damage.ErrMalformedRow, node)
	}
	if err != nil {
		return err
	}
	p.buf[len(p.buf)-1] = shut // the last comma
	return nil
}

// children prints the children of a split node, each with a comma, and counts them. In
// an array, null stands for those that are missing.
func (p *Printer) children(node string, array bool) (count int, err error) {
	prefix := len(node)
	for next := int32(0); p.rows.In(node); next++ {
		count++
		end, err := layout.ChildEnd(p.rows.Key(), prefix)
		if err != nil {
			return count, err
		}
		if array {
			for index, _ := layout.ChildIndex(p.rows.Key(), prefix); next < index; next++ {
				p.buf = append(p.buf, "null,"...)
			}
		} else {
			if p.buf, err = layout.AppendKeyJSON(p.buf, p.rows.Key()[prefix:end]); err != nil {
				return count, err
			}
			p.buf = append(p.buf, ':')
		}
		if err := p.child(end); err != nil {
			return count, err
		}
	}
	return count, nil
}

// child prints the child whose key is the first end bytes of the current row's,
// and a comma.
func (p *Printer) child(end int) error {
	if key := p.rows.Key(); len(key) == end {
		row, err := p.rows.ValueAndErr()
		if err != nil {
			return err
		}
		if p.buf, err = layout.AppendChunkJSON(p.buf, row, p.form); err != nil {
			return damage.AtRow(key, err)
		}
		if p.rows.Cost != nil {
			p.rows.Cost.Bytes += len(row)
		}
		p.rows.Step()
	} else if err := p.split(end); err != nil {
		return err
	}
	return p.separate()
}

// separate writes what was gathered if it is enough, and then a comma, which
// stays in the buffer for the closing bracket to replace.
func (p *Printer) separate() error {
	if len(p.buf) > flushBytes {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.buf = append(p.buf, ',')
	return nil
}

// priority reads the priority row of the node, if the iterator is at it.
func (p *Printer) priority(prefix int) (tree.Leaf, error) {
	key := p.rows.Key()
	if len(key) != prefix+1 || key[prefix] != layout.PriorityMark {
		return tree.Leaf{}, nil
	}
	row, err := p.rows.ValueAndErr()
	if err != nil {
		return tree.Leaf{}, err
	}
	priority, err := seek.DecodePriority(key, row)
	p.rows.Step()
	return priority, err
}

// keys prints the keys of the children, which it seeks from one to the next.
func (p *Printer) keys(prefix int) error {
	node := string(p.rows.Key()[:prefix])
	if _, err := p.priority(prefix); err != nil {
		return err
	}
	if p.draft == nil || !p.draft.Begun.Known() {
		p.buf = append(p.buf, '{')
	} else if err := p.resume(node, p.draft.Begun); err != nil {
		return err
	}
	for p.rows.In(node) {
		end, err := layout.ChildEnd(p.rows.Key(), prefix)
		if err != nil {
			return err
		}
		if p.draft != nil {
			p.draft.Last = append(p.draft.Last[:0], p.rows.Key()[prefix:end]...)
		}
		if p.buf, err = layout.AppendKeyJSON(p.buf, p.rows.Key()[prefix:end]); err != nil {
			return err
		}
		if err := p.mention(end); err != nil {
			return err
		}
	}
	p.buf[len(p.buf)-1] = '}'
	return nil
}

// resume prints the keys of a node that are known, and goes on after them.
func (p *Printer) resume(node string, known memo.Listing) error {
	p.buf, _ = known.AppendTo(p.buf)
	p.draft.Last = append(p.draft.Last, known.Last()...)
	p.rows.SeekGE(layout.SubtreeEnd(nil, append([]byte(node), known.Last()...)))
	return p.separate()
}

// mention prints true for the child whose key is the first end bytes of the current
// row's, and a comma.
func (p *Printer) mention(end int) error {
	p.buf = append(p.buf, ":true"...)
	p.rows.SkipChild(end)
	return p.separate()
}

// isArray decides whether the split node prints as an array. The iterator is at the
// node's first child. Of the node that was asked for the answer is remembered if it
// took long: it is needed before the first byte.
func (p *Printer) isArray(prefix int) (bool, error) {
	if p.form == tree.Export {
		return false, nil
	}
	if prefix != p.prefix || p.shape == nil {
		array, _, err := p.rows.IsArray(prefix, p.waiter, p.between)
		return array, err
	}
	if known := p.shape.Text(); known != nil {
		return known[0] == '[', nil
	}
	array, children, err := p.rows.IsArray(prefix, p.waiter, p.between)
	if err == nil && children > p.shapeFrom {
		text := "{"
		if array {
			text = "["
		}
		p.shape.Keep([]byte(text))
	}
	return array, err
}
