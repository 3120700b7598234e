package layout

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// PriorityIndex is the number of the index by priority, which is in force
// everywhere.
const PriorityIndex = 0

// ByPriority returns the index by priority.
func ByPriority() Index { return Index{PriorityIndex, query.ByPriority()} }

// A Keeping says whether a split node keeps the index by priority, and how far
// the index is built.
type Keeping struct {
	Kept bool
	// Begun is the position of the commit that began the index, 0 when all rows are
	// there.
	Begun uint64
	// Cursor is where the next step begins: the rest of a data key after that of the
	// node. Before it every child has its row. After it those have one that have a
	// priority, or had one, or were added since the index was begun.
	Cursor []byte
}

// IsBuilding reports whether rows may be missing.
func (k Keeping) IsBuilding() bool { return k.Begun > 0 }

// AppendTo appends the value of the row that says so.
func (k Keeping) AppendTo(dst []byte) []byte {
	if !k.IsBuilding() {
		return dst
	}
	return append(binary.BigEndian.AppendUint64(dst, k.Begun), k.Cursor...)
}

// DecodeKeeping reads what AppendTo wrote.
func DecodeKeeping(row []byte) (Keeping, error) {
	k := Keeping{Kept: true}
	if len(row) == 0 {
		return k, nil
	}
	if len(row) < 8 || binary.BigEndian.Uint64(row) == 0 {
		return Keeping{}, errors.New("not the state of an index by priority")
	}
	k.Begun, k.Cursor = binary.BigEndian.Uint64(row), bytes.Clone(row[8:])
	return k, nil
}

// Covers reports whether a child has its row even if it never had a priority.
func (k Keeping) Covers(component []byte) bool {
	return !k.IsBuilding() || bytes.Compare(component, k.Cursor) < 0
}

// unbuiltMark follows the number of the database in the keys of the list of nodes
// whose index by priority is to be built. No index row has it there.
const unbuiltMark = 0x00

// UnbuiltKey returns the key of a node in that list. The list is in the order of
// commits, so that it can be worked off from its beginning without passing what was
// deleted there.
func UnbuiltKey(id ID, position uint64, parent []byte) []byte {
	key := binary.BigEndian.AppendUint64(append(AppendSpace(nil, SpaceIndex, id), unbuiltMark), position)
	return append(key, parent[len(DataPrefix(id)):]...)
}

// UnbuiltEnd returns the end of the list, exclusive.
func UnbuiltEnd(id ID) []byte { return append(AppendSpace(nil, SpaceIndex, id), unbuiltMark+1) }

// IsUnbuiltKey reports whether a key is in that list, of whatever database.
func IsUnbuiltKey(key []byte) bool {
	return len(key) > RootBytes && key[0] == SpaceIndex && key[RootBytes] == unbuiltMark
}

// CutUnbuiltKey takes the key of a node in the list apart.
func CutUnbuiltKey(id ID, key []byte) (position uint64, p tree.Path, err error) {
	rest, ok := bytes.CutPrefix(key, append(AppendSpace(nil, SpaceIndex, id), unbuiltMark))
	if !ok || len(rest) < 8 {
		return 0, p, ErrMalformedKey
	}
	if p, err = DecodePath(rest[8:]); err != nil {
		return 0, p, err
	}
	return binary.BigEndian.Uint64(rest), p, nil
}
