package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// looked is all that a tree says of the nodes at and below a place.
func looked(t Tree, p tree.Path) (string, error) {
	leaf, priority, err := t.Look(p)
	if err != nil {
		return "", err
	}
	_, _, within, err := t.LookWithin(p, 8)
	if err != nil {
		return "", err
	}
	kind, err := t.Kind(p)
	if err != nil {
		return "", err
	}
	ranked, err := t.Priority(p)
	if err != nil {
		return "", err
	}
	exists, err := t.Exists(p)
	if err != nil {
		return "", err
	}
	next, err := t.NextChild(p, "b")
	return fmt.Sprintf("%s %s %t %v %s %t %q", tree.AppendLeaf(nil, leaf), tree.AppendLeaf(nil, priority), within, kind, tree.AppendLeaf(nil, ranked), exists, next), err
}

// TestLast: a tree that remembers the last chunk shows what another one shows, in views and live, and is not charged more.
func TestLast(t *testing.T) {
	places := append([]string{"a/b/c/k", "a/b/e", "a/x/0", "a/x/1", "d/1/a", "d/2/k", "nothing/here"}, memoPlaces...)
	values := []string{
		`null`, `5`, `{"b":{"c":{"k":1,"l":2},"e":"text"},"x":[1,2,3]}`, `{".value":1,".priority":3}`,
		`{".priority":"p","c":{"m":1},"x":{".value":2,".priority":1}}`, `[{"a":1},{"a":2},{"a":3}]`, `{"k":true,"l":"long enough to be split"}`,
	}
	atEveryLimit(t, func(s *stand) {
		rng := rand.New(rand.NewPCG(7, uint64(s.opts.ChunkBytes)))
		var last Last
		for range 200 {
			s.put(places[rng.IntN(len(places))], values[rng.IntN(len(values))])
			view := s.View()
			for _, plain := range []Tree{view.Tree(s.id), s.Live(s.id)} {
				var plainCost, cost seek.Cost
				plain = plain.Counting(&plainCost)
				last.Forget()
				remembering := Remembering(plain.Counting(&cost), &last)
				for range 10 {
					at := parsePath(s, places[rng.IntN(len(places))])
					want, err := looked(plain, at)
					if err != nil {
						s.Fatal(err)
					}
					if got, err := looked(remembering, at); got != want || err != nil {
						s.Fatalf("%s is %s, %v, want %s", at, got, err, want)
					}
				}
				if cost.Bytes > plainCost.Bytes {
					s.Fatalf("looking cost %d bytes, want no more than %d", cost.Bytes, plainCost.Bytes)
				}
			}
			view.Release()
		}
	})
}

// TestLastAllocations: looking at further nodes of one chunk takes no memory.
func TestLastAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := newStand(t, Options{})
	s.put("users/ann", `{"name":"Ann","age":5,"city":"Bern"}`)
	view := s.View()
	defer view.Release()
	var last Last
	paths := []tree.Path{parsePath(t, "users/ann/name"), parsePath(t, "users/ann/age"), parsePath(t, "users/ann/city")}
	looking := func(paths []tree.Path) float64 {
		return testing.AllocsPerRun(50, func() {
			last.Forget()
			remembering := Remembering(view.Tree(s.id), &last)
			for _, p := range paths {
				if exists, err := remembering.Exists(p); !exists || err != nil {
					t.Fatalf("Exists(%s) = %t, %v", p, exists, err)
				}
			}
		})
	}
	if one, all := looking(paths[:1]), looking(paths); all > one {
		t.Errorf("looking at three nodes of a chunk allocates %v times, want %v as for one", all, one)
	}
}
