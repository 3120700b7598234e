package tree

import (
	"cmp"
	"math"
	"strings"
)

// CompareKeys orders the children of a node. Keys that spell a 32-bit integer
// come first, by value; equal integers in different spellings (7, 07, 007) by
// length, then by bytes. All other keys follow, by CompareStrings.
func CompareKeys(a, b string) int {
	if a != "" && b != "" && a[0] > '9' && b[0] > '9' { // as most do: neither begins with a digit or a minus
		return CompareStrings(a, b)
	}
	x, aInt := IntegerKey(a)
	y, bInt := IntegerKey(b)
	switch {
	case aInt && bInt:
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	case aInt:
		return -1
	case bInt:
		return 1
	}
	return CompareStrings(a, b)
}

// CompareStrings orders UTF-8 strings by their UTF-16 code units, as the SDKs
// do. It differs from byte order only where a character beyond U+FFFF, whose
// surrogates start at D800, meets one from U+E000 to U+FFFF.
func CompareStrings(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return cmp.Compare(UTF16Rank(a[i]), UTF16Rank(b[i]))
		}
	}
	return cmp.Compare(len(a), len(b))
}

// UTF16Rank maps a byte of UTF-8 such that comparing mapped bytes compares
// UTF-16 code units: the lead bytes of four-byte characters move below EE and
// EF, the lead bytes of U+E000 to U+FFFF.
func UTF16Rank(c byte) byte {
	switch {
	case c < 0xEE:
		return c
	case c < 0xF0:
		return c + 5 // EE, EF -> F3, F4
	default:
		return c - 2 // F0..F4 -> EE..F2
	}
}

// IntegerKey reports whether key is an optional minus sign and digits, leading
// zeros allowed, whose value fits 32 bits, and returns that value.
func IntegerKey(key string) (value int32, ok bool) {
	digits := strings.TrimPrefix(key, "-")
	if digits == "" || digits[0] > '9' || digits[0] < '0' {
		return 0, false
	}
	var v int64
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		if v = v*10 + int64(c-'0'); v > math.MaxInt32+1 {
			return 0, false
		}
	}
	if len(digits) != len(key) {
		v = -v
	}
	if v > math.MaxInt32 {
		return 0, false
	}
	return int32(v), true
}

// ArrayIndex reports whether key is the plain decimal spelling of a
// non-negative integer, as it may appear in an array, and returns that integer.
func ArrayIndex(key string) (index int32, ok bool) {
	if key == "" || (key[0] == '0' && len(key) > 1) || key[0] == '-' {
		return 0, false
	}
	return IntegerKey(key)
}
