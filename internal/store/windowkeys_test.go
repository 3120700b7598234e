package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// TestKeysAndStand: which children a query selects, in the direction of its limit,
// and where each of them stands, for chunks and split nodes, without an index.
func TestKeysAndStand(t *testing.T) {
	atEveryLimit(t, func(s *stand) {
		rng := rand.New(rand.NewPCG(1, 2))
		orders := []query.Order{query.ByKey(), query.ByPriority(), query.ByValue(), query.ByChild(tree.Path{}.Child("a"))}
		for range 5 {
			s.put("/l", randomList(rng))
			n, err := tree.DecodeBytes([]byte(s.export("/l")), tree.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for range 60 {
				q := query.Query{Order: orders[rng.IntN(len(orders))], Limit: rng.IntN(8), Last: rng.IntN(2) == 0}
				all := query.Select(n, query.Query{Order: q.Order})
				s.compareStands(n, q.Order, all)
				q.Last = q.Last && q.Limit > 0
				edge := func() query.Bound {
					key := all[rng.IntN(len(all))]
					return q.Edge(q.Position(key, n.At(tree.Path{}.Child(key))), rng.IntN(2) == 0)
				}
				if rng.IntN(2) == 0 {
					q.Lower = edge()
				}
				if rng.IntN(2) == 0 {
					q.Upper = edge()
				}
				s.compareKeys(n, q)
			}
		}
	})
}

func (s *stand) compareKeys(n tree.Node, q query.Query) {
	s.Helper()
	want := query.Select(n, q)
	if q.Last {
		slices.Reverse(want)
	}
	view := s.View()
	defer view.Release()
	got, err := view.Keys(s.id, parsePath(s, "/l"), q, nil)
	if err != nil || !slices.Equal(got, want) {
		s.Errorf("Keys(%s, %+v) = %q, %v, want %q", q.Order, q, got, err, want)
	}
}

// compareStands compares where the children stand, and one that is not there.
func (s *stand) compareStands(n tree.Node, order query.Order, keys []string) {
	s.Helper()
	view := s.View()
	defer view.Release()
	p := parsePath(s, "/l")
	for _, key := range keys {
		want := query.Query{Order: order}.Position(key, n.At(tree.Path{}.Child(key)))
		got, ok, err := view.Tree(s.id).Stand(p, key, order)
		if err != nil || !ok || got != want {
			s.Errorf("Stand(%q, %s) = %+v, %v, %v, want %+v", key, order, got, ok, err, want)
		}
	}
	if _, ok, err := view.Tree(s.id).Stand(p, "nobody", order); ok || err != nil {
		s.Errorf("a child that is not there stands somewhere: %v", err)
	}
}

func randomList(rng *rand.Rand) string {
	values := []string{`1`, `2`, `true`, `"x"`, `"` + strings.Repeat("long", 400) + `"`, `{"a":1}`, `{"a":{"b":1}}`, `{"a":"x","b":2}`}
	var parts []string
	for i := range 1 + rng.IntN(30) {
		value := values[rng.IntN(len(values))]
		if rng.IntN(3) == 0 && value[0] != '{' {
			value = fmt.Sprintf(`{".value":%s,".priority":%d}`, value, rng.IntN(3))
		}
		key := fmt.Sprint(i * 3)
		if i%2 == 0 {
			key = fmt.Sprintf("k%02d", i)
		}
		parts = append(parts, fmt.Sprintf("%q:%s", key, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
