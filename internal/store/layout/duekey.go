package layout

import (
	"encoding/binary"
	"math"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// The rows of what expires are in the order of time, over all locations of a database that
// one rule is for: the next child that comes due is found by one seek. They lie among the
// index rows, where no path begins with dueMark.
//
// A row is a hint, the data decides. Every child whose time is a number has its row. There
// may be more rows: of children that were replaced together with very many others. Those
// go when they come due, or when they are swept.
const dueMark = 0x02

// sweepNumber stands where the number of an index does in the one row which says that
// rows are to be swept. No index has it.
const sweepNumber = math.MaxUint32

// DuePrefix returns what the keys of the rows of one rule begin with.
func DuePrefix(id ID, number uint32) []byte {
	return binary.BigEndian.AppendUint32(append(AppendSpace(nil, SpaceIndex, id), dueMark), number)
}

// DueRange returns the range of all such rows of a database, without that of the sweep.
func DueRange(id ID) (from, to []byte) { return DuePrefix(id, 0), DuePrefix(id, sweepNumber) }

// DueEnd returns the end of that range, with the row of the sweep.
func DueEnd(id ID) []byte { return append(AppendSpace(nil, SpaceIndex, id), dueMark+1) }

// SweepKey returns the key of the row which says that rows are to be swept.
func SweepKey(id ID) []byte { return DuePrefix(id, sweepNumber) }

// IsSweepKey reports whether a key is that of the row which says that rows are to be swept.
func IsSweepKey(key []byte) bool {
	number, ok := DueNumber(key)
	return ok && number == sweepNumber
}

// IsDueKey reports whether an index row is one of what expires, or that of the sweep.
func IsDueKey(key []byte) bool {
	return len(key) > RootBytes && key[0] == SpaceIndex && key[RootBytes] == dueMark
}

// DueKey appends the key of the row of a child, whose data key is that of path. The time
// must be a number.
func DueKey(dst []byte, id ID, number uint32, time query.Value, child tree.Path) []byte {
	dst = binary.BigEndian.AppendUint32(append(AppendSpace(dst, SpaceIndex, id), dueMark), number)
	return appendPath(query.AppendIndexValue(dst, time), child)
}

// DueAt returns the key from which on the rows of one rule are due at a time or later.
func DueAt(id ID, number uint32, millis int64) []byte {
	return query.AppendIndexValue(DuePrefix(id, number), query.LeafValue(tree.IntegerLeaf(millis)))
}

// A DueRow is one of those rows, taken apart.
type DueRow struct {
	Number uint32
	// Millis is when the child is due: its time, rounded up.
	Millis int64
	Child  tree.Path
}

// CutDueKey takes the key of such a row apart.
func CutDueKey(key []byte) (row DueRow, err error) {
	millis, child, err := CutDueTime(key)
	if err != nil {
		return row, err
	}
	row = DueRow{Number: binary.BigEndian.Uint32(key[RootBytes+1:]), Millis: millis}
	row.Child, err = DecodePath(child)
	return row, err
}

// CutDueTime returns when the child of such a row is due, and the part of its key that names the
// child: those of two rows are in the order of data.
func CutDueTime(key []byte) (millis int64, child []byte, err error) {
	const head = RootBytes + 1 + 4
	if !IsDueKey(key) || len(key) < head {
		return 0, nil, ErrMalformedKey
	}
	time, n, ok := query.CutIndexNumber(key[head:])
	if !ok {
		return 0, nil, ErrMalformedKey
	}
	return ceilMillis(time), key[head+n:], nil
}

// ceilMillis rounds a time up, to what an integer holds.
func ceilMillis(time float64) int64 {
	switch {
	case time >= math.MaxInt64:
		return math.MaxInt64
	case time <= math.MinInt64:
		return math.MinInt64
	}
	return int64(math.Ceil(time))
}

// DueNumber returns the number of the rule in a key that begins as that of such a row.
func DueNumber(key []byte) (number uint32, ok bool) {
	if !IsDueKey(key) || len(key) < RootBytes+1+4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(key[RootBytes+1:]), true
}

// IsDue reports whether a child with a value at its time is due. Only numbers ever are.
func IsDue(v query.Value, nowMillis int64) bool {
	return v.IsNumber() && query.CompareValues(v, query.LeafValue(tree.IntegerLeaf(nowMillis))) <= 0
}
