package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/livetree/livetree/internal/query"
)

// IndexPrefix appends what the keys of the rows of an index begin with, at the
// parent with a data key.
func IndexPrefix(dst, parent []byte, number uint32) []byte {
	dst = append(append(dst, SpaceIndex), parent[1:]...)
	return binary.BigEndian.AppendUint32(append(dst, PriorityMark), number)
}

// IndexKey appends the key of the row of a child, whose component is a part of
// its own data key.
func IndexKey(dst, parent []byte, number uint32, value query.Value, component []byte) []byte {
	dst = query.AppendIndexValue(IndexPrefix(dst, parent, number), value)
	return append(dst, component...)
}

// IndexRegion returns the range of all index rows at and below a data key.
func IndexRegion(key []byte) (from, to []byte) {
	from = append([]byte{SpaceIndex}, key[1:]...)
	return from, SubtreeEnd(nil, from)
}

// IndexParent returns the part of an index row's key that names the parent.
func IndexParent(key []byte) []byte {
	for end := RootBytes; ; {
		n := ComponentLen(key[end:])
		if n < 0 {
			return key[:end:end]
		}
		end += n
	}
}

// IsKeepingKey reports whether a row says that a node keeps the index by priority.
func IsKeepingKey(key []byte) bool {
	prefix := IndexPrefix(nil, IndexParent(key), PriorityIndex)
	return bytes.Equal(key, prefix)
}

// IndexNumber returns the number of the index that a row belongs to.
func IndexNumber(key []byte) (uint32, error) {
	rest := key[len(IndexParent(key)):]
	if len(rest) < 5 || rest[0] != PriorityMark {
		return 0, fmt.Errorf("no index row: %x", key)
	}
	return binary.BigEndian.Uint32(rest[1:]), nil
}
