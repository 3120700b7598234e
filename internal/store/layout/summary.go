package layout

import (
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// A Summary is what an index needs to know of a node.
type Summary struct {
	Exists   bool
	Value    query.Value // its own
	Priority tree.Leaf
}

// Summarize returns what an index needs to know of a node in memory.
func Summarize(n tree.Node) Summary {
	return Summary{!n.IsNull(), query.ByValue().Value(n), n.Priority()}
}

// SummarizeIn summarizes the node at rel in a chunk. It decodes no more than that if
// the chunk has no flags.
func SummarizeIn(row []byte, rel tree.Path) (Summary, error) {
	if len(row) > 1 && row[0] == 0 {
		text, ok := FindJSON(row[1:], rel)
		switch {
		case ok && text[0] == '{':
			return Summary{Exists: true, Value: query.ObjectValue()}, nil
		case ok:
			leaf, err := leafJSON(text)
			return Summary{Exists: !leaf.IsNull(), Value: query.LeafValue(leaf)}, err
		}
	}
	if isLeafRow(row) && !rel.IsRoot() {
		return Summary{}, nil
	}
	n, err := DecodeChunk(row)
	return Summarize(n.At(rel)), err
}
