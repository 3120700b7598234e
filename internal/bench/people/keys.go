package people

import (
	"math"
	"sync"
)

// Keys draws one of n children for the request with a number.
type Keys func(i, n int) int

// Pick returns a number below n for a request: the same in every run, and without
// a pattern.
func Pick(i, n int) int { return int(scatter(i) % uint64(n)) }

// scatter is splitmix64.
func scatter(i int) uint64 {
	x := uint64(i)*0x9e3779b97f4a7c15 + 1
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Uniform draws each child as often as any other.
func Uniform(i, n int) int { return Pick(i, n) }

// theta is how uneven Zipf is: the nth most wanted child is drawn n^-theta times as
// often as the first.
const theta = 0.99

// Zipf draws few children often and most of them rarely: of 1,000,000, the thousand that
// are wanted most make up half. Where they are among the others has no pattern.
func Zipf(i, n int) int { return Pick(rank(i, n)+1, n) }

// rank returns which is drawn, 0 for the one that is wanted most. It is the method of
// Gray and others, "Quickly generating billion-record synthetic databases" (1994).
func rank(i, n int) int {
	total := harmonic(n)
	u := float64(scatter(i)>>11) / (1 << 53)
	switch at := u * total; {
	case n == 1 || at < 1:
		return 0
	case at < 1+math.Pow(0.5, theta):
		return 1
	}
	first := 1 + math.Pow(0.5, theta)
	eta := (1 - math.Pow(2/float64(n), 1-theta)) / (1 - first/total)
	return min(n-1, int(float64(n)*math.Pow(eta*u-eta+1, 1/(1-theta))))
}

var harmonics sync.Map // float64 by the n of harmonic

// harmonic returns how often all n are drawn if the first is once.
func harmonic(n int) float64 {
	if known, ok := harmonics.Load(n); ok {
		return known.(float64)
	}
	sum := 0.0
	for i := range n {
		sum += math.Pow(float64(i+1), -theta)
	}
	harmonics.Store(n, sum)
	return sum
}
