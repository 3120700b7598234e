package watch_test

import (
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// patchOf returns a PATCH of n children of /list, in an order of its own, and their
// paths.
func patchOf(t testing.TB, n int) (engine.Request, []tree.Path) {
	list := path(t, "/list")
	req := engine.Request{Write: tree.Write{At: list, Patch: true}, Who: admin}
	paths := make([]tree.Path, n)
	for i := range paths {
		paths[i] = list.Child(fmt.Sprintf("k%06d", i*7919%n))
		req.Assignments = append(req.Assignments, tree.Assignment{Path: paths[i]})
	}
	return req, paths
}

// TestGrowthOfTelling: how many of the parts of a PATCH are looked at for each of its
// paths, if each is watched, does not grow with their number.
func TestGrowthOfTelling(t *testing.T) {
	const n = 250
	cost := func(n int) float64 {
		req, paths := patchOf(t, n)
		return float64(watch.PartsLookedAt(tree.Change{Write: req.Write}, paths)) / float64(n)
	}
	few := cost(n)
	for _, factor := range []int{4, 16} {
		many := cost(factor * n)
		t.Logf("%d paths: %.2f parts for each", factor*n, many)
		if many > 2*few {
			t.Errorf("for each of %d paths %.1f parts are looked at, for each of %d %.1f: more than double", n, few, factor*n, many)
		}
	}
}

// TestEveryPlaceIsToldTheSame: what a change is at a place does not depend on how many
// have asked before.
func TestEveryPlaceIsToldTheSame(t *testing.T) {
	seed := mathrand.Uint64()
	rng := mathrand.New(mathrand.NewPCG(seed, 1))
	key := func() string { return []string{"a", "a-", "b", "a b", "0", "k1"}[rng.IntN(6)] }
	for range 300 {
		members := map[string]string{}
		for range 12 + rng.IntN(20) {
			name := key()
			for depth := 1; depth < 20 && rng.IntN(3) > 0; depth++ {
				name += "/" + key()
			}
			switch rng.IntN(4) {
			case 0:
				members[name+"/.priority"] = "1"
			case 1:
				members[name] = "null"
			default:
				members[name] = `{"a":1}`
			}
		}
		write := tree.Write{At: path(t, "/x"), Patch: true}
		for _, name := range slices.Sorted(maps.Keys(members)) { // as long as they do not overlap
			one, err := tree.DecodePatch(strings.NewReader(fmt.Sprintf(`{%q:%s}`, name, members[name])), write.At, tree.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if a := one.Assignments[0]; !overlapsAny(write.Assignments, a) {
				a.Object = a.Priority
				write.Assignments = append(write.Assignments, a)
			}
		}
		rng.Shuffle(len(write.Assignments), func(i, j int) {
			write.Assignments[i], write.Assignments[j] = write.Assignments[j], write.Assignments[i]
		})
		for _, a := range write.Assignments {
			for p := a.Path.Child("a"); ; p = p.Parent() {
				if first, later := watch.CutTwice(tree.Change{Write: write}, p, tree.Export); first != later {
					t.Fatalf("seed %d: of %v a watch of %s is told\n%s\nif it is the first, else\n%s", seed, write.Assignments, p, first, later)
				}
				if p.IsRoot() {
					break
				}
			}
		}
	}
}

func overlapsAny(list []tree.Assignment, a tree.Assignment) bool {
	return slices.ContainsFunc(list, func(b tree.Assignment) bool {
		return a.Path == b.Path || !a.Priority && a.Path.Contains(b.Path) || !b.Priority && b.Path.Contains(a.Path)
	})
}
