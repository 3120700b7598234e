package engine

import (
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// ShallowPage returns up to limit keys of the children of the node at p, in key
// order, from the first one behind a key on; from the first of all behind the
// empty key. A limit of 0 is none.
func (s *Snapshot) ShallowPage(p tree.Path, behind string, limit int) ([]string, error) {
	q := query.Query{Order: query.ByKey(), Limit: limit}
	if behind != "" {
		q.Lower = q.Edge(query.Position{Key: behind}, true)
	}
	return s.keys(p, q)
}
