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

// TestLocate: a location is the key of its path and where those of its ancestors end, at any depth. What is appended to one of them
// changes no other.
func TestLocate(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	var moved Location
	for range 2000 {
		id, p, paths := ID(rng.Uint32()), tree.Path{}, []tree.Path{{}}
		for range rng.IntN(tree.MaxDepth + 1) {
			p = p.Child(anyKey(rng))
			paths = append(paths, p)
		}
		l := Locate(id, p)
		moved.Move(id, p)
		for d := range paths {
			above := l.Above(d)
			_, _ = append(above.Key, 0xff), append(above.Ends, -1)
		}
		for d, ancestor := range paths {
			key := DataKey(nil, id, ancestor)
			if !bytes.Equal(l.At(d), key) || !bytes.Equal(moved.At(d), key) || !bytes.Equal(l.Above(d).Key, key) || l.Above(d).Depth() != d {
				t.Fatalf("seed %d: the key %d of %q is %x, and %x where it was moved, want %x", seed, d, p, l.At(d), moved.At(d), key)
			}
		}
		if l.Depth() != p.Depth() || !bytes.Equal(l.Key, l.At(l.Depth())) {
			t.Fatalf("seed %d: the location of %q has the depth %d and the key %x", seed, p, l.Depth(), l.Key)
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
