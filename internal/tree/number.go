package tree

import (
	"math"
	"strconv"
)

// maxNumberBytes bounds the spelling of a number.
const maxNumberBytes = 4096

// scanNumber reads a number, whose first byte is next.
func (s *scanner) scanNumber() (Leaf, error) {
	at := s.position()
	text, err := s.numberText(at)
	if err != nil {
		return Leaf{}, err
	}
	integer, ok := numberSyntax(text)
	if !ok {
		return Leaf{}, s.failAt(at, ErrSyntax, "%.40q is not a number", text)
	}
	if integer {
		if v, ok := parseInteger(text); ok {
			return IntegerLeaf(v), nil
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(v, 0) {
		return Leaf{}, s.failAt(at, ErrValue, "the number %.40s is out of range", text)
	}
	return DoubleLeaf(v), nil
}

// numberText reads every byte that could belong to a number.
func (s *scanner) numberText(at position) ([]byte, error) {
	s.number = s.number[:0]
	for {
		i := s.pos
		for i < len(s.buf) && isNumberByte(s.buf[i]) {
			i++
		}
		if i < len(s.buf) && len(s.number) == 0 && i-s.pos <= maxNumberBytes {
			text := s.buf[s.pos:i] // the common case: no copy
			s.pos = i
			return text, nil
		}
		s.number = append(s.number, s.buf[s.pos:i]...)
		s.pos = i
		if len(s.number) > maxNumberBytes {
			return nil, s.failAt(at, ErrTooLarge, "a number longer than %d bytes", maxNumberBytes)
		}
		if i < len(s.buf) {
			return s.number, nil
		}
		if ok, err := s.more(); err != nil {
			return nil, err
		} else if !ok {
			return s.number, nil
		}
	}
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// numberSyntax checks text against the grammar of JSON numbers and reports
// whether it has neither a fraction nor an exponent.
func numberSyntax(text []byte) (integer, ok bool) {
	i := 0
	digits := func() bool {
		start := i
		for i < len(text) && '0' <= text[i] && text[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(text) && text[i] == '-' {
		i++
	}
	start := i
	if !digits() || (text[start] == '0' && i > start+1) {
		return false, false
	}
	integer = true
	if i < len(text) && text[i] == '.' {
		i++
		if integer = false; !digits() {
			return false, false
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if integer = false; !digits() {
			return false, false
		}
	}
	return integer, i == len(text)
}

// parseInteger reads an integer that fits an int64.
func parseInteger(text []byte) (int64, bool) {
	if len(text) > 18 { // may not fit: leave the limits to strconv
		v, err := strconv.ParseInt(string(text), 10, 64)
		return v, err == nil
	}
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	var v int64
	for _, c := range text {
		v = v*10 + int64(c-'0')
	}
	if negative {
		v = -v
	}
	return v, true
}
