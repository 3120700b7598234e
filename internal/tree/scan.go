package tree

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// The ways in which text can be refused, for errors.Is on a DecodeError.
var (
	ErrSyntax   = errors.New("not valid JSON")
	ErrNoData   = errors.New("no data supplied")
	ErrTooLarge = errors.New("too large")
	ErrValue    = errors.New("not allowed here")
)

// A DecodeError says what is wrong with a text, and where.
type DecodeError struct {
	Line, Column int    // of the offending byte, both from 1
	Problem      string // for people
	cause        error  // one of the errors above, ErrInvalidKey or ErrTooDeep
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Problem)
}

// Unwrap returns the class of the error.
func (e *DecodeError) Unwrap() error { return e.cause }

// A scanner reads JSON tokens from a buffer that it refills from a reader.
type scanner struct {
	r   io.Reader // nil when buf holds the rest of the text
	err error     // that came from r together with what is in buf
	buf []byte    // buf[pos:] is not read yet
	pos int

	line      int   // of buf[pos], from 1
	lineStart int64 // offset in the text at which that line starts
	base      int64 // offset in the text of buf[0]

	length int64 // of the text, 0 if that is not known

	number []byte // scratch for a number that crosses the buffer's end

	escaped bool // some string had an escape

	// growing, if set, is told the capacity that an unfinished string has.
	growing func(capacity int) error
}

// A position is a place in the text.
type position struct{ line, column uint32 }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.column, q.column))
}

func (s *scanner) position() position {
	return position{uint32(s.line), uint32(s.offset() - s.lineStart + 1)}
}

// offset returns how much of the text was read.
func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

func (s *scanner) fail(cause error, format string, args ...any) error {
	return s.failAt(s.position(), cause, format, args...)
}

func (s *scanner) failAt(at position, cause error, format string, args ...any) error {
	return &DecodeError{int(at.line), int(at.column), fmt.Sprintf(format, args...), cause}
}

// more refills the buffer and reports whether there is anything to read. It
// may only be called when everything in the buffer has been read.
func (s *scanner) more() (bool, error) {
	if s.r == nil {
		return false, nil
	}
	s.base += int64(len(s.buf))
	if len(s.buf) == cap(s.buf) && cap(s.buf) < readBytes {
		s.buf = make([]byte, readBytes) // the text is not a small one
	}
	s.buf, s.pos = s.buf[:cap(s.buf)], 0
	for range 100 {
		n, err := 0, s.err
		if err == nil {
			n, err = s.r.Read(s.buf)
		}
		if n > 0 {
			s.buf, s.err = s.buf[:n], err
			return true, nil
		}
		if err == io.EOF {
			s.buf, s.r = s.buf[:0], nil
			return false, nil
		}
		if err != nil {
			s.buf = s.buf[:0]
			return false, err
		}
	}
	s.buf = s.buf[:0]
	return false, io.ErrNoProgress
}

// A text that fits a buffer of firstBytes needs no other; after that, readBytes
// are asked of the reader at once.
const (
	firstBytes = 1 << 10
	readBytes  = 32 << 10
)

// peek skips white space and returns the next byte without reading it, 0 at
// the end of the text. (A NUL in the text is an error wherever it is met.)
func (s *scanner) peek() (byte, error) {
	for {
		for s.pos < len(s.buf) {
			switch c := s.buf[s.pos]; c {
			case '\n':
				s.line++
				s.lineStart = s.base + int64(s.pos) + 1
			case ' ', '\t', '\r':
			case 0:
				return 0, s.fail(ErrSyntax, "unexpected NUL byte")
			default:
				return c, nil
			}
			s.pos++
		}
		if ok, err := s.more(); !ok {
			return 0, err
		}
	}
}

// unexpected is the error for the byte c where want was called for.
func (s *scanner) unexpected(c byte, want string) error {
	if c == 0 {
		return s.fail(ErrSyntax, "unexpected end of the data, expected %s", want)
	}
	if c >= utf8.RuneSelf {
		return s.fail(ErrSyntax, "unexpected byte %#x, expected %s", c, want)
	}
	return s.fail(ErrSyntax, "unexpected %q, expected %s", rune(c), want)
}

// expect skips white space and reads the byte want.
func (s *scanner) expect(want byte, name string) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != want {
		return s.unexpected(c, name)
	}
	s.pos++
	return nil
}

