package store

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/tree"
)

// This file looks at one node in a chunk, as rules do again and again. In a chunk
// without flags only the text of that node is looked at.

// lookRow returns the leaf and the priority at a path in a chunk.
func lookRow(row []byte, p tree.Path) (leaf, priority tree.Leaf, err error) {
	if len(row) > 1 && row[0] == 0 {
		if text, ok := findJSON(row[1:], p); ok {
			leaf, err = leafJSON(text)
			return leaf, tree.Leaf{}, err
		}
	}
	n, err := decodeRow(row)
	n = n.At(p)
	return n.Leaf(), n.Priority(), err
}

// existsRow reports whether there is data at a path in a chunk.
func existsRow(row []byte, p tree.Path) (bool, error) {
	if len(row) > 1 && row[0] == 0 {
		if text, ok := findJSON(row[1:], p); ok {
			return string(text) != "null", nil
		}
	}
	n, err := decodeRow(row)
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
