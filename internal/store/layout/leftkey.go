package layout

import "encoding/binary"

// The rows of what connections have left to be written lie after the settings of their
// database: no name of a setting begins with leftMark. Each connection has a row for every
// write, by its number from 1 on, and before them one for its identity, with the number 0.
const (
	leftMark byte = SubtreeMark
	// ConnectionBytes is how long the name of a connection is.
	ConnectionBytes = 20
	// LeftIdentity is the number of the row with the identity.
	LeftIdentity = 0
)

// LeftKey returns the key of a row of what a connection has left. Its name must have
// ConnectionBytes bytes.
func LeftKey(id ID, connection string, number uint64) []byte {
	key := append(AppendSpace(nil, SpaceSettings, id), leftMark)
	return binary.BigEndian.AppendUint64(append(key, connection...), number)
}

// LeftRange returns the range of all rows that connections have left in a database.
func LeftRange(id ID) (from, to []byte) {
	to, _ = HooksRange(id)
	return append(AppendSpace(nil, SpaceSettings, id), leftMark), to
}

// CutLeftKey takes the key of such a row apart; ok is false if it is not one.
func CutLeftKey(key []byte) (connection string, number uint64, ok bool) {
	const before = RootBytes + 1
	if len(key) != before+ConnectionBytes+8 || key[0] != SpaceSettings || key[RootBytes] != leftMark {
		return "", 0, false
	}
	return string(key[before : before+ConnectionBytes]), binary.BigEndian.Uint64(key[before+ConnectionBytes:]), true
}

// LeftNumber returns the number in the key of such a row, LeftIdentity if it is not one.
func LeftNumber(key []byte) uint64 {
	_, number, _ := CutLeftKey(key)
	return number
}

// IsLeftKey reports whether a key is in the range of what connections have left, or of the rows of
// hooks, which lie after it: neither goes with its database when that is transferred.
func IsLeftKey(key []byte) bool {
	return len(key) > RootBytes && key[0] == SpaceSettings && key[RootBytes] == leftMark
}
