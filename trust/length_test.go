//go:build unix

package trust_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/proof"
)

var (
	isLong    = flag.Bool("long", false, "run by larger counts, as each night")
	isTorture = flag.Bool("torture", false, "run by the largest counts, as before a release")
	times     = flag.Int("times", 1, "how many times the length to run")
	givenSeed = flag.Uint64("seed", 0, "the seed of the random tests, 0 for a new one")
	figures   = proof.NewFigures()
)

// length returns how often a test does a thing. The code is the same for all
// three lengths, so that what is quick today is what runs all night.
func length[T int | time.Duration](short, long, torture T) T {
	count := short
	switch {
	case *isTorture:
		count = torture
	case *isLong:
		count = long
	}
	return count
}

// rounds is length for what is done over and over: -times makes it more.
func rounds(short, long, torture int) int {
	return length(short, long, torture) * *times
}

// portions splits a length. A test reports the figures of each portion, so that a
// run which is stopped counts as far as it came.
func portions(length, size int) []int {
	var list []int
	for ; length > size; length -= size {
		list = append(list, size)
	}
	return append(list, length)
}

// seed returns the seed of a test and says how to have it again.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := *givenSeed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("seed %d: repeat with -run '^%s$' -seed %d", n, t.Name(), n)
	return n
}

// newRand returns a random source; different streams of one seed differ.
func newRand(seed uint64, stream int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(stream)))
}

// pick returns one of several things.
func pick[T any](rng *rand.Rand, from ...T) T {
	return from[rng.IntN(len(from))]
}
