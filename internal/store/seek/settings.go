package seek

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// Settings returns all settings of the database.
func (r Reader) Settings() (layout.Settings, error) {
	prefix := layout.SettingKey(r.ID, "")
	it, err := r.Iterator(prefix)
	if err != nil {
		return nil, damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	settings := layout.Settings{}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, damage.Mark(err)
		}
		settings[string(it.Key()[len(prefix):])] = bytes.Clone(value)
	}
	return settings, damage.Mark(it.Error())
}

// Left calls yield with the connections that have left something to be written, in the
// order of their names and from after a name on, until it returns false. Rows whose keys make
// no sense are passed.
func (r Reader) Left(after string, yield func(connection string) bool) error {
	from, to := layout.LeftRange(r.ID)
	it, err := r.Source.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return damage.Mark(err)
	}
	defer func() { _ = it.Close() }()
	past := func(connection string) bool {
		return it.SeekGE(append(from[:len(from):len(from)], connection+"\xff"...))
	}
	ok := it.First()
	if after != "" {
		ok = past(after)
	}
	for ok {
		connection, _, known := layout.CutLeftKey(it.Key())
		if !known {
			ok = it.Next()
			continue
		}
		if !yield(connection) {
			return nil
		}
		ok = past(connection)
	}
	return damage.Mark(it.Error())
}

// LeftRows calls yield with the rows that a connection has left, in order: its identity, then
// its writes. An error of yield ends that.
func (r Reader) LeftRows(connection string, yield func(number uint64, value []byte) error) error {
	from := layout.LeftKey(r.ID, connection, layout.LeftIdentity)
	it, err := r.Source.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: append(from[:len(from)-8:len(from)-8], 0xFF)})
	if err != nil {
		return damage.Mark(err)
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		_, number, known := layout.CutLeftKey(it.Key())
		if !known {
			continue
		}
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = yield(number, value)
		}
	}
	return damage.Mark(errors.Join(err, it.Error(), it.Close()))
}
