package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// TestFrontierChangesNothing: writes leave the same rows with a frontier as
// without one, and what it says of where nothing is is so.
func TestFrontierChangesNothing(t *testing.T) {
	seeds := uint64(20)
	if raceEnabled {
		seeds = 1
	}
	outside := 0
	for _, limit := range []int{-1, 16, 200} {
		for seed := range seeds {
			with, without := newStand(t, Options{ChunkBytes: limit}), newStand(t, Options{ChunkBytes: limit})
			random := rand.New(rand.NewPCG(seed, uint64(limit+1)))
			with.frontier.Most = []int{0, 1, 2}[seed%3]
			var history []string
			for range 120 {
				w := randomGrowth(t, random)
				history = append(history, describe(tree.Change{Write: w}))
				with.commit(w)
				without.frontier = batch.Frontier{}
				without.commit(w)
				outside += with.checkFrontier(random, history)
				if got, want := with.dump(), without.dump(); !slices.Equal(got, want) {
					t.Fatalf("limit %d, seed %d: the rows are\n%s\nwithout a frontier\n%s\nafter\n%s", limit, seed,
						strings.Join(got, "\n"), strings.Join(want, "\n"), strings.Join(history, "\n"))
				}
			}
			if err := checkData(with.Live(with.id)); err != nil {
				t.Fatal(err)
			}
			if err := checkIndexes(with.Live(with.id), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if outside == 0 {
		t.Error("no frontier ever knew that nothing is at a place")
	}
}

// checkFrontier compares what a tree says of places with what it says beside the
// frontier, and returns at how many of them that had nothing to look at.
func (s *stand) checkFrontier(random *rand.Rand, history []string) (outside int) {
	s.Helper()
	live := s.Live(s.id)
	for _, parent := range growing {
		at := parsePath(s.TB, fmt.Sprintf("%s/k%02d", parent, 10+random.IntN(35)))
		got, err := BesideFrontier(live, &s.frontier).Exists(at)
		want, plainErr := live.Exists(at)
		if err != nil || plainErr != nil || got != want {
			s.Fatalf("beside the frontier something is at %s: %v, want %v (%v, %v) after\n%s", at, got, want, err, plainErr, strings.Join(history, "\n"))
		}
		if s.frontier.Lacks(live.reader.Locate(at)) {
			outside++
		}
	}
	return outside
}

// growing are the parents that randomGrowth adds children to.
var growing = []string{"a", "b/c", "b", "", "a/k30"}

// randomGrowth returns a write: mostly of a child behind the others, in one of few
// parents.
func randomGrowth(t *testing.T, random *rand.Rand) tree.Write {
	parent := growing[random.IntN(len(growing))]
	number := 10 + random.IntN(30)
	at := fmt.Sprintf("%s/k%02d", parent, number)
	switch random.IntN(12) {
	case 0:
		at = parent
	case 1:
		at += "/below/it"
	case 2:
		return tree.PutPriority(parsePath(t, at), tree.LeafNode(tree.IntegerLeaf(int64(number))))
	case 3, 4:
		return randomPatch(t, random, parent)
	}
	bodies := []string{"null", "1", `{"x":1}`, `{"x":{"y":"a text that takes some room"},"z":2}`,
		`{".value":1,".priority":2}`, `{"k10":1,"k20":2,"k30":{"k10":1,"k11":2}}`}
	return putWrite(t, at, bodies[random.IntN(len(bodies))])
}

func randomPatch(t *testing.T, random *rand.Rand, parent string) tree.Write {
	var members []string
	numbers, bodies := random.Perm(40), []string{"null", "1", `{"x":1,"y":2}`}
	if random.IntN(2) == 0 {
		numbers = numbers[:random.IntN(12)]
	} else {
		bodies = bodies[:1] // nothing stays
	}
	for _, number := range numbers {
		members = append(members, fmt.Sprintf(`"k%02d":%s`, number, bodies[random.IntN(len(bodies))]))
	}
	w, err := tree.DecodePatch(strings.NewReader("{"+strings.Join(members, ",")+"}"), parsePath(t, parent), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// dump returns the rows of data and indexes.
func (s *stand) dump() []string {
	s.Helper()
	var rows []string
	for _, space := range []byte{layout.SpaceData, layout.SpaceIndex} {
		it, err := s.Live(s.id).reader.Iterator(layout.AppendSpace(nil, space, s.id))
		if err != nil {
			s.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			rows = append(rows, fmt.Sprintf("%q %q", it.Key(), bytes.Clone(it.Value())))
		}
		if err := it.Close(); err != nil {
			s.Fatal(err)
		}
	}
	return rows
}
