package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// A Database is what a base says of a database beside its rows.
type Database struct {
	ID   layout.ID
	Name string
	// Position and Millis are those of its newest commit, 0 if there is none.
	Position uint64
	Millis   int64
}

// Databases calls yield with the databases that a source shows, in the order of their
// names. Its error ends that.
func Databases(source pebble.Reader, yield func(Database) error) error {
	var failed error
	err := seek.Names(source, func(name string, id layout.ID) bool {
		d := Database{ID: id, Name: name}
		if failed = d.find(source); failed == nil {
			failed = yield(d)
		}
		return failed == nil
	})
	return errors.Join(err, failed)
}

// find looks up the newest commit.
func (d *Database) find(source pebble.Reader) (err error) {
	it, err := seek.Reader{Source: source, ID: d.ID}.LogRows(0)
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { err = errors.Join(err, damage.Mark(errors.Join(it.Error(), it.Close()))) }()
	if !it.Last() {
		return nil
	}
	row, err := it.ValueAndErr()
	if err != nil {
		return damage.Mark(err)
	}
	if len(row) < layout.LogHead {
		return damage.AtRow(it.Key(), errors.New("log row cut short"))
	}
	d.Position, d.Millis = layout.LogPosition(it.Key()), layout.LogMillis(row)
	return nil
}

// spaces are those whose rows are transferred, in order.
var spaces = []byte{layout.SpaceData, layout.SpaceIndex, layout.SpaceSettings}

// Export calls yield with the rows of all databases that a source shows, in key order.
// They are good until it returns; its error ends the export. Change, if it is set,
// returns what is exported in place of the value of a setting.
func Export(source pebble.Reader, change func(name string, value []byte) []byte, yield func(key, value []byte) error) error {
	for _, space := range spaces {
		if err := exportSpace(source, space, change, yield); err != nil {
			return err
		}
	}
	return nil
}

func exportSpace(source pebble.Reader, space byte, change func(name string, value []byte) []byte, yield func(key, value []byte) error) (err error) {
	it, err := source.NewIter(&pebble.IterOptions{LowerBound: []byte{space}, UpperBound: []byte{space + 1}})
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { err = errors.Join(err, damage.Mark(errors.Join(it.Error(), it.Close()))) }()
	for ok := it.First(); ok; {
		key := it.Key()
		if len(key) < layout.RootBytes {
			return damage.AtRow(key, layout.ErrMalformedKey)
		}
		if layout.IsLeftKey(key) { // of which one database may have very many
			_, past := layout.HooksRange(DatabaseOf(key))
			ok = it.SeekGE(past)
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return damage.Mark(err)
		}
		if space == layout.SpaceSettings && change != nil {
			value = change(string(key[layout.RootBytes:]), value)
		}
		if err := yield(key, value); err != nil {
			return err
		}
		ok = it.Next()
	}
	return nil
}

// DatabaseOf returns the number in the key of a row that is transferred.
func DatabaseOf(key []byte) layout.ID { return layout.ID(binary.BigEndian.Uint32(key[1:])) }

// checkRow reports why a row is not one that is transferred, or nil.
func checkRow(key []byte) error {
	if len(key) < layout.RootBytes || key[0] < layout.SpaceData || key[0] > layout.SpaceSettings || layout.IsLeftKey(key) {
		return fmt.Errorf("%w: not a row of a base: %.32x", layout.ErrMalformedKey, key)
	}
	return nil
}
