package layout

import (
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/tree"
)

// The first byte of a chunk says what its text, the rest, leaves open.
const (
	// rowPriorities: nodes in it have priorities, and the text is in Export form.
	rowPriorities byte = 1 << iota
	// rowArrays: nodes in it print as arrays in Plain form.
	rowArrays

	rowKnown = rowPriorities | rowArrays
)

// MaxChunkBytes is the largest chunk limit that is allowed.
const MaxChunkBytes = 4 << 10

// AppendChunk appends the chunk of n to dst, unless its text takes more than
// limit bytes. A leaf is always appended. Where in the result the timestamps of n
// begin is put into times, unless that is nil.
func AppendChunk(dst []byte, n tree.Node, limit int, times *[]int) ([]byte, bool) {
	if !n.IsObject() {
		limit = 64 * tree.MaxStringBytes // escapes and a priority included
	}
	start := len(dst)
	out, traits, fits := tree.AppendNoting(append(dst, 0), n, tree.Plain, limit, emptied(times))
	if !fits {
		return dst, false
	}
	if traits.Priorities {
		out, _, fits = tree.AppendNoting(append(dst, 0), n, tree.Export, limit, emptied(times))
		if !fits {
			return dst, false
		}
		out[start] |= rowPriorities
	}
	if traits.Arrays {
		out[start] |= rowArrays
	}
	return out, true
}

// emptied returns times, which may be nil, with nothing in it.
func emptied(times *[]int) *[]int {
	if times != nil {
		*times = (*times)[:0]
	}
	return times
}

// DecodeChunk returns the node of a chunk.
func DecodeChunk(row []byte) (tree.Node, error) {
	if err := CheckChunk(row); err != nil {
		return tree.Node{}, err
	}
	n, err := tree.DecodeBytes(row[1:], tree.DecodeOptions{})
	if err != nil {
		return tree.Node{}, err
	}
	if n.IsNull() || n.HasPlaceholders() {
		return tree.Node{}, errors.New("a chunk without data")
	}
	return n, nil
}

// SpellsKeys reports whether the text of a chunk has every key in it. That of an array has not.
func SpellsKeys(row []byte) bool {
	return len(row) > 0 && row[0]&(rowArrays|rowPriorities) != rowArrays
}

func CheckChunk(row []byte) error {
	if len(row) < 2 || row[0]&^rowKnown != 0 {
		return fmt.Errorf("no chunk: %.8x", row)
	}
	return nil
}

// AppendChunkJSON appends the text of a chunk. It is a copy unless the chunk
// holds priorities or arrays that the form shows in another way.
func AppendChunkJSON(dst, row []byte, form tree.Form) ([]byte, error) {
	if err := CheckChunk(row); err != nil {
		return dst, err
	}
	stored := tree.Plain
	if row[0]&rowPriorities != 0 {
		stored = tree.Export
	}
	if form == stored || row[0] == 0 {
		return append(dst, row[1:]...), nil
	}
	n, err := DecodeChunk(row)
	if err != nil {
		return dst, err
	}
	return tree.AppendJSON(dst, n, form), nil
}
