package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestFrontier: a child behind the last one is added without a look at the rows
// from the third on, until something is written that could be in its place.
func TestFrontier(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(s *stand)
		want  bool // still known to be outside
	}{
		{"nothing", func(*stand) {}, true},
		{"a child in between", func(s *stand) { s.put("a/k10x", "1") }, true},
		{"a child elsewhere", func(s *stand) { s.put("b/k99", "1") }, true},
		{"a child is deleted", func(s *stand) { s.put("a/k11", "null") }, true},
		{"the last child is deleted", func(s *stand) { s.put("a/k12", "null") }, true},
		{"a leaf in the last child", func(s *stand) { s.put("a/k12/x", "1") }, true},
		{"the child itself", func(s *stand) { s.put("a/k13", "1") }, false},
		{"one behind it", func(s *stand) { s.put("a/k14", "1") }, false},
		{"something in the child", func(s *stand) { s.put("a/k13/x/y", "1") }, false},
		{"a patch of the child", func(s *stand) { s.patch("/", `{"c":1,"a/k13/x":1}`) }, false},
		{"the parent", func(s *stand) { s.put("a", `{"x":1,"y":2}`) }, false},
		{"the root", func(s *stand) { s.put("/", `{"x":1,"y":2}`) }, false},
		{"the parent is deleted", func(s *stand) { s.put("a", "null") }, false},
		{"all children are deleted", func(s *stand) { s.patch("a", `{"k01":null,"k10":null,"k11":null,"k12":null}`) }, false},
		{"all are deleted, another comes", func(s *stand) { s.patch("a", `{"k01":null,"k10":null,"k11":null,"k12":null,"k02":1}`) }, true},
	} {
		s := newStand(t, Options{ChunkBytes: -1})
		s.put("/", `{"a":{"k01":1},"b":{"k01":1,"k02":2}}`)
		for i := 10; i < 13; i++ {
			s.put(fmt.Sprintf("a/k%d", i), `{"x":1,"y":2}`)
		}
		c.write(s)
		l := s.Live(s.id).locate(parsePath(t, "a/k13"))
		if got := s.frontier.isOutside(l); got != c.want {
			t.Errorf("%s: it is known that nothing is at the next child: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestFrontierKeepsFew: new parents push out old ones.
func TestFrontierKeepsFew(t *testing.T) {
	s := newStand(t, Options{ChunkBytes: -1})
	for i := range 10 * maxEdges {
		s.put(fmt.Sprintf("p%d", i), `{"a":1,"b":2}`)
		s.put(fmt.Sprintf("p%d/c", i), `1`)
	}
	if n := len(s.frontier.edges); n != maxEdges {
		t.Errorf("the frontier knows %d parents, want %d", n, maxEdges)
	}
}

// TestFrontierChangesNothing: writes leave the same rows with a frontier as
// without one.
func TestFrontierChangesNothing(t *testing.T) {
	seeds := uint64(20)
	if raceEnabled {
		seeds = 4
	}
	for _, limit := range []int{-1, 16, 200} {
		for seed := range seeds {
			with, without := newStand(t, Options{ChunkBytes: limit}), newStand(t, Options{ChunkBytes: limit})
			random := rand.New(rand.NewPCG(seed, uint64(limit+1)))
			var history []string
			for range 120 {
				w := randomGrowth(t, random)
				history = append(history, describe(tree.Change{Write: w}))
				with.commit(w)
				without.frontier = Frontier{}
				without.commit(w)
				if got, want := with.dump(), without.dump(); !slices.Equal(got, want) {
					t.Fatalf("limit %d, seed %d: the rows are\n%s\nwithout a frontier\n%s\nafter\n%s", limit, seed,
						strings.Join(got, "\n"), strings.Join(want, "\n"), strings.Join(history, "\n"))
				}
			}
			if err := with.Live(with.id).Check(); err != nil {
				t.Fatal(err)
			}
			if err := with.Live(with.id).CheckIndexes(nil, func(uint32) bool { return false }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// randomGrowth returns a write: mostly of a child behind the others, in one of few
// parents.
func randomGrowth(t *testing.T, random *rand.Rand) tree.Write {
	parent := []string{"a", "b/c", "b", "", "a/k30"}[random.IntN(5)]
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
	for _, space := range []byte{spaceData, spaceIndex} {
		it, err := s.Live(s.id).iterator(appendSpace(nil, space, s.id))
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
