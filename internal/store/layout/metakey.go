package layout

import (
	"bytes"
	"encoding/binary"
)

// The rows of the metadata space. Names of databases come after the others, so
// that listing them never steps over the group row, which every commit writes.
const (
	MetaSettings byte = 0x00
	MetaNames    byte = 0x01
	MetaDropped  byte = 0x02
	MetaHolds    byte = 0x03
	metaNotes    byte = 0x04
	metaEnd      byte = 0x05
)

func metaKey(name string) []byte { return append([]byte{SpaceMeta, MetaSettings}, name...) }

// NameKey returns the key of the row that holds the number of a database.
func NameKey(name string) []byte { return append([]byte{SpaceMeta, MetaNames}, name...) }

// NameRange returns the range of the rows with the numbers of databases.
func NameRange() (from, to []byte) { return NameKey(""), []byte{SpaceMeta, MetaNames + 1} }

// MetaEnd returns the end of the metadata, exclusive.
func MetaEnd() []byte { return []byte{SpaceMeta, metaEnd} }

// DroppedKey returns the key of the row that holds the name of a database which was
// dropped while somebody still had to read its log.
func DroppedKey(id ID) []byte {
	return binary.BigEndian.AppendUint32([]byte{SpaceMeta, MetaDropped}, uint32(id))
}

// DroppedRange returns the range of those rows.
func DroppedRange() (from, to []byte) {
	return []byte{SpaceMeta, MetaDropped}, []byte{SpaceMeta, MetaDropped + 1}
}

// HoldKey returns the key of the row that says how far the holder with a name, which has
// no zero byte, is with the log of a database.
func HoldKey(name string, id ID) []byte {
	key := append([]byte{SpaceMeta, MetaHolds}, name...)
	return binary.BigEndian.AppendUint32(append(key, 0), uint32(id))
}

// HoldName returns the name of the holder from the key of a row of it.
func HoldName(key []byte) string {
	name, _, _ := bytes.Cut(key[2:], []byte{0})
	return string(name)
}

// HoldRange returns the range of the rows of a holder.
func HoldRange(name string) (from, to []byte) {
	from = append([]byte{SpaceMeta, MetaHolds}, name...)
	return append(from[:len(from):len(from)], 0), append(from[:len(from):len(from)], 1)
}

// HoldsRange returns the range of the rows of all holders.
func HoldsRange() (from, to []byte) {
	return []byte{SpaceMeta, MetaHolds}, []byte{SpaceMeta, MetaHolds + 1}
}

// NoteKey returns the key of a note: a row that all nodes of a cluster have alike, and that is of no database.
func NoteKey(name string) []byte { return append([]byte{SpaceMeta, metaNotes}, name...) }

// displaced begins the names of notes that a node has by itself.
const displaced = "displaced/"

// DisplacedKey returns the key of a note with the name that a database had, which is that of a later one by now: this node has yet to learn
// that it was dropped.
func DisplacedKey(id ID) []byte { return binary.BigEndian.AppendUint32(NoteKey(displaced), uint32(id)) }

// DisplacedRange returns the range of those notes.
func DisplacedRange() (from, to []byte) {
	return NoteKey(displaced), append(NoteKey(displaced), 0xff, 0xff, 0xff, 0xff, 0xff)
}

// CutNote returns the name of a note from its key.
func CutNote(key []byte) string { return string(key[2:]) }

// CutNumber returns the number of a database with which a key ends.
func CutNumber(key []byte) ID { return ID(binary.BigEndian.Uint32(key[len(key)-4:])) }

// The keys of what a store knows of itself.
var (
	FormatKey = metaKey("format")
	EpochKey  = metaKey("epoch")
	ETagKey   = metaKey("etag-key")
	GroupKey  = metaKey("group")
	NextIDKey = metaKey("next-id")
	LevelKey  = metaKey("level")
)

// PebbleDir is the directory in a data directory in which the rows are.
const PebbleDir = "store"

// Versions of the format.
const (
	// FormatVersion is the version of internal/store/FORMAT.md, the newest that is read.
	FormatVersion = 5
	// FormatFirst is the version of a new directory. It rises when something is
	// stored that older versions would misread.
	FormatFirst = 1
	// FormatUnbuilt is the first version with indexes by priority that are not whole.
	FormatUnbuilt = 2
	// FormatAuthors is the first version whose log says who made a change. The first
	// commit that writes such a row raises a store to it.
	FormatAuthors = 3
	// FormatDue is the first version with rows of what expires. The first commit that
	// writes such a row raises a store to it.
	FormatDue = 4
	// FormatApplied is the first version with rows of what was applied: those of a node of a
	// cluster.
	FormatApplied = 5
)

// GroupRow returns the value of the group row: the newest group, and the latest time
// of a commit in it or before it.
func GroupRow(group uint64, millis int64) (row [16]byte) {
	binary.BigEndian.PutUint64(row[:8], group)
	binary.BigEndian.PutUint64(row[8:], uint64(millis))
	return row
}

// Settings are what a database keeps beside its tree: its rules, its secrets.
// They change in the same order of commits as the tree.
type Settings map[string][]byte

// SettingKey returns the key of a setting of a database.
func SettingKey(id ID, name string) []byte {
	return append(AppendSpace(nil, SpaceSettings, id), name...)
}
