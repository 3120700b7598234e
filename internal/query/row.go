package query

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/livetree/livetree/internal/tree"
)

// The first byte of an index value, in the order of values.
const (
	nullTag   byte = 0x01
	falseTag  byte = 0x02
	trueTag   byte = 0x03
	numberTag byte = 0x04
	textTag   byte = 0x05
	objectTag byte = 0x06
)

// A string in an index value ends with textMark and one of the two ends; a zero
// byte inside is textMark and escapedZero. Their order is that of strings of
// which one begins with the other.
const (
	textMark    byte = 0x00
	wholeEnd    byte = 0x00 // the string is all here
	cutEnd      byte = 0x01 // it goes on behind MaxIndexedText bytes
	escapedZero byte = 0xFF
)

// MaxIndexedText is how many bytes of a string an index value holds.
const MaxIndexedText = 1024

// exactDouble is the size of numbers from which on not every integer is a
// double.
const exactDouble = 1 << 53

// AppendIndexValue appends v to dst as it stands in the key of an index row.
//
// The bytes of two values compare as CompareValues has it, none is a prefix of
// another, and equal values have equal bytes, with one exception: strings of
// more than MaxIndexedText bytes that begin alike have equal bytes, whatever
// follows. Of such a row only the data can tell the position.
func AppendIndexValue(dst []byte, v Value) []byte {
	if v.object {
		return append(dst, objectTag)
	}
	switch v.leaf.Kind() {
	case tree.Boolean:
		if v.leaf.Bool() {
			return append(dst, trueTag)
		}
		return append(dst, falseTag)
	case tree.Integer, tree.Double:
		return appendNumber(append(dst, numberTag), v.leaf)
	case tree.String:
		return appendText(append(dst, textTag), v.leaf.Text())
	default:
		return append(dst, nullTag)
	}
}

// appendNumber appends the greatest double that is not above l and, where
// integers can lie between two doubles, how far l is above it. That is less
// than the distance of two doubles, 1,024 at the ends of an int64.
func appendNumber(dst []byte, l tree.Leaf) []byte {
	double, above := l.Float(), uint16(0)
	if l.Kind() == tree.Integer && math.Abs(double) >= exactDouble {
		double, above = floorDouble(l.Int())
	}
	bits := math.Float64bits(double)
	if bits>>63 != 0 {
		bits = ^bits // a negative number: the greater its size the lower
	} else {
		bits |= 1 << 63
	}
	dst = binary.BigEndian.AppendUint64(dst, bits)
	if math.Abs(double) >= exactDouble {
		dst = binary.BigEndian.AppendUint16(dst, above)
	}
	return dst
}

// CutIndexNumber reads a number that AppendIndexValue has written, as a double, and returns
// how many bytes it takes. It reports false if there is none.
func CutIndexNumber(b []byte) (number float64, n int, ok bool) {
	if len(b) < 9 || b[0] != numberTag {
		return 0, 0, false
	}
	bits := binary.BigEndian.Uint64(b[1:])
	if bits>>63 != 0 {
		bits &^= 1 << 63
	} else {
		bits = ^bits
	}
	number, n = math.Float64frombits(bits), 9
	if math.Abs(number) >= exactDouble {
		n += 2
	}
	return number, n, n <= len(b) && !math.IsNaN(number)
}

// floorDouble returns the greatest double that is not above v, and v minus it.
func floorDouble(v int64) (double float64, above uint16) {
	double = float64(v) // to the nearest: 2^63 for the greatest integers
	if double >= 1<<63 || int64(double) > v {
		double = math.Nextafter(double, math.Inf(-1))
	}
	return double, uint16(v - int64(double))
}

// appendText appends the beginning of s, in bytes that compare as the code
// units of UTF-16 do.
func appendText(dst []byte, s string) []byte {
	end := wholeEnd
	if len(s) > MaxIndexedText {
		s, end = s[:MaxIndexedText], cutEnd
	}
	for i := range len(s) {
		if s[i] == 0 {
			dst = append(dst, textMark, escapedZero)
		} else {
			dst = append(dst, tree.UTF16Rank(s[i]))
		}
	}
	return append(dst, textMark, end)
}

// IndexValueLen returns the length of the index value with which b begins, and
// whether it is that of a string that was cut. The length is -1 if b does not
// begin with what AppendIndexValue appends.
func IndexValueLen(b []byte) (n int, cut bool) {
	if len(b) == 0 {
		return -1, false
	}
	switch b[0] {
	case nullTag, falseTag, trueTag, objectTag:
		return 1, false
	case numberTag:
		return numberLen(b), false
	case textTag:
		return textLen(b)
	default:
		return -1, false
	}
}

// numberLen is IndexValueLen for a number.
func numberLen(b []byte) int {
	n := 1 + 8
	if len(b) < n {
		return -1
	}
	bits := binary.BigEndian.Uint64(b[1:])
	if bits>>63 != 0 {
		bits &^= 1 << 63
	} else {
		bits = ^bits
	}
	double := math.Abs(math.Float64frombits(bits))
	if double >= exactDouble {
		n += 2
	}
	if len(b) < n || math.IsInf(double, 0) || math.IsNaN(double) {
		return -1
	}
	return n
}

// textLen is IndexValueLen for a string.
func textLen(b []byte) (n int, cut bool) {
	escaped := 0
	for n = 1; ; {
		mark := bytes.IndexByte(b[n:], textMark)
		if mark < 0 || n+mark+1 == len(b) {
			return -1, false
		}
		n += mark + 2
		size := n - 3 - escaped // of the string in front of the mark
		switch b[n-1] {
		case escapedZero:
			escaped++
		case wholeEnd:
			if size > MaxIndexedText {
				return -1, false
			}
			return n, false
		case cutEnd:
			if size != MaxIndexedText {
				return -1, false
			}
			return n, true
		default:
			return -1, false
		}
	}
}
