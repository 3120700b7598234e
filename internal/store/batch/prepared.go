package batch

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// Prepared holds the rows of the large nodes of a write, encoded before the
// write's turn comes. They depend on the write alone.
type Prepared struct {
	id    layout.ID
	nodes preparedNodes
	// texts are those of the large nodes in the whole record, by the place of their
	// assignment; nil if nobody needs it.
	texts map[int]*layout.Text
}

type preparedNode struct {
	assignment int // of the write, by its place
	key        []byte
	path       tree.Path
	node       tree.Node
	rows       *pebble.Batch
	times      times
	// cleared says that the rows begin with deleting all that may be there, and clearedIndexes the same of index rows. There were none
	// if it does not: a range that is deleted for nothing lies over the index rows of other nodes, as far as the next key of the write, and
	// when it is merged they are written anew.
	cleared, clearedIndexes bool
}

// Prepare encodes the rows of the nodes in w that are larger than minBytes. The
// write must be resolved, and the indexes the same when it is built. What the reader
// shows now need not be so then. The result must be closed.
func (m Maker) Prepare(r seek.Reader, w tree.Write, indexes *layout.Indexes, minBytes int) (*Prepared, error) {
	p := &Prepared{id: r.ID}
	most := m.mostRows(w)
	for i, a := range w.Assignments {
		if a.Priority {
			continue
		}
		if _, _, fits := tree.AppendWithin(nil, a.Node, tree.Plain, max(minBytes, m.ChunkBytes)); fits {
			continue
		}
		size, text := 0, func() {}
		if len(w.Assignments) == 1 { // others share what is counted
			size = w.Bytes()
		}
		if m.isHeld() {
			text = p.beginText(i, a.Node, size)
			size += size / 2 // it is compressed
		}
		if !a.Node.IsObject() {
			text()
			continue
		}
		n, err := m.prepareNode(r, a, indexes, size, most)
		text()
		n.assignment = i
		most -= int64(n.rows.Len())
		p.nodes = append(p.nodes, n)
		if err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// beginText makes the text of an assignment for the record, of about so many bytes, while its rows
// are encoded. What it returns waits for it.
func (p *Prepared) beginText(assignment int, n tree.Node, size int) (end func()) {
	made := make(chan *layout.Text, 1)
	go func() { made <- layout.NewText(n, size) }()
	return func() {
		if p.texts == nil {
			p.texts = make(map[int]*layout.Text)
		}
		p.texts[assignment] = <-made
	}
}

// prepareNode encodes the rows of one node, which take about so many bytes, and most at most.
func (m Maker) prepareNode(r seek.Reader, a tree.Assignment, indexes *layout.Indexes, bytes int, most int64) (preparedNode, error) {
	b := m.newBuilder(r, indexes)
	defer b.free()
	w := &b.writer
	w.most = most
	_ = w.rows.Close()                              // it is empty
	w.rows = m.DB.NewBatchWithSize(bytes + bytes/8) // keys are repeated; a batch that does not fit takes twice as much
	n := preparedNode{key: layout.DataKey(nil, r.ID, a.Path), path: a.Path, node: a.Node, rows: w.rows}
	many, err := r.HasMoreRows(n.key, pointDeletes)
	if err != nil {
		return n, err
	}
	if many {
		n.cleared = true
		from, to := layout.IndexRegion(n.key)
		n.clearedIndexes, err = r.HasRows(from)
		err = errors.Join(err, w.rows.DeleteRange(n.key, layout.SubtreeEnd(nil, n.key), nil))
		if n.clearedIndexes {
			err = errors.Join(err, w.rows.DeleteRange(from, to, nil))
		}
		if err != nil {
			return n, err
		}
	}
	if a.Node.HasTimes() {
		w.times = &n.times
	}
	_, err = w.emit(n.key, a.Node, indexes.Below(a.Path))
	return n, err
}

// Close frees the rows.
func (p *Prepared) Close() {
	if p == nil {
		return
	}
	for _, n := range p.nodes {
		if n.rows != nil { // else Build has taken them
			_ = n.rows.Close()
		}
	}
	p.nodes = nil
}

// preparedNodes are the nodes of a write whose rows are encoded already.
type preparedNodes []preparedNode

// at returns the prepared node at a path, nil if there is none.
func (l preparedNodes) at(p tree.Path) *preparedNode {
	for i := range l {
		if l[i].path == p {
			return &l[i]
		}
	}
	return nil
}

// cleared reports whether the rows that are prepared for the node with a key begin with
// deleting what is there, and its index rows.
func (l preparedNodes) cleared(key []byte) (rows, indexRows bool) {
	for _, n := range l {
		if n.cleared && bytes.Equal(n.key, key) {
			return true, n.clearedIndexes
		}
	}
	return false, false
}

// havePriority reports whether a prepared child of the node with a key has a priority.
func (l preparedNodes) havePriority(id layout.ID, key []byte) bool {
	return slices.ContainsFunc(l, func(n preparedNode) bool {
		return !n.node.Priority().IsNull() && bytes.Equal(layout.DataKey(nil, id, n.path.Parent()), key)
	})
}

// nodeAt returns what is at rel below the node with a key, where prepared nodes
// stand in the place of the leaves that represent them.
func (l preparedNodes) nodeAt(key []byte, n tree.Node, rel tree.Path) tree.Node {
	for {
		for _, p := range l {
			if bytes.Equal(p.key, key) {
				return p.node.At(rel)
			}
		}
		if rel.IsRoot() || n.IsNull() {
			return n
		}
		var name string
		name, rel = rel.Cut()
		n = n.Child(name)
		if len(l) > 0 {
			key = layout.AppendComponent(key[:len(key):len(key)], name)
		}
	}
}
