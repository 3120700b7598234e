package seek

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// Names calls yield with the databases in the order of their names, until it
// returns false.
func Names(source pebble.Reader, yield func(name string, id layout.ID) bool) error {
	first, end := layout.NameRange()
	it, err := source.NewIter(&pebble.IterOptions{LowerBound: first, UpperBound: end})
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return damage.Mark(err)
		}
		id, err := DecodeID(it.Key(), value)
		if err != nil {
			return err
		}
		if !yield(string(it.Key()[len(first):]), id) {
			return nil
		}
	}
	return damage.Mark(it.Error())
}

// Displaced calls yield with the databases whose names others have by now, and with these names.
func Displaced(source pebble.Reader, yield func(name string, id layout.ID)) error {
	first, end := layout.DisplacedRange()
	it, err := source.NewIter(&pebble.IterOptions{LowerBound: first, UpperBound: end})
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return damage.Mark(err)
		}
		if len(it.Key()) != len(layout.DisplacedKey(0)) || len(value) == 0 {
			return damage.AtRow(it.Key(), errors.New("not the former name of a database"))
		}
		yield(string(value), layout.CutNumber(it.Key()))
	}
	return damage.Mark(it.Error())
}

// DecodeID returns the number of a database that is in the row with a key.
func DecodeID(key, row []byte) (layout.ID, error) {
	if len(row) != 4 {
		return 0, damage.AtRow(key, errors.New("not a database number"))
	}
	return layout.ID(binary.BigEndian.Uint32(row)), nil
}
