package layout

import "encoding/binary"

// The rows of the metadata space. Names of databases come after the others, so
// that listing them never steps over the group row, which every commit writes.
const (
	MetaSettings byte = 0x00
	MetaNames    byte = 0x01
)

func metaKey(name string) []byte { return append([]byte{SpaceMeta, MetaSettings}, name...) }

// NameKey returns the key of the row that holds the number of a database.
func NameKey(name string) []byte { return append([]byte{SpaceMeta, MetaNames}, name...) }

// NameRange returns the range of the rows with the numbers of databases.
func NameRange() (from, to []byte) { return NameKey(""), []byte{SpaceMeta, MetaNames + 1} }

// The keys of what a store knows of itself.
var (
	FormatKey = metaKey("format")
	EpochKey  = metaKey("epoch")
	ETagKey   = metaKey("etag-key")
	GroupKey  = metaKey("group")
	NextIDKey = metaKey("next-id")
)

// PebbleDir is the directory in a data directory in which the rows are.
const PebbleDir = "store"

// Versions of the format.
const (
	// FormatVersion is the version of internal/store/FORMAT.md, the newest that is read.
	FormatVersion = 3
	// FormatFirst is the version of a new directory. It rises when something is
	// stored that older versions would misread.
	FormatFirst = 1
	// FormatUnbuilt is the first version with indexes by priority that are not whole.
	FormatUnbuilt = 2
	// FormatAuthors is the first version whose log says who made a change. The first
	// commit that writes such a row raises a store to it.
	FormatAuthors = 3
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
