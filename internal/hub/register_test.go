package hub_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/tree"
)

// TestRegisterLikeAList does random things to a register and to a plain list of
// pairs.
func TestRegisterLikeAList(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	type pair struct {
		path   tree.Path
		member int
	}
	var register hub.Register[int]
	var list []pair
	for step := range 20_000 {
		p, member := randomPath(rng), rng.IntN(20)
		at := slices.Index(list, pair{p, member})
		if rng.IntN(2) == 0 {
			register.Add(p, member)
			if at < 0 {
				list = append(list, pair{p, member})
			}
		} else {
			register.Remove(p, member)
			if at >= 0 {
				list = slices.Delete(list, at, at+1)
			}
		}
		if step%1000 == 999 { // everything goes, so that emptied places are met again
			for _, entry := range list {
				register.Remove(entry.path, entry.member)
			}
			list = nil
		}
		p = randomPath(rng)
		var want []int
		for _, entry := range list {
			if entry.path.Contains(p) || p.Contains(entry.path) {
				want = append(want, entry.member)
			}
		}
		var got []int
		register.Concerned(p, func(member int) { got = append(got, member) })
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) || register.Concerns(p) != (len(want) > 0) {
			t.Fatalf("seed %d, step %d: %s concerns %v (%v), want %v", seed, step, p, got, register.Concerns(p), want)
		}
	}
}

func randomPath(rng *rand.Rand) tree.Path {
	var p tree.Path
	for range rng.IntN(5) {
		p = p.Child([]string{"a", "b", "ab"}[rng.IntN(3)])
	}
	return p
}

// BenchmarkConcerned finds one member at the path and one above it. What it costs
// must not depend on how many are elsewhere.
func BenchmarkConcerned(b *testing.B) {
	for _, elsewhere := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("elsewhere=%d", elsewhere), func(b *testing.B) {
			var register hub.Register[int]
			p := tree.Path{}.Child("rooms").Child("r1")
			register.Add(p, 1)
			register.Add(p.Child("messages"), 2)
			for i := range elsewhere {
				register.Add(tree.Path{}.Child("rooms").Child(fmt.Sprintf("other%d", i)), i)
			}
			p = p.Child("messages").Child("m1")
			b.ReportAllocs()
			for b.Loop() {
				found := 0
				register.Concerned(p, func(int) { found++ })
				if found != 2 {
					b.Fatalf("found %d members, want 2", found)
				}
			}
		})
	}
}
