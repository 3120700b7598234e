package layout

import (
	"bytes"

	"github.com/livetree/livetree/internal/tree"
)

// FindJSON returns the text of the node at p in a chunk without flags, which
// spares decoding the rest of it; null if there is none. It reports false when
// the text is not what a chunk holds.
func FindJSON(text []byte, p tree.Path) ([]byte, bool) {
	from, to, ok := LocateJSON(text, p)
	if to == 0 {
		return []byte("null"), ok
	}
	return text[from:to], ok
}

// LocateJSON returns where the text is that FindJSON returns; the end is 0 if there
// is none.
func LocateJSON(text []byte, p tree.Path) (from, to int, ok bool) {
	var buf [64]byte
	to = len(text)
	for !p.IsRoot() {
		var key string
		key, p = p.Cut()
		start, end, ok := memberJSON(text[from:to], tree.AppendString(buf[:0], key))
		if !ok || end == 0 {
			return 0, 0, ok
		}
		from, to = from+start, from+end
	}
	return from, to, true
}

// memberJSON returns where the value of a key, in quotes, is in an object; the
// end is 0 if there is none, or if the text is that of a leaf.
func memberJSON(text, key []byte) (from, to int, ok bool) {
	if text[0] != '{' {
		return 0, 0, true
	}
	for i := 1; ; {
		colon := i + lengthJSON(text[i:])
		if colon == i || colon == len(text) || text[colon] != ':' {
			return 0, 0, false
		}
		value := text[colon+1:]
		end := lengthJSON(value)
		if end == 0 || end == len(value) {
			return 0, 0, false
		}
		switch {
		case bytes.Equal(text[i:colon], key):
			return colon + 1, colon + 1 + end, true
		case value[end] == '}':
			return 0, 0, true
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
		for i, c := range text { // a few bytes: a set of two would take longer to make
			if c == ',' || c == '}' {
				return i
			}
		}
		return 0
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
