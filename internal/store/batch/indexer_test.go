package batch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
)

// TestIndexRowsOfEditedRows writes to parts of children that are one row each: at what is indexed,
// above it, below it and beside it. The index rows must be those of the data.
func TestIndexRowsOfEditedRows(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	s := newStand(t, 200)
	s.indexes = &layout.Indexes{Children: map[string]*layout.Indexes{"users": {Here: []layout.Index{
		{Number: 1, Order: query.ByChild(parsePath(t, "n"))}, {Number: 2, Order: query.ByChild(parsePath(t, "in/n"))}, {Number: 3, Order: query.ByValue()},
	}}}}
	body := func() string {
		return []string{"1", "2", `"s"`, "true", `{"n":1}`, `{"n":2,"o":"x"}`, `{"n":{"n":3}}`, "null"}[rng.IntN(8)]
	}
	for user := range 4 {
		s.put(fmt.Sprintf("users/u%d", user), `{"n":1,"in":{"n":1,"o":2},"other":"a text that makes it too long for one row of all","more":3}`)
	}
	paths := []string{"n", "in", "in/n", "in/n/n", "in/o", "other", "more", "nn", "i"}
	for range 800 {
		user := fmt.Sprintf("users/u%d", rng.IntN(4))
		if rng.IntN(3) > 0 {
			s.put(user+"/"+paths[rng.IntN(len(paths))], body())
		} else {
			s.patch(user, fmt.Sprintf(`{"more":%s,"in/o":%s,"n":%s}`, body(), body(), body()))
		}
		if s.check(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
