package state

import (
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/tree"
)

// This file answers queries that lack their index by looking at all children of a node.
// Reads do not: Select refuses them.

// Scans reports whether a query at p can only be answered by a scan: the rules do not
// ask for its index, or that is being built.
func (v *View) Scans(p tree.Path, q query.Query) (bool, error) {
	if err := v.Exists(); err != nil {
		return false, err
	}
	switch q.Order {
	case query.ByKey():
		return false, nil
	case query.ByPriority():
		reader := v.Tree().Reader()
		k, err := reader.Keeping(reader.Locate(p).Key)
		return k.IsBuilding(), Classify(err)
	}
	return !v.Settings.Indexed(p, q), nil
}

// Indexed reports whether the index of a query at p is ready, or its order needs none
// that the rules ask for.
func (s *Settings) Indexed(p tree.Path, q query.Query) bool {
	index, err := s.IndexFor(q, p)
	return err == nil && (index != nil || q.Order == query.ByKey() || q.Order == query.ByPriority())
}

// Node returns the node at p for a scan. Most is 0, or how much a scan may cost that
// others wait for; see package scan.
func (v *View) Node(p tree.Path, most int) scan.Node {
	return scan.Node{Tree: v.Tree(), Path: p, Pool: v.source.Scans, Most: most}
}

// NoteUnindexed tells of a query that lacks its index.
func (v *View) NoteUnindexed(p tree.Path, q query.Query) {
	if index, ok := q.Order.Index(); ok && v.source.Observers != nil && v.source.Observers.Unindexed != nil {
		v.source.Observers.Unindexed(v.source.Name, p.String(), index.String())
	}
}
