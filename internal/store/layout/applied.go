package layout

import (
	"encoding/binary"
	"fmt"
)

// An Applied says up to where a store has the records of a shard: see CommitRecord of package
// store.
type Applied struct {
	Shard    byte
	Number   uint64 // of the newest record
	Revision uint64 // that it has in the replicated log
	Tenure   uint64 // of who made it
	Digest   [16]byte
}

const appliedBytes = 8 + 8 + 8 + 16

// AppliedKey returns the key of the row of a shard.
func AppliedKey(shard byte) []byte { return append(metaKey("applied"), shard) }

// AppendTo appends the value of the row.
func (a Applied) AppendTo(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, a.Number)
	dst = binary.BigEndian.AppendUint64(dst, a.Revision)
	dst = binary.BigEndian.AppendUint64(dst, a.Tenure)
	return append(dst, a.Digest[:]...)
}

// DecodeApplied reads what AppendTo wrote for a shard.
func DecodeApplied(shard byte, row []byte) (Applied, error) {
	a := Applied{Shard: shard}
	if len(row) != appliedBytes {
		return a, fmt.Errorf("the row of what was applied has %d bytes, not %d", len(row), appliedBytes)
	}
	a.Number, a.Revision, a.Tenure = binary.BigEndian.Uint64(row), binary.BigEndian.Uint64(row[8:]), binary.BigEndian.Uint64(row[16:])
	copy(a.Digest[:], row[24:])
	return a, nil
}
