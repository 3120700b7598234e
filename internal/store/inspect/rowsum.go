package inspect

import "hash/maphash"

// A rowSum is that of a set of rows, whatever their order. The sums of two sets are the same only if the sets are, but for
// a chance of one in 2^128: the seeds are drawn anew for each process, and nobody can aim at them.
type rowSum struct {
	rows        int
	left, right uint64
}

var sumSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func (s *rowSum) add(key []byte) {
	s.rows++
	s.left += maphash.Bytes(sumSeeds[0], key)
	s.right += maphash.Bytes(sumSeeds[1], key)
}
