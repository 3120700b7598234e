package sdkhash_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/livetree/livetree/internal/sdkhash"
)

// TestJSNumbers compares with the SDK's computation as it is described.
func TestJSNumbers(t *testing.T) {
	t.Parallel()
	g := newGenerator(t)
	check := func(v float64) {
		t.Helper()
		if got, want := fmt.Sprintf("%016x", sdkhash.JSBits(v)), jsNumber(v); got != want {
			t.Fatalf("the SDK's bits of %v (%016x) are %s, want %s", v, math.Float64bits(v), got, want)
		}
	}
	for range 20_000 {
		check(g.double())
	}
	for exponent := -1074; exponent < 1024; exponent++ {
		bits := math.Float64bits(math.Ldexp(1, exponent))
		for distance := range uint64(8) {
			check(math.Float64frombits(bits + distance))
			check(-math.Float64frombits(max(bits, distance) - distance))
		}
		for shift := range 52 { // further and further away
			check(math.Float64frombits(bits + 1<<shift))
			check(math.Float64frombits(max(bits, 1<<shift) - 1<<shift))
		}
	}
}

// TestSomeNumbersDiffer: the form exists for these.
func TestSomeNumbersDiffer(t *testing.T) {
	t.Parallel()
	for v, differs := range map[float64]bool{
		63.99999999999999: true, 1<<53 - 1: true, -63.99999999999999: true, 5e-324: false, 1e-300: true,
		0: false, 1: false, 64: false, 4.5623: false, -12.5: false, 1e300: false, math.MaxFloat64: false,
	} {
		if got := sdkhash.JSBits(v) != math.Float64bits(v); got != differs {
			t.Errorf("the SDK spells %v in its own way: %v, want %v", v, got, differs)
		}
	}
	for i := range 2_000_000 {
		if v := float64(i); sdkhash.JSBits(v) != math.Float64bits(v) {
			t.Fatalf("the SDK spells %v in its own way", v)
		}
		if v := float64(i) / 100; sdkhash.JSBits(v) != math.Float64bits(v) {
			t.Fatalf("the SDK spells %v in its own way", v)
		}
	}
}
