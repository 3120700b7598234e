package query

import (
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// Select returns the keys of the children of n that q selects, in the order of
// q. It looks at every child. A node without children gives nil; whether n is
// one is for the caller to see, as a filtered read of an object that selects
// nothing answers {} and one of a leaf null.
func Select(n tree.Node, q Query) []string {
	var matching []Position
	for key, child := range n.Children() {
		matching = append(matching, q.Position(key, child))
	}
	var keys []string
	for _, p := range q.Choose(matching) {
		keys = append(keys, p.Key)
	}
	return keys
}

// Choose returns those of the positions of all children of a node that q
// selects, in its order. It changes the slice.
func (q Query) Choose(all []Position) []Position {
	chosen := slices.DeleteFunc(all, func(p Position) bool { return !q.Contains(p) })
	slices.SortFunc(chosen, Compare)
	excess := len(chosen) - q.Limit
	switch {
	case q.Limit == 0 || excess <= 0:
		return chosen
	case q.Last:
		return chosen[excess:]
	default:
		return chosen[:q.Limit]
	}
}
