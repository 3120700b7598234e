package store

import (
	"bytes"

	"github.com/livetree/livetree/internal/tree"
)

// findJSON returns the text of the node at p in a chunk without flags, which
// spares decoding the rest of it; null if there is none. It reports false when
// the text is not what a chunk holds.
func findJSON(text []byte, p tree.Path) ([]byte, bool) {
	var buf [64]byte
	for !p.IsRoot() {
		var key string
		key, p = p.Cut()
		value, ok := memberJSON(text, tree.AppendString(buf[:0], key))
		if !ok || value == nil {
			return []byte("null"), ok
		}
		text = value
	}
	return text, true
}

// memberJSON returns the value of a key, in quotes, in an object; nil if there
// is none, or if the text is that of a leaf.
func memberJSON(text, key []byte) (value []byte, ok bool) {
	if text[0] != '{' {
		return nil, true
	}
	for i := 1; ; {
		colon := i + lengthJSON(text[i:])
		if colon == i || colon == len(text) || text[colon] != ':' {
			return nil, false
		}
		value = text[colon+1:]
		end := lengthJSON(value)
		if end == 0 || end == len(value) {
			return nil, false
		}
		switch {
		case bytes.Equal(text[i:colon], key):
			return value[:end], true
		case value[end] == '}':
			return nil, true
		}
		i = colon + 1 + end + 1 // behind the comma
	}
}

// lengthJSON returns the length of the value, or of the key, with which a text
// begins; 0 if it does not begin with one.
func lengthJSON(text []byte) int {
	switch {
	case len(text) == 0:
		return 0
	case text[0] == '"':
		return stringLength(text)
	case text[0] != '{':
		return max(0, bytes.IndexAny(text, ",}"))
	}
	depth := 0
	for i := 0; i < len(text); {
		switch text[i] {
		case '"':
			n := stringLength(text[i:])
			if n == 0 {
				return 0
			}
			i += n
			continue
		case '{':
			depth++
		case '}':
			depth--
		}
		i++
		if depth == 0 {
			return i
		}
	}
	return 0
}

// stringLength returns the length of the string with which a text begins, quotes
// included; 0 if it has no end.
func stringLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}
