package store

import (
	"bytes"
	"io"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// A Tree reads one database at one moment: that of a view, or live.
type Tree struct {
	store  *Store
	reader seek.Reader
	origin *View // nil if live
	// grows is what the writer of the database knows, if the tree is for it.
	grows *Frontier
}

// BesideFrontier returns a live tree for the writer of a database, which need not look
// where its frontier knows that nothing is.
func BesideFrontier(t Tree, f *Frontier) Tree {
	t.grows = f
	return t
}

// Reader returns what finds the rows of the tree: for checks of them, and for those who
// look at all children of a node.
func (t Tree) Reader() seek.Reader { return t.reader }

// Until returns the tree for somebody who waits until done is closed. Then reads of
// many rows fail with ErrUnwanted.
func (t Tree) Until(done <-chan struct{}) Tree {
	t.reader.Waiter = done
	return t
}

// Counting returns the tree for reads that are to be counted: each row that holds a
// node which is looked at.
func (t Tree) Counting(c *seek.Cost) Tree {
	t.reader.Cost = c
	return t
}

// Remembering returns a tree for one goroutine that looks at many nodes of it, until it changes.
func Remembering(t Tree, l *Last) Tree {
	t.reader.Last = l
	return t
}

// exists is Exists by reading.
func exists(t Tree, p tree.Path) (bool, error) {
	l := t.reader.Locate(p)
	if t.grows.Lacks(l) {
		return false, nil
	}
	return t.reader.Exists(l, p)
}

// NextChild returns the first key behind after, in key order, that the node at p
// has a child under; "" if there is none. After "" comes the first child.
func (t Tree) NextChild(p tree.Path, after string) (string, error) {
	l := t.reader.Locate(p)
	c, err := t.reader.Chunk(l)
	if err != nil {
		return "", err
	}
	if c != nil {
		defer c.Release()
		n, err := t.reader.Decode(l, c)
		for key := range n.At(layout.Below(p, c.Depth)).Children() {
			if after == "" || tree.CompareKeys(key, after) > 0 {
				return key, err
			}
		}
		return "", err
	}
	var from []byte
	if after != "" {
		from = layout.SubtreeEnd(nil, layout.AppendComponent(bytes.Clone(l.Key), after))
	}
	next := ""
	err = t.reader.EachChild(l.Key, from, func(end int, row []byte) (bool, error) {
		var err error
		next, _, err = layout.CutComponent(row[len(l.Key):end])
		return false, damage.Mark(err)
	})
	return next, err
}

// Node returns the whole node at p, or ErrTooLarge when its text takes more
// than maxBytes.
func (t Tree) Node(p tree.Path, maxBytes int) (tree.Node, error) {
	var text bytes.Buffer
	if err := t.Print(&boundedWriter{&text, maxBytes}, p, tree.Export); err != nil {
		return tree.Node{}, err
	}
	n, err := tree.DecodeBytes(text.Bytes(), tree.DecodeOptions{Depth: p.Depth()})
	if err != nil {
		return tree.Node{}, damage.AtRow(t.reader.Locate(p).Key, err)
	}
	return n, nil
}

// A boundedWriter fails when more than left bytes are written.
type boundedWriter struct {
	w    io.Writer
	left int
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, ErrTooLarge
	}
	return b.w.Write(p)
}
