package rowcache

import "encoding/binary"

// An entry is a row that is remembered, as it lies in a segment: a head, the key, the row, and what
// is left over.
//
//	 0  since    the number of the first group that it holds from
//	 8  deletes  the number of range deletes that it has survived
//	16  size     of all of it
//	20  rowLen   of the row; absent if there is none
//	24  keyLen
//	26  uses     since it came into its queue, at most maxUses
type entry []byte

const (
	headBytes  = 32
	entryAlign = 8
	absent     = 1<<32 - 1
	maxUses    = 3
)

// entryBytes is how much an entry takes.
func entryBytes(key, row []byte) int {
	return (headBytes + len(key) + len(row) + entryAlign - 1) &^ (entryAlign - 1)
}

func (e entry) since() uint64       { return binary.LittleEndian.Uint64(e) }
func (e entry) deletes() uint64     { return binary.LittleEndian.Uint64(e[8:]) }
func (e entry) setDeletes(n uint64) { binary.LittleEndian.PutUint64(e[8:], n) }
func (e entry) size() int           { return int(binary.LittleEndian.Uint32(e[16:])) }
func (e entry) isAbsent() bool      { return binary.LittleEndian.Uint32(e[20:]) == absent }
func (e entry) uses() int           { return int(e[26]) }
func (e entry) setUses(n int)       { e[26] = byte(n) }
func (e entry) use()                { e[26] = min(e[26]+1, maxUses) }

func (e entry) key() []byte {
	return e[headBytes : headBytes+int(binary.LittleEndian.Uint16(e[24:]))]
}

func (e entry) row() []byte {
	from := headBytes + int(binary.LittleEndian.Uint16(e[24:]))
	return e[from : from+int(binary.LittleEndian.Uint32(e[20:]))]
}

// fits reports whether the entry has room for another row.
func (e entry) fits(row []byte) bool { return entryBytes(e.key(), row) <= e.size() }

// set makes the entry hold a row, nil for none, from a group on.
func (e entry) set(row []byte, since, deletes uint64) {
	binary.LittleEndian.PutUint64(e, since)
	e.setDeletes(deletes)
	n := uint32(len(row))
	if row == nil {
		n = absent
	}
	binary.LittleEndian.PutUint32(e[20:], n)
	copy(e[headBytes+len(e.key()):], row)
}

// make makes a new entry of memory.
func (e entry) make(key, row []byte, since, deletes uint64) {
	binary.LittleEndian.PutUint32(e[16:], uint32(len(e)))
	binary.LittleEndian.PutUint16(e[24:], uint16(len(key)))
	e.setUses(0)
	copy(e[headBytes:], key)
	e.set(row, since, deletes)
}
