package layout

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// A Record is a whole commit: with nothing else than the records of a database from the
// first on, the database can be made again.
//
// Its bytes are those of a log row, without a bound. So those of a commit whose log row
// leaves nothing out are the log row itself.
type Record struct {
	tree.Change
	// Values are the settings that the commit has changed; a nil value deletes one.
	Values Settings
	// Dropped says that the commit was the last one, which removed the database.
	Dropped bool
}

// IsWhole reports whether the record says all that the commit did. That of a log row
// may not.
func (r Record) IsWhole() bool { return !r.Truncated && (!r.Settings || r.Values != nil) }

func (r Record) flags() (flags byte) {
	add := func(is bool, flag byte) {
		if is {
			flags |= flag
		}
	}
	add(r.Patch, logPatch)
	add(r.Truncated, logTruncated)
	add(r.Settings, logSettings)
	add(r.Values != nil, logValues)
	add(r.Dropped, logDropped)
	return flags
}

// How a setting in a record changes.
const (
	valueDeleted byte = iota
	valueSet
)

// AppendRecord appends a record.
func AppendRecord(dst []byte, r Record) []byte {
	dst, _ = appendChange(dst, r, math.MaxInt/2)
	return appendValues(dst, r.Values)
}

// appendValues appends the settings of a record, in the order of their names.
func appendValues(dst []byte, values Settings) []byte {
	if values == nil {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
		value := values[name]
		if value == nil {
			dst = append(dst, valueDeleted)
			continue
		}
		dst = binary.AppendUvarint(append(dst, valueSet), uint64(len(value)))
		dst = append(dst, value...)
	}
	return dst
}

// DecodeRecord reads what AppendRecord or AppendLogRow wrote for the commit at a position.
func DecodeRecord(row []byte, position uint64) (Record, error) {
	r := &logReader{rest: row}
	record := Record{Change: tree.Change{Position: position}}
	flags, author := r.head(&record.Change, recordFlags)
	record.Dropped = flags&logDropped != 0
	record.Author, record.At = r.author(author), r.decode(r.take(r.uvarint()))
	record.Assignments = r.assignments(nil)
	if flags&logValues != 0 {
		record.Values = r.values()
	}
	r.end()
	return record, r.err
}

// values decodes the settings of a record.
func (r *logReader) values() Settings {
	values, last := Settings{}, ""
	for n := range r.uvarint() {
		name := string(r.take(r.uvarint()))
		kind := r.take(1)
		if r.err != nil {
			break
		}
		if kind[0] > valueSet || n > 0 && name <= last {
			r.err = errors.New("unknown setting in a record")
			break
		}
		var value []byte
		if kind[0] == valueSet {
			value = append([]byte{}, r.take(r.uvarint())...)
		}
		values[name], last = value, name
	}
	return values
}
