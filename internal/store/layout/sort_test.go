package layout

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestSortAnyBytes: what differs late, in a zero or in its length alone is sorted as its bytes are, also what is there twice.
func TestSortAnyBytes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		begin, longest, count := anyBytes(rng, rng.IntN(11)), rng.IntN(11), rng.IntN(30)
		if rng.IntN(200) == 0 {
			count = packedFew - 2 + rng.IntN(5)
		}
		list := make([][]byte, count)
		for i := range list {
			list[i] = append(slices.Clip(begin), anyBytes(rng, rng.IntN(longest+1))...)
		}
		checkSorted(t, seed, list)
	}
}

// anyBytes returns as many bytes, of which many are the least or the greatest.
func anyBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = [...]byte{0, 0, 1, 'a', 0xfe, 0xff, 0xff}[rng.IntN(7)]
	}
	return b
}

// checkSorted sorts a list, and again as the package bytes has it.
func checkSorted(t *testing.T, seed uint64, list [][]byte) {
	t.Helper()
	before, want := slices.Clone(list), slices.Clone(list)
	slices.SortFunc(want, bytes.Compare)
	SortComponents(list)
	if slices.EqualFunc(list, want, bytes.Equal) {
		return
	}
	if len(list) > 300 {
		t.Fatalf("seed %d: %d components are not sorted", seed, len(list))
	}
	t.Fatalf("seed %d: %x is sorted as %x, want %x", seed, before, list, want)
}

// TestSortMany: so are as many as numbers have places for, and more.
func TestSortMany(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, count := range []int{packedWhere, packedWhere + 1, packedWhere + 2, packedWhere + 5000} {
		list := make([][]byte, count)
		for i := range list {
			list[i] = []byte{'k', byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32())}[:1+rng.IntN(4)]
		}
		checkSorted(t, seed, list)
	}
}

// TestSortedComponentsAreInTheOrderOfKeys: integers come first, by their value, and then texts.
func TestSortedComponentsAreInTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		keys := make([]string, rng.IntN(30))
		list := make([][]byte, len(keys))
		for i := range keys {
			keys[i] = anyKey(rng)
			list[i] = AppendComponent(nil, keys[i])
		}
		SortComponents(list)
		slices.SortFunc(keys, tree.CompareKeys)
		for i, component := range list {
			if key, _, err := CutComponent(component); err != nil || key != keys[i] {
				t.Fatalf("seed %d: child %d is %q, %v, of %q", seed, i, key, err, keys)
			}
		}
	}
}

// anyKey returns an integer, what almost is one, or a text.
func anyKey(rng *rand.Rand) string {
	keys := [...]string{
		"0", "-0", "-1", "00", "01", "1", "9", "10", "2147483647", "2147483648", "-2147483648", "-2147483649", "a", "A", "aa", "~", "!", "é", "\uffff", "\U0001f600",
	}
	key := keys[rng.IntN(len(keys))]
	if rng.IntN(3) == 0 {
		key += keys[rng.IntN(len(keys))]
	}
	return key
}
