package rules

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxNesting bounds how deep the text of a document is nested.
const maxNesting = 50

// An element is a JSON value with its place in the text.
type element struct {
	kind    elementKind
	offset  int
	members []elementMember // of an object
	items   []element       // of an array
	text    string          // of a string, or the spelling of a number or a word
	// shifts says where the bytes of a string come from, if it has escapes: from
	// the byte shifts[i].at on they are shifts[i].by behind where they would be.
	shifts []shift
}

type shift struct{ at, by int }

type elementMember struct {
	key       string
	keyOffset int
	element   element
}

type elementKind uint8

const (
	kindObject elementKind = iota
	kindArray
	kindString
	kindNumber
	kindWord // true, false, null
)

// origin returns where byte i of a string is in the text.
func (e *element) origin(i int) int {
	offset := e.offset + 1 + i
	for _, s := range e.shifts {
		if s.at > i {
			break
		}
		offset = e.offset + 1 + i + s.by
	}
	return offset
}

// A syntaxError is where a reader gave up.
type syntaxError struct {
	offset  int
	message string
}

// A reader reads the dialect of JSON that rules are written in: with comments,
// commas behind the last element, and any character inside strings. Its texts
// are those of the live service where one is known. It gives up by
// panic(syntaxError), which read recovers.
type reader struct {
	source string
	pos    int
	depth  int
}

// readDocument reads a whole text.
func readDocument(source string) (e element, problem *syntaxError) {
	r := &reader{source: source}
	defer func() {
		if cause := recover(); cause != nil {
			failed, ok := cause.(syntaxError)
			if !ok {
				panic(cause)
			}
			problem = &failed
		}
	}()
	if !utf8.ValidString(source) {
		r.fail(validPrefix(source), "The rules are not valid UTF-8.")
	}
	r.skip()
	if !strings.HasPrefix(r.source[r.pos:], "{") {
		r.fail(r.pos, "Expected '{'.")
	}
	e = r.value()
	if r.skip(); r.pos < len(r.source) {
		r.unexpected()
	}
	return e, nil
}

