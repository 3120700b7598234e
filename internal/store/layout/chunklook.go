package layout

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/tree"
)

// LookIn returns the leaf and the priority at a path in a chunk.
func LookIn(row []byte, p tree.Path) (leaf, priority tree.Leaf, err error) {
	if len(row) > 1 && row[0] == 0 {
		if text, ok := FindJSON(row[1:], p); ok {
			leaf, err = leafJSON(text)
			return leaf, tree.Leaf{}, err
		}
	}
	n, err := DecodeChunk(row)
	n = n.At(p)
	return n.Leaf(), n.Priority(), err
}

// leafPrefix is what the chunk of a leaf with a priority begins with. No other chunk
// does: no key begins with a dot.
const leafPrefix = "\x01{\".value\":"

// LookNumberIn is LookIn, but the string of a chunk that is one counts as null.
func LookNumberIn(row []byte, p tree.Path) (leaf, priority tree.Leaf, err error) {
	switch {
	case len(row) > 1 && row[0] == 0 && row[1] == '"':
		return leaf, priority, nil
	case isLeafRow(row) && row[len(leafPrefix)] == '"':
		if !p.IsRoot() {
			return leaf, priority, nil
		}
		const mark = `,".priority":` // in a string the quotes would be escaped
		at := bytes.LastIndex(row, []byte(mark))
		if from := at + len(mark); at > 0 && from < len(row)-1 {
			priority, err = leafJSON(row[from : len(row)-1])
			return leaf, priority, err
		}
	}
	return LookIn(row, p)
}

// KindIn returns the kind of the leaf at a path in a chunk. It does not look at the
// text of a string: that may be long.
func KindIn(row []byte, p tree.Path) (tree.Kind, error) {
	var text []byte
	switch {
	case isLeafRow(row):
		if text = row[len(leafPrefix):]; text[0] != '"' {
			text = text[:lengthJSON(text)]
		}
		if !p.IsRoot() {
			return tree.Null, nil
		}
	case len(row) > 1 && row[0] == 0:
		if found, ok := FindJSON(row[1:], p); ok {
			text = found
		}
	}
	switch {
	case len(text) == 0:
		n, err := DecodeChunk(row)
		return n.At(p).Leaf().Kind(), err
	case text[0] == '"':
		return tree.String, nil
	}
	leaf, err := leafJSON(text)
	return leaf.Kind(), err
}

// isLeafRow reports whether a chunk is that of a leaf with a priority.
func isLeafRow(row []byte) bool {
	return len(row) > len(leafPrefix) && string(row[:len(leafPrefix)]) == leafPrefix
}

// ExistsIn reports whether there is data at a path in a chunk.
func ExistsIn(row []byte, p tree.Path) (bool, error) {
	if p.IsRoot() {
		return true, CheckChunk(row)
	}
	if isLeafRow(row) {
		return false, nil
	}
	if len(row) > 1 && row[0] == 0 {
		if text, ok := FindJSON(row[1:], p); ok {
			return string(text) != "null", nil
		}
	}
	n, err := DecodeChunk(row)
	return !n.At(p).IsNull(), err
}

// leafJSON returns the leaf that a text is; null for an object. The usual ones do
// not need the decoder and its memory.
func leafJSON(text []byte) (tree.Leaf, error) {
	switch {
	case text[0] == '{', string(text) == "null":
		return tree.Leaf{}, nil
	case string(text) == "true", string(text) == "false":
		return tree.BooleanLeaf(text[0] == 't'), nil
	case text[0] == '"' && stringLength(text) == len(text) && bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text):
		return tree.StringLeaf(string(text[1 : len(text)-1])), nil
	case text[0] >= '1' && text[0] <= '9' && len(text) <= 18:
		if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return tree.IntegerLeaf(i), nil
		}
	}
	n, err := tree.DecodeBytes(text, tree.DecodeOptions{})
	return n.Leaf(), err
}
