package frame

import (
	"encoding/binary"
	"unicode/utf8"
)

const (
	// segmentUnits is the most UTF-16 units that a frame has.
	segmentUnits = 16384
	// plannedUnits is what a segment gets on average at most. A segment may become one
	// unit longer because the one before it ends before a character of two units.
	plannedUnits = segmentUnits - 1
	// maxSegments is what fits into the four digits that iOS reads.
	maxSegments = 9999
	// MaxUnits is the most UTF-16 units that a message may have.
	MaxUnits = maxSegments * plannedUnits
)

// Units returns how many UTF-16 units a text has, as JavaScript and Java count.
func Units(text []byte) int {
	units := len(text)
	for len(text) >= 8 {
		if binary.LittleEndian.Uint64(text)&0x8080808080808080 != 0 {
			units += beyondBytes(text[:8])
		}
		text = text[8:]
	}
	return units + beyondBytes(text)
}

// beyondBytes returns by how much the units of a text differ from its bytes. It looks at
// each byte alone, so a text may be cut anywhere.
func beyondBytes(text []byte) int {
	n := 0
	for _, b := range text {
		switch {
		case b&0xc0 == 0x80: // inside a character
			n--
		case b >= 0xf0: // a character of two units
			n++
		}
	}
	return n
}

// A Counter counts the units of what is written to it: the first of the two times that
// a message for a Stream is printed.
type Counter struct{ Units int }

// Write counts. Characters may be cut between two calls.
func (c *Counter) Write(text []byte) (int, error) {
	c.Units += Units(text)
	return len(text), nil
}

// prefix returns how many bytes of the text make at most so many units, in whole
// characters. It stops before a character that is not complete.
func prefix(text []byte, units int) int {
	n := 0
	for n < len(text) && units > 0 {
		// So many bytes have no more units than that.
		part := text[n:min(len(text), n+units)]
		part = part[:wholeLength(part)]
		if len(part) == 0 {
			r, size := utf8.DecodeRune(text[n:])
			if !utf8.FullRune(text[n:]) || r > 0xffff && units < 2 {
				break
			}
			part = text[n : n+size]
		}
		n += len(part)
		units -= Units(part)
	}
	return n
}

// wholeLength returns the length of a text without a character at its end that is not
// complete.
func wholeLength(text []byte) int {
	for back := 1; back <= min(len(text), utf8.UTFMax-1); back++ {
		if first := text[len(text)-back]; utf8.RuneStart(first) {
			if !utf8.FullRune(text[len(text)-back:]) {
				return len(text) - back
			}
			break
		}
	}
	return len(text)
}

// A plan says where a message is cut. It depends on the number of units alone, so it
// is known before the text is.
type plan struct{ units, segments int }

func newPlan(units int) plan {
	if units <= segmentUnits {
		return plan{units, 1}
	}
	return plan{units, (units + plannedUnits - 1) / plannedUnits}
}

// end returns how many units of the message the segments up to the i-th, counted from 0, have:
// as many, or one less if a character of two units is there.
func (p plan) end(i int) int {
	return int(int64(p.units) * int64(i+1) / int64(p.segments))
}
