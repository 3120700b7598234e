package query_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// TestEdge: a bound at the position of a child parts the children into those
// before it, itself and those behind it, in every order.
func TestEdge(t *testing.T) {
	seed := rand.Uint64()
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	for range 2000 {
		n := g.children(t, g.leaf)
		order := pick(g, query.ByKey(), query.ByValue(), query.ByPriority(), query.ByChild(tree.Path{}.Child("a")))
		all := query.Select(n, query.Query{Order: order})
		for i, key := range all {
			q := query.Query{Order: order}
			edge := q.Position(key, n.At(tree.Path{}.Child(key)))
			for _, c := range []struct {
				lower, exclusive bool
				want             []string
			}{
				{false, false, all[:i+1]}, {false, true, all[:i]}, {true, false, all[i:]}, {true, true, all[i+1:]},
			} {
				bounded := q
				if c.lower {
					bounded.Lower = q.Edge(edge, c.exclusive)
				} else {
					bounded.Upper = q.Edge(edge, c.exclusive)
				}
				if got := query.Select(n, bounded); !slices.Equal(got, c.want) {
					t.Fatalf("seed %d: %s, edge at %q, %+v: %q, want %q", seed, order, key, c, got, c.want)
				}
			}
		}
	}
}
