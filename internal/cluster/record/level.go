package record

import "encoding/binary"

// A level says how new a server must be to apply a record. Each kind of record has one ([Kind.Needs]), and each record carries that of
// its kind. A cluster has one, too: it is raised once all of its nodes know the next, and only then records that need it are written. So
// nodes of this version and of the one before it can run together, and a node may go back to the version before until the level is raised.
//
// To add a kind: give it the next level in Needs, and raise newest in level_now.go and level_next.go.
const (
	// FirstLevel is that of a cluster that was just founded.
	FirstLevel uint16 = 1
	// Known is the newest level that this binary can apply.
	Known = newest
)

// Needs returns the level of records of a kind.
func (k Kind) Needs() uint16 {
	if k == Mark {
		return 2
	}
	return 1
}

// LevelOf returns the level of an encoded record, which may be one that this binary cannot decode: in every version of the format it is in the same place. It
// returns 0 for what is too short.
func LevelOf(encoded []byte) uint16 {
	if len(encoded) < 4 {
		return 0
	}
	return binary.BigEndian.Uint16(encoded[2:])
}
