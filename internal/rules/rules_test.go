package rules_test

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// This file holds what the tests of this package share.

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 draws one")

// random returns a source of randomness whose seed is printed if the test fails.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: go test ./internal/rules -run '^%s$' -seed %d", t.Name(), seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// nowMillis is the time of all requests in these tests.
const nowMillis = 1_500_000_000_000

// compile compiles rules that are known to be valid; text is what stands behind
// "rules":.
func compile(t testing.TB, text string) *rules.Ruleset {
	t.Helper()
	r, err := rules.Compile(`{"rules":` + text + `}`)
	if err != nil {
		t.Fatalf("Compile(%s): %v", text, err)
	}
	return r
}

func path(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatalf("ParsePath(%q): %v", text, err)
	}
	return p
}

func decode(t testing.TB, text string) tree.Node {
	t.Helper()
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		t.Fatalf("DecodeBytes(%s): %v", text, err)
	}
	return n
}

// after returns the tree that a write makes of another. Like the store, it puts
// before it deletes, and sets priorities last.
func after(before tree.Node, w tree.Write) tree.Node {
	e := tree.NewEditor(before)
	for pass := range 3 {
		for _, a := range w.Assignments {
			switch {
			case a.Priority && pass == 2:
				e.SetPriority(a.Path, a.Node.Leaf())
			case !a.Priority && pass == 0 && !a.Node.IsNull(), !a.Priority && pass == 1 && a.Node.IsNull():
				e.Set(a.Path, a.Node)
			}
		}
	}
	return e.Node()
}
