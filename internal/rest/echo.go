package rest

import (
	"io"

	"github.com/livetree/livetree/internal/tree"
)

// A nodeText is a node in memory as content. It is printed piece by piece: the
// text of a large body is not held a second time.
type nodeText struct{ tree.Node }

func (n nodeText) Size() (int, bool) { return 0, false }

func (n nodeText) PrintTo(w io.Writer) error { return tree.PrintJSON(w, n.Node, tree.Plain) }

func (n nodeText) Close() error { return nil }

// A patchEcho shows the keys of a PATCH as they were sent, with what was stored
// for them.
type patchEcho []tree.Assignment

func (p patchEcho) Size() (int, bool) { return 0, false }

func (p patchEcho) PrintTo(w io.Writer) error {
	buf := []byte{'{'}
	for i, a := range p {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(tree.AppendString(buf, a.Name), ':')
		if _, err := w.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
		if err := tree.PrintJSON(w, a.Node, tree.Plain); err != nil {
			return err
		}
	}
	_, err := w.Write(append(buf, '}'))
	return err
}

func (p patchEcho) Close() error { return nil }
