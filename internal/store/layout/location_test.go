package layout

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestSortComponents: components are sorted as their bytes are, whatever they begin with.
func TestSortComponents(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		begin := "user0000"[:rng.IntN(9)]
		var list [][]byte
		for range rng.IntN(40) {
			key := begin
			for range rng.IntN(12) {
				key += string("012ab~é"[rng.IntN(6)])
			}
			if tree.CheckKey(key) == nil {
				list = append(list, AppendComponent(nil, key))
			}
		}
		want := slices.Clone(list)
		slices.SortFunc(want, bytes.Compare)
		if SortComponents(list); !slices.EqualFunc(list, want, bytes.Equal) {
			t.Fatalf("sorted %x, want %x", list, want)
		}
	}
}
