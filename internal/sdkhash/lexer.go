package sdkhash

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A lexer cuts JSON text, as a store prints it, into tokens. The text comes in pieces
// that may end anywhere.
type lexer struct {
	state lexerState
	token []byte // what came of a token that is not complete, or had escapes
	// escape is what came of an escape, behind the backslash.
	escape []byte
}

type lexerState uint8

const (
	betweenTokens lexerState = iota
	inString
	inEscape
	inWord
)

// A token is one of the bytes {}:, or a string, without its quotes and escapes, or a
// word, which is a number, true, false or null. Its text holds until the next token.
type token struct {
	kind byte // one of {}:, or stringToken, wordToken, or 0 for none
	text []byte
}

const (
	stringToken = '"'
	wordToken   = 'w'
)

// next returns the next token in p and what is behind it. There is none if p ends
// before the token does; that is then known when the next piece comes.
func (l *lexer) next(p []byte) (token, []byte, error) {
	switch l.state {
	case inWord:
		return l.word(p)
	case inString, inEscape:
		return l.string(p)
	}
	if len(p) == 0 {
		return token{}, nil, nil
	}
	l.token = l.token[:0]
	switch c := p[0]; {
	case c == '{' || c == '}' || c == ':' || c == ',':
		return token{kind: c}, p[1:], nil
	case c == '"':
		l.state = inString
		return l.string(p[1:])
	case wordBytes[c]:
		l.state = inWord
		return l.word(p)
	default:
		return token{}, nil, fmt.Errorf("%w: unexpected %q", errText, c)
	}
}

// wordBytes are the bytes of numbers, true, false and null.
var wordBytes = func() (table [256]bool) {
	for _, c := range []byte("0123456789+-.eEtrufalsn") {
		table[c] = true
	}
	return table
}()

// maxWordBytes is more than the longest word that is printed.
const maxWordBytes = 512

func (l *lexer) word(p []byte) (token, []byte, error) {
	i := 0
	for i < len(p) && wordBytes[p[i]] {
		i++
	}
	if len(l.token)+i > maxWordBytes {
		return token{}, nil, fmt.Errorf("%w: a word of more than %d bytes", errText, maxWordBytes)
	}
	if i == len(p) {
		l.token = append(l.token, p...)
		return token{}, nil, nil
	}
	l.state = betweenTokens
	return token{wordToken, l.joined(p[:i])}, p[i:], nil
}

// joined returns a token whose last bytes are rest.
func (l *lexer) joined(rest []byte) []byte {
	if len(l.token) == 0 {
		return rest
	}
	l.token = append(l.token, rest...)
	return l.token
}

// string reads on behind the opening quote.
func (l *lexer) string(p []byte) (token, []byte, error) {
	for {
		if l.state == inEscape {
			var err error
			if p, err = l.unescape(p); err != nil || l.state == inEscape {
				return token{}, nil, err
			}
		}
		i := 0
		for i < len(p) && p[i] != '"' && p[i] != '\\' {
			i++
		}
		switch {
		case i == len(p):
			l.token = append(l.token, p...)
			return token{}, nil, nil
		case p[i] == '"':
			l.state = betweenTokens
			return token{stringToken, l.joined(p[:i])}, p[i+1:], nil
		}
		l.token = append(l.token, p[:i]...)
		l.state, l.escape = inEscape, l.escape[:0]
		p = p[i+1:]
	}
}

// unescape reads on behind the backslash of an escape. It leaves the state as it is
// if p ends before the escape does.
func (l *lexer) unescape(p []byte) ([]byte, error) {
	for i, c := range p {
		l.escape = append(l.escape, c)
		if l.escape[0] == 'u' && len(l.escape) < len("u0000") {
			continue
		}
		r, ok := escaped(l.escape)
		if !ok {
			return nil, fmt.Errorf("%w: the escape \\%s", errText, l.escape)
		}
		l.token = utf8.AppendRune(l.token, r)
		l.state = inString
		return p[i+1:], nil
	}
	return nil, nil
}

// escaped returns the character that an escape stands for. Nothing is printed in the
// surrogates that JSON has for characters beyond U+FFFF.
func escaped(escape []byte) (rune, bool) {
	switch escape[0] {
	case '"', '\\', '/':
		return rune(escape[0]), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'u':
		code, err := strconv.ParseUint(string(escape[1:]), 16, 16)
		return rune(code), err == nil && utf8.ValidRune(rune(code))
	}
	return 0, false
}
