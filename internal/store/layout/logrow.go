package layout

import (
	"encoding/binary"
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// MaxLogged is the largest change that is kept in the log; of a larger one only
// a marker is.
const MaxLogged = 64 << 10

// The first bytes of a log row: the version of its layout, then flags.
const (
	logFirst   byte = 1 // without the author
	logVersion byte = 2

	logPatch     byte = 1 << 0
	logTruncated byte = 1 << 1
	logSettings  byte = 1 << 2
	logValues    byte = 1 << 3 // the values of settings follow; only in a record
	logDropped   byte = 1 << 4

	firstFlags  = logPatch | logTruncated | logSettings // of logFirst
	logFlags    = firstFlags | logDropped
	recordFlags = logFlags | logValues
)

// How an assignment in a log row changes its path.
const (
	logDelete byte = iota
	logNode
	logPriority
	logVoid // a delete of nothing
	logLeaf // a node below a leaf that becomes an object
)

// LogKeyBytes is the size of a log row's key, and LogHead that of what comes before
// the first path in the row.
const (
	LogKeyBytes = 13
	LogHead     = 10
)

// AppendLogRow appends a commit without the values of settings; it reports false when
// that takes more than MaxLogged bytes.
func AppendLogRow(dst []byte, r Record) ([]byte, bool) {
	r.Values = nil
	return appendChange(dst, r, MaxLogged)
}

// appendChange appends a change up to and with its assignments, which may take so many
// bytes.
func appendChange(dst []byte, r Record, most int) ([]byte, bool) {
	dst = binary.AppendUvarint(appendHead(dst, r), uint64(len(r.Assignments)))
	for _, a := range r.Assignments {
		var fits bool
		if dst, fits = appendAssignment(dst, a, most); !fits || len(dst) > most {
			return dst, false
		}
	}
	return dst, true
}

// appendHead appends what comes before the assignments of a change.
func appendHead(dst []byte, r Record) []byte {
	dst = append(dst, logVersion, r.flags())
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Millis))
	start := len(dst)
	dst = sized(r.Author.AppendTo(dst), start)
	start = len(dst)
	return sized(appendPath(dst, r.At), start)
}

// appendAssignment appends one assignment of a change: its kind, its path and its
// node. It reports false if the node alone takes more than so many bytes.
func appendAssignment(dst []byte, a tree.Assignment, most int) ([]byte, bool) {
	dst = appendPlace(dst, a)
	start := len(dst)
	if !a.Node.IsNull() {
		var fits bool
		if dst, _, fits = tree.AppendWithin(dst, a.Node, tree.Export, most); !fits {
			return dst, false
		}
	}
	return sized(dst, start), true
}

// appendPlace appends the kind and the path of an assignment.
func appendPlace(dst []byte, a tree.Assignment) []byte {
	kind := assignmentKind(a)
	dst = append(dst, kind)
	if kind == logLeaf {
		dst = append(dst, byte(a.Leaf))
	}
	start := len(dst)
	return sized(appendPath(dst, a.Path), start)
}

func assignmentKind(a tree.Assignment) byte {
	switch {
	case a.Priority:
		return logPriority
	case a.Void:
		return logVoid
	case a.Node.IsNull():
		return logDelete
	case a.Leaf > 0:
		return logLeaf
	}
	return logNode
}

// sized puts the length of all that follows start in front of it.
func sized(dst []byte, start int) []byte {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(dst)-start))
	return slices.Insert(dst, start, length[:n]...)
}

// LogMillis returns the time in the head of a log row.
func LogMillis(row []byte) int64 { return int64(binary.BigEndian.Uint64(row[2:])) }

// LogPosition returns the position in the key of a log row.
func LogPosition(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }
