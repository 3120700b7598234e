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
	return each(source, first, end, func(key, value []byte) (bool, error) {
		id, err := DecodeID(key, value)
		return err == nil && yield(string(key[len(first):]), id), err
	})
}

// Displaced calls yield with the databases whose names others have by now, and with these names.
func Displaced(source pebble.Reader, yield func(name string, id layout.ID)) error {
	first, end := layout.DisplacedRange()
	return each(source, first, end, func(key, value []byte) (bool, error) {
		if len(key) != len(layout.DisplacedKey(0)) || len(value) == 0 {
			return false, damage.AtRow(key, errors.New("not the former name of a database"))
		}
		yield(string(value), layout.CutNumber(key))
		return true, nil
	})
}

// each calls take with the rows of a range, until it reports false.
func each(source pebble.Reader, first, end []byte, take func(key, value []byte) (bool, error)) error {
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
		if more, err := take(it.Key(), value); !more || err != nil {
			return err
		}
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
