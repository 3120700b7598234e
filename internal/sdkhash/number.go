package sdkhash

import "math"

// jsBits returns the bits of v as the JavaScript SDK spells them.
//
// It has no way to look at the bits of a double and computes them from the logarithm:
// floor(log(v)/ln 2) is the exponent, and what is left the fraction. Just below a
// power of two the quotient may be rounded up to a whole number. The exponent is
// then one too high and the fraction, which would be negative, all wrong. At a power of
// two it may be rounded down. Below 2^-971 a factor overflows and the fraction is lost.
func jsBits(v float64) uint64 {
	bits := math.Float64bits(v)
	if !nearPower(bits) {
		return bits
	}
	return bits&signBit | computedBits(math.Abs(v))
}

const (
	signBit      = 1 << 63
	fractionBits = 52
	bias         = 1023
)

// nearPower reports whether the double is so close to a power of two that its
// logarithm could be rounded to a whole number, or too small to be computed. It says
// no for almost all numbers, and then the SDK is right: log(v)/ln 2 has an error of a
// few parts in 2^53, and its size is at most 1,075; that is far less than 2^-36.
func nearPower(bits uint64) bool {
	const near = 36 // bits of the fraction that are all 0 or all 1
	fraction := bits << 12 >> (64 - near)
	exponent := bits << 1 >> (1 + fractionBits)
	return fraction == 0 || fraction == 1<<near-1 || exponent < bias-900
}

// computedBits does as the SDK does, for a v that is not negative.
func computedBits(v float64) uint64 {
	var exponent, fraction float64
	switch {
	case v == 0:
	case v >= 0x1p-1022:
		log := min(math.Floor(math.Log(v)/math.Ln2), bias)
		exponent = log + bias
		fraction = round(v*math.Ldexp(1, fractionBits-int(log)) - 0x1p52)
	default:
		fraction = round(v / 0x1p-1074)
	}
	return lowBits(exponent, 11)<<fractionBits | lowBits(fraction, fractionBits)
}

// round is JavaScript's Math.round, which rounds halves up.
func round(v float64) float64 { return math.Floor(v + 0.5) }

// lowBits returns the lowest bits of a whole number. The SDK takes them off one by one,
// by the remainder and the floor of a division by two: of a negative number that
// gives its two's complement, of an infinite one zeros.
func lowBits(v float64, count int) uint64 {
	if math.IsInf(v, 0) {
		return 0
	}
	return uint64(int64(v)) & (1<<count - 1) // it is at most 2^53 in size
}
