package expr

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/tree"
)

// An Error is what is wrong with an expression, and where.
type Error struct {
	Offset  int // in bytes, from the start of the expression
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Offset, e.Message) }

// tokenKind is what a token is.
type tokenKind uint8

const (
	tokenEnd      tokenKind = iota
	tokenLiteral            // a number or a string: leaf
	tokenName               // also $name
	tokenOperator           // all else
)

type token struct {
	kind   tokenKind
	offset int
	text   string
	leaf   tree.Leaf
}

// is reports whether the token is this operator.
func (t token) is(operator string) bool { return t.kind == tokenOperator && t.text == operator }

// A scanner cuts an expression into tokens. It gives up by panic(*Error), which
// Parse recovers: errors would otherwise pass through every line of the parser.
type scanner struct {
	source   string
	pos      int
	patterns int // instructions of all patterns so far
}

func (s *scanner) fail(offset int, format string, args ...any) {
	panic(&Error{offset, fmt.Sprintf(format, args...)})
}

// operators are sorted such that no operator hides a longer one.
var operators = []string{
	"===", "!==", "==", "!=", "<=", ">=", "&&", "||",
	"=", "!", "<", ">", "+", "-", "*", "/", "%", "?", ":", ".", ",", "(", ")", "[", "]",
}

// next returns the next token. A slash is an operator here; the parser asks for
// a pattern where only that can be.
func (s *scanner) next() token {
	s.pos += len(s.source[s.pos:]) - len(strings.TrimLeft(s.source[s.pos:], " \t\r\n"))
	rest := s.source[s.pos:]
	switch {
	case rest == "":
		return token{kind: tokenEnd, offset: s.pos}
	case isDigit(rest[0]) || rest[0] == '.' && len(rest) > 1 && isDigit(rest[1]):
		return s.number()
	case rest[0] == '"' || rest[0] == '\'':
		return s.text()
	case isNameByte(rest[0]) || rest[0] == '$':
		n := 1
		for n < len(rest) && isNameByte(rest[n]) {
			n++
		}
		return s.take(tokenName, n)
	}
	for _, operator := range operators {
		if strings.HasPrefix(rest, operator) {
			return s.take(tokenOperator, len(operator))
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	s.fail(s.pos, "Unexpected '%c'.", r)
	return token{}
}

func (s *scanner) take(kind tokenKind, n int) token {
	t := token{kind: kind, offset: s.pos, text: s.source[s.pos : s.pos+n]}
	s.pos += n
	return t
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) || c == '_'
}

// number reads digits, a fraction and an exponent.
func (s *scanner) number() token {
	start := s.pos
	digits := func() int {
		from := s.pos
		for s.pos < len(s.source) && isDigit(s.source[s.pos]) {
			s.pos++
		}
		return s.pos - from
	}
	at := func(set string) bool {
		return s.pos < len(s.source) && strings.IndexByte(set, s.source[s.pos]) >= 0
	}
	if whole := digits(); whole > 1 && s.source[start] == '0' {
		s.fail(start, "A number can't start with 0.")
	}
	integer := true
	if at(".") && s.pos+1 < len(s.source) && isDigit(s.source[s.pos+1]) {
		s.pos++
		digits()
		integer = false
	}
	if at("eE") {
		s.pos++
		if at("+-") {
			s.pos++
		}
		if digits() == 0 {
			s.fail(start, "Invalid number.")
		}
		integer = false
	}
	if s.pos < len(s.source) && isNameByte(s.source[s.pos]) {
		s.fail(start, "Invalid number.")
	}
	return token{tokenLiteral, start, s.source[start:s.pos], s.numberLeaf(start, integer)}
}

// numberLeaf gives a number its value: exact if it is an integer of 64 bits.
func (s *scanner) numberLeaf(start int, integer bool) tree.Leaf {
	text := s.source[start:s.pos]
	if integer {
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return tree.IntegerLeaf(v)
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) {
		s.fail(start, "The number is out of range.")
	}
	return tree.DoubleLeaf(v)
}

// text reads a string in single or double quotes.
func (s *scanner) text() token {
	start, quote := s.pos, s.source[s.pos]
	var b strings.Builder
	for s.pos++; s.pos < len(s.source); {
		c := s.source[s.pos]
		switch {
		case c == quote:
			s.pos++
			value := b.String()
			if !utf8.ValidString(value) {
				s.fail(start, "The string is not valid UTF-8.")
			}
			return token{tokenLiteral, start, s.source[start:s.pos], tree.StringLeaf(value)}
		case c == '\n' || c == '\r':
			s.fail(start, "unterminated string literal")
		case c == '\\':
			b.WriteRune(s.escape())
		default:
			b.WriteByte(c)
			s.pos++
		}
	}
	s.fail(start, "unterminated string literal")
	return token{}
}

// escape reads a backslash and what belongs to it. As in JavaScript, a character
// without a meaning of its own stands for itself.
func (s *scanner) escape() rune {
	start := s.pos
	r, size := utf8.DecodeRuneInString(s.source[s.pos+1:])
	s.pos += 1 + size
	switch r {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'v':
		return '\v'
	case 'x':
		return s.hex(start, 2)
	case 'u':
		high := s.hex(start, 4)
		if !utf16.IsSurrogate(high) {
			return high
		}
		if strings.HasPrefix(s.source[s.pos:], `\u`) {
			s.pos += 2
			if r := utf16.DecodeRune(high, s.hex(start, 4)); r != utf8.RuneError {
				return r
			}
		}
		s.fail(start, "Invalid escape: half of a surrogate pair.")
	case '\n', '\r', utf8.RuneError:
		s.fail(start, "Invalid escape.")
	}
	return r
}

// hex reads n hexadecimal digits of the escape that begins at start.
func (s *scanner) hex(start, n int) rune {
	if s.pos+n <= len(s.source) {
		if v, err := strconv.ParseUint(s.source[s.pos:s.pos+n], 16, 32); err == nil {
			s.pos += n
			return rune(v)
		}
	}
	s.fail(start, "Invalid escape: %d hexadecimal digits must follow.", n)
	return 0
}

// pattern reads the regular expression whose first slash is at offset.
func (s *scanner) pattern(offset int) *pattern {
	inClass := false
	for s.pos = offset + 1; s.pos < len(s.source); s.pos++ {
		switch s.source[s.pos] {
		case '\n', '\r':
			s.fail(offset, "unterminated regular expression literal")
		case '\\':
			s.pos++
		case '[':
			inClass = true
		case ']':
			inClass = false
		case '/':
			if inClass {
				continue
			}
			text := s.source[offset+1 : s.pos]
			s.pos++
			return &pattern{mark: mark{offset: offset}, regex: s.regex(offset, text)}
		}
	}
	s.fail(offset, "unterminated regular expression literal")
	return nil
}

// regex reads the flags and translates the text of a pattern.
func (s *scanner) regex(offset int, text string) *regex {
	flags := s.pos
	for s.pos < len(s.source) && isNameByte(s.source[s.pos]) {
		s.pos++
	}
	if f := s.source[flags:s.pos]; f != "" && f != "i" {
		s.fail(offset, "regular expressions do not support flags other than i")
	}
	re, err := compileRegex(text, s.pos > flags)
	if err != nil {
		s.fail(offset, "invalid regular expression: %v", err)
	}
	if s.patterns += re.size; s.patterns > maxPatternsSize {
		s.fail(offset, "invalid regular expression: together with those before it, it is too large")
	}
	return re
}
