package store

import (
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
}

// Prepare encodes the rows of the nodes in w that are larger than minBytes. The
// write must be resolved, and the indexes the same when it is built. The result
// must be closed.
func (s *Store) Prepare(id ID, w tree.Write, indexes *Indexes, minBytes int) (*Prepared, error) {
	p := &Prepared{}
	for _, a := range w.Assignments {
		if a.Priority || !a.Node.IsObject() {
			continue
		}
		if _, _, fits := tree.AppendWithin(nil, a.Node, tree.Plain, max(minBytes, s.opts.ChunkBytes)); fits {
			continue
		}
		b := s.newBuilder(id, indexes, nil)
		b.rows = s.db.NewBatchWithSize(w.Bytes())
		key := dataKey(nil, id, a.Path)
		_, err := b.emit(key, a.Node, indexes.below(a.Path))
		p.nodes = append(p.nodes, preparedNode{key, a.Path, a.Node, b.rows})
		b.free()
		if err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
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
