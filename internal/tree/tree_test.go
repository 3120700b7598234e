package tree_test

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

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
			t.Logf("again with: go test ./internal/tree -run '^%s$' -seed %d", t.Name(), seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// path parses a path that is known to be valid.
func path(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatalf("ParsePath(%q): %v", text, err)
	}
	return p
}

// keysOf returns the keys of a path, as the model takes them.
func keysOf(p tree.Path) []string {
	var keys []string
	for key := range p.Keys() {
		keys = append(keys, key)
	}
	return keys
}

// decode reads a text that is known to be valid at the root.
func decode(t testing.TB, text string) tree.Node {
	t.Helper()
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		t.Fatalf("DecodeBytes(%.100s): %v", text, err)
	}
	return n
}

// nested returns a text in which inner is depth keys deep.
func nested(depth int, inner string) string {
	return strings.Repeat(`{"k":`, depth) + inner + strings.Repeat("}", depth)
}

func plain(n tree.Node) string  { return string(tree.AppendJSON(nil, n, tree.Plain)) }
func export(n tree.Node) string { return string(tree.AppendJSON(nil, n, tree.Export)) }

func leafText(l tree.Leaf) string { return string(tree.AppendLeaf(nil, l)) }

// sign returns -1, 0 or 1.
func sign(n int) int { return min(max(n, -1), 1) }
