package layout

import (
	"bytes"

	"github.com/livetree/livetree/internal/tree"
)

// This file looks at the chunk of a leaf without its text. That of a string is up to
// tree.MaxStringBytes long, escapes not counted; every other chunk is small.

// leafText stands for the text of a leaf that is left out.
const leafText = "true"

// CutLeaf cuts the chunk of a leaf into the leaf's own text and what is before and
// after it. It reports false for other chunks.
func CutLeaf(row []byte) (head, text, tail []byte, ok bool) {
	switch {
	case isLeafRow(row):
		// In a string the quotes of the mark would be escaped.
		end := bytes.LastIndex(row, []byte(`,".priority":`))
		if end <= len(leafPrefix) {
			return nil, nil, nil, false
		}
		return row[:len(leafPrefix)], row[len(leafPrefix):end], row[end:], true
	case len(row) > 1 && row[0] == 0 && row[1] != '{' && row[1] != '[':
		return row[:1], row[1:], nil, true
	}
	return nil, nil, nil, false
}

// DecodeWithoutLeaf is DecodeChunk, but the node of a leaf is another leaf with the
// priority of that one.
func DecodeWithoutLeaf(row []byte) (tree.Node, error) {
	head, _, tail, ok := CutLeaf(row)
	switch {
	case !ok:
		return DecodeChunk(row)
	case len(tail) == 0:
		return tree.LeafNode(tree.BooleanLeaf(true)), nil
	}
	return DecodeChunk(bytes.Join([][]byte{head, tail}, []byte(leafText)))
}

// PresenceIn is SummarizeIn without the value.
func PresenceIn(row []byte, rel tree.Path) (Summary, error) {
	if _, _, _, ok := CutLeaf(row); ok {
		if !rel.IsRoot() {
			return Summary{}, nil
		}
		n, err := DecodeWithoutLeaf(row)
		return Summary{Exists: true, Priority: n.Priority()}, err
	}
	if len(row) > 1 && row[0] == 0 {
		if text, ok := FindJSON(row[1:], rel); ok {
			return Summary{Exists: string(text) != "null"}, nil
		}
	}
	s, err := SummarizeIn(row, rel)
	return Summary{Exists: s.Exists, Priority: s.Priority}, err
}
