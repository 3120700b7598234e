package rest

import (
	"io"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/tree"
)

// echo returns what a write is answered with.
func echo(v verb, commit engine.Commit) content {
	switch {
	case v == del:
		return nullText
	case v == post:
		return text(append(tree.AppendString([]byte(`{"name":`), commit.Key), '}'))
	case v == patch && commit.Patch:
		return echoPatch(commit.Assignments)
	case v == patch:
		return nullText
	}
	return echoNode(commit.Assignments[0].Node)
}

// echoNode returns a node in memory as content. A small one is printed at once:
// its length is known then, and nothing must be gathered on the way.
func echoNode(n tree.Node) content {
	short := make([]byte, 0, min(n.Bytes()+64, compressBytes))
	if short, _, fits := tree.AppendWithin(short, n, tree.Plain, compressBytes-1); fits {
		return text(short)
	}
	return nodeText{n}
}

// A nodeText is a node in memory as content. It is printed piece by piece: the
// text of a large body is not held a second time.
type nodeText struct{ tree.Node }

func (n nodeText) Size() (int, bool) { return 0, false }

func (n nodeText) PrintTo(w io.Writer) error { return tree.PrintJSON(w, n.Node, tree.Plain) }

func (n nodeText) Close() error { return nil }

// echoPatch returns the answer to a PATCH, likewise.
func echoPatch(assignments []tree.Assignment) content {
	short := append(make([]byte, 0, compressBytes), '{')
	for i, a := range assignments {
		if i > 0 {
			short = append(short, ',')
		}
		short = append(tree.AppendString(short, a.Name), ':')
		var fits bool
		if short, _, fits = tree.AppendWithin(short, a.Node, tree.Plain, compressBytes-2-len(short)); !fits {
			return patchEcho(assignments)
		}
	}
	return text(append(short, '}'))
}

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
