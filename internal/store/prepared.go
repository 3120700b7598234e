package store

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/tree"
)

// Prepared holds the rows of the large nodes of a write, encoded before the
// write's turn comes. They depend on the write alone.
type Prepared struct {
	nodes []preparedNode
}

type preparedNode struct {
	key  []byte
	path tree.Path
	node tree.Node
	rows *pebble.Batch
	// cleared says that the rows begin with deleting all that may be there.
	cleared bool
}

// Prepare encodes the rows of the nodes in w that are larger than minBytes. The
// write must be resolved, and the indexes the same when it is built. What the tree
// shows now need not be so then. The result must be closed.
func (t Tree) Prepare(w tree.Write, indexes *Indexes, minBytes int) (*Prepared, error) {
	p := &Prepared{}
	for _, a := range w.Assignments {
		if a.Priority || !a.Node.IsObject() {
			continue
		}
		if _, _, fits := tree.AppendWithin(nil, a.Node, tree.Plain, max(minBytes, t.store.opts.ChunkBytes)); fits {
			continue
		}
		n, err := t.prepareNode(a, indexes, w.Bytes())
		p.nodes = append(p.nodes, n)
		if err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// prepareNode encodes the rows of one node, which take about so many bytes.
func (t Tree) prepareNode(a tree.Assignment, indexes *Indexes, bytes int) (preparedNode, error) {
	b := t.store.newBuilder(t.id, indexes, nil)
	defer b.free()
	_ = b.rows.Close() // it is empty
	b.rows = t.store.db.NewBatchWithSize(bytes)
	n := preparedNode{key: dataKey(nil, t.id, a.Path), path: a.Path, node: a.Node, rows: b.rows}
	many, err := t.hasManyRows(n.key)
	if err != nil {
		return n, err
	}
	if many {
		n.cleared = true
		from, to := indexRegion(n.key)
		err = errors.Join(b.rows.DeleteRange(n.key, subtreeEnd(nil, n.key), nil), b.rows.DeleteRange(from, to, nil))
		if err != nil {
			return n, err
		}
	}
	_, err = b.emit(n.key, a.Node, indexes.below(a.Path))
	return n, err
}

// hasManyRows reports whether so many rows are in the subtree of a key that they
// are deleted as a range.
func (t Tree) hasManyRows(key []byte) (bool, error) {
	it, err := t.iterator(key)
	if err != nil {
		return false, damaged(err)
	}
	rows := &stepper{Iterator: it, store: t.store}
	n := 0
	for ok := rows.First(); ok && n <= pointDeletes; ok = rows.step() {
		n++
	}
	return n > pointDeletes, damaged(errors.Join(rows.Error(), rows.Close()))
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