// word reads the rest of true, false or null.
func (s *scanner) word(want string) error {
	start := s.position()
	for i := range len(want) {
		if s.pos == len(s.buf) {
			if ok, err := s.more(); err != nil {
				return err
			} else if !ok {
				return s.unexpected(0, want)
			}
		}
		if s.buf[s.pos] != want[i] {
			return s.failAt(start, ErrSyntax, "expected %s", want)
		}
		s.pos++
	}
	return nil
}

// A stringByte is what a byte is inside of a JSON string.
type stringByte uint8

const (
	specialByte stringByte = 1 << iota // a quote, a backslash or a control character: never by itself
	wideByte                           // a part of a character beyond ASCII
)

var stringBytes = func() (table [256]stringByte) {
	for c := range table {
		switch {
		case c < 0x20, c == '"', c == '\\':
			table[c] = specialByte
		case c >= utf8.RuneSelf:
			table[c] = wideByte
		}
	}
	return table
}()

// appendString reads a string, whose opening quote is next, and appends its
// value to dst. It fails when the value grows longer than limit.
func (s *scanner) appendString(dst []byte, limit int, what string) ([]byte, error) {
	at := s.position()
	s.pos++ // the quote
	start := len(dst)
	var seen stringByte
	for {
		i := s.pos
		for i < len(s.buf) && stringBytes[s.buf[i]] != specialByte {
			seen |= stringBytes[s.buf[i]]
			i++
		}
		dst = append(growAhead(s, dst, i-s.pos), s.buf[s.pos:i]...)
		s.pos = i
		if len(dst)-start > limit {
			return dst, s.failAt(at, ErrTooLarge, "%s longer than %d bytes", what, limit)
		}
		if i == len(s.buf) {
			if s.growing != nil { // a string may take long to come to its end
				if err := s.growing(cap(dst)); err != nil {
					return dst, err
				}
			}
			if ok, err := s.more(); err != nil {
				return dst, err
			} else if !ok {
				return dst, s.fail(ErrSyntax, "unexpected end of the data inside a string")
			}
			continue
		}
		switch s.buf[i] {
		case '"':
			if seen != 0 && !utf8.Valid(dst[start:]) {
				return dst, s.failAt(at, ErrSyntax, "the string is not valid UTF-8")
			}
			s.pos++
			return dst, nil
		case '\\':
			var err error
			if dst, err = s.appendEscape(dst); err != nil {
				return dst, err
			}
		default:
			return dst, s.fail(ErrSyntax, "unescaped control character %#x in a string", s.buf[i])
		}
	}
}

// next reads one byte inside a string.
func (s *scanner) next() (byte, error) {
	if s.pos == len(s.buf) {
		if ok, err := s.more(); err != nil {
			return 0, err
		} else if !ok {
			return 0, s.fail(ErrSyntax, "unexpected end of the data inside a string")
		}
	}
	c := s.buf[s.pos]
	s.pos++
	return c, nil
}

func (s *scanner) appendEscape(dst []byte) ([]byte, error) {
	at := s.position()
	s.escaped = true
	s.pos++ // the backslash
	c, err := s.next()
	if err != nil {
		return dst, err
	}
	switch c {
	case '"', '\\', '/':
		return append(dst, c), nil
	case 'b':
		return append(dst, '\b'), nil
	case 'f':
		return append(dst, '\f'), nil
	case 'n':
		return append(dst, '\n'), nil
	case 'r':
		return append(dst, '\r'), nil
	case 't':
		return append(dst, '\t'), nil
	case 'u':
		r, err := s.unicodeEscape(at)
		return utf8.AppendRune(dst, r), err
	}
	return dst, s.failAt(at, ErrSyntax, "unknown escape in a string")
}

// unicodeEscape reads the digits behind \u, and the second half of a surrogate
// pair.
func (s *scanner) unicodeEscape(at position) (rune, error) {
	r, err := s.hex4(at)
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	for _, want := range []byte{'\\', 'u'} {
		c, err := s.next()
		if err != nil {
			return 0, err
		}
		if c != want {
			return 0, s.failAt(at, ErrSyntax, "half of a surrogate pair alone")
		}
	}
	low, err := s.hex4(at)
	if err != nil {
		return 0, err
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, s.failAt(at, ErrSyntax, "half of a surrogate pair alone")
	}
	return r, nil
}

func (s *scanner) hex4(at position) (rune, error) {
	var r rune
	for range 4 {
		c, err := s.next()
		if err != nil {
			return 0, err
		}
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, s.failAt(at, ErrSyntax, `\u needs four hexadecimal digits`)
		}
	}
	return r, nil
}
