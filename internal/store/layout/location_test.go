package layout

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestSortComponents: components are sorted as their bytes are, whatever they begin with.
func TestSortComponents(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 3000 {
		begin := "user0000"[:rng.IntN(9)]
		var list [][]byte
		most := 40
		if i%100 == 0 { // more than need no memory
			most = 1000
		}
		for range rng.IntN(most) {
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

// BenchmarkSortComponents has a hundred children of a range: users with numbers, and children that were pushed.
func BenchmarkSortComponents(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	const letters = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
	var users, pushed [][]byte
	for range 100 {
		users = append(users, AppendComponent(nil, fmt.Sprintf("user%07d", rng.IntN(1_000_000))))
		key := "-Nxyz"
		for range 15 {
			i := rng.IntN(len(letters))
			key += letters[i : i+1]
		}
		pushed = append(pushed, AppendComponent(nil, key))
	}
	for name, list := range map[string][][]byte{"users": users, "pushed": pushed} {
		b.Run(name, func(b *testing.B) {
			memory := make([][]byte, len(list))
			for b.Loop() {
				copy(memory, list)
				SortComponents(memory)
			}
		})
	}
}