// validPrefix returns the offset of the first byte that is not UTF-8.
func validPrefix(s string) int {
	for i, c := range s {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}

func (r *reader) fail(offset int, format string, args ...any) {
	panic(syntaxError{offset, fmt.Sprintf(format, args...)})
}

func (r *reader) unexpected() {
	if r.pos == len(r.source) {
		r.fail(r.pos, "Unexpected end of the rules.")
	}
	c, _ := utf8.DecodeRuneInString(r.source[r.pos:])
	r.fail(r.pos, "Unexpected '%c'.", c)
}

// skip reads white space and comments.
func (r *reader) skip() {
	for {
		rest := r.source[r.pos:]
		trimmed := strings.TrimLeft(rest, " \t\r\n")
		r.pos += len(rest) - len(trimmed)
		end, size := "", 0
		switch {
		case strings.HasPrefix(trimmed, "//"):
			end, size = "\n", 1
		case strings.HasPrefix(trimmed, "/*"):
			end, size = "*/", 2
		default:
			return
		}
		n := strings.Index(trimmed[2:], end)
		switch {
		case n >= 0:
			r.pos += 2 + n + size
		case size == 2:
			r.fail(r.pos, "The comment does not end.")
		default:
			r.pos = len(r.source)
		}
	}
}

// accept reads a byte if it is next.
func (r *reader) accept(c byte) bool {
	r.skip()
	if r.pos == len(r.source) || r.source[r.pos] != c {
		return false
	}
	r.pos++
	return true
}

func (r *reader) value() element {
	r.skip()
	if r.pos == len(r.source) {
		r.unexpected()
	}
	switch c := r.source[r.pos]; {
	case c == '{':
		return r.object()
	case c == '[':
		return r.array()
	case c == '"':
		return r.text()
	case c == '-' || '0' <= c && c <= '9':
		return r.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(r.source[r.pos:], word) {
			e := element{kind: kindWord, offset: r.pos, text: word}
			r.pos += len(word)
			return e
		}
	}
	r.unexpected()
	return element{}
}

// open reads the bracket of an object or array.
func (r *reader) open(kind elementKind) element {
	if r.depth++; r.depth > maxNesting {
		r.fail(r.pos, "The rules are more than %d levels deep.", maxNesting)
	}
	e := element{kind: kind, offset: r.pos}
	r.pos++
	return e
}

func (r *reader) object() element {
	e := r.open(kindObject)
	defer func() { r.depth-- }()
	for !r.accept('}') {
		r.skip()
		if !strings.HasPrefix(r.source[r.pos:], `"`) {
			if len(e.members) > 0 && r.pos < len(r.source) {
				r.fail(r.pos, `Expected '"'.`)
			}
			r.unexpected()
		}
		key := r.text()
		if !r.accept(':') {
			r.fail(r.pos, "Expected ':'.")
		}
		e.members = append(e.members, elementMember{key.text, key.offset, r.value()})
		if !r.accept(',') {
			if !r.accept('}') {
				r.fail(r.pos, "Expected ',' or '}'.")
			}
			break
		}
	}
	return e
}

func (r *reader) array() element {
	e := r.open(kindArray)
	defer func() { r.depth-- }()
	for !r.accept(']') {
		e.items = append(e.items, r.value())
		if !r.accept(',') {
			if !r.accept(']') {
				r.fail(r.pos, "Expected ',' or ']'.")
			}
			break
		}
	}
	return e
}

// number reads a number only to name it: no rule has one.
func (r *reader) number() element {
	start := r.pos
	for r.pos < len(r.source) && strings.IndexByte("+-.0123456789eE", r.source[r.pos]) >= 0 {
		r.pos++
	}
	if _, err := strconv.ParseFloat(r.source[start:r.pos], 64); err != nil {
		r.fail(start, "Invalid number.")
	}
	return element{kind: kindNumber, offset: start, text: r.source[start:r.pos]}
}

// text reads a string. Line breaks and tabs may stand in it as they are.
func (r *reader) text() element {
	e := element{kind: kindString, offset: r.pos}
	var b strings.Builder
	for r.pos++; r.pos < len(r.source); {
		switch c := r.source[r.pos]; c {
		case '"':
			r.pos++
			e.text = b.String()
			return e
		case '\\':
			b.WriteRune(r.escape())
			e.shifts = append(e.shifts, shift{b.Len(), r.pos - e.offset - 1 - b.Len()})
		default:
			b.WriteByte(c)
			r.pos++
		}
	}
	r.fail(e.offset, "The string does not end.")
	return e
}

func (r *reader) escape() rune {
	start := r.pos
	c, size := utf8.DecodeRuneInString(r.source[r.pos+1:])
	r.pos += 1 + size
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'u':
		return r.unicodeEscape(start)
	}
	r.fail(start, "Invalid escape: '%s'", r.source[start:r.pos])
	return 0
}

func (r *reader) unicodeEscape(start int) rune {
	high := r.hex4(start)
	if !utf16.IsSurrogate(high) {
		return high
	}
	if strings.HasPrefix(r.source[r.pos:], `\u`) {
		r.pos += 2
		if c := utf16.DecodeRune(high, r.hex4(start)); c != utf8.RuneError {
			return c
		}
	}
	r.fail(start, "Invalid escape: half of a surrogate pair.")
	return 0
}

func (r *reader) hex4(start int) rune {
	if r.pos+4 <= len(r.source) {
		if v, err := strconv.ParseUint(r.source[r.pos:r.pos+4], 16, 16); err == nil {
			r.pos += 4
			return rune(v)
		}
	}
	r.fail(start, "Invalid escape: '%s'", r.source[start:min(r.pos+4, len(r.source))])
	return 0
}
