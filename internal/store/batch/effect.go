package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// This file turns batches into bytes and back. The bytes of a batch are its effect: what a
// commit does to the rows of one database, and nothing else. Another store that is given the
// effects of a database in the order of its commits has the same rows.
//
// The bytes are those that Pebble has for a batch. They are read here, and not by Pebble's
// reader, because that one reads beyond the end of bytes that are cut short.

// ErrNoEffect says that bytes are not the effect of a commit of a database.
var ErrNoEffect = errors.New("not the effect of a commit")

const (
	// effectHead is the length of what stands before the rows: a number that Pebble gives
	// when a batch is applied, zero until then, and how many rows there are.
	effectHead  = 8 + 4
	effectCount = 8
	// maxEffect bounds an effect: no length in it takes more than 32 bits.
	maxEffect = 1<<31 - 1
)

// LargeBytes is from how many bytes on the memory of a batch is its own: Pebble does not use it for another one when the batch is closed.
const LargeBytes = 4 << 20

// Effect returns the bytes of a batch that was not committed yet. They are a copy.
func (b *Batch) Effect() []byte { return bytes.Clone(b.Rows.Repr()) }

// EffectUntil is Effect for who needs the bytes until the batch is committed, and no longer. Those of a large batch are not copied: they stay as they are
// if it is closed instead.
func (b *Batch) EffectUntil() []byte {
	if bytes := b.Rows.Repr(); len(bytes) >= LargeBytes {
		return bytes[:len(bytes):len(bytes)]
	}
	return b.Effect()
}

// An Effect is a batch that was read from its bytes.
type Effect struct {
	*Batch
	// Record is what the change log gets. Its position is 0 if the effect is not in the log:
	// rows of hooks, or what connections have left.
	Record layout.Record
	// Settings are those that change, nil if none does. A nil value deletes one.
	Settings layout.Settings

	whole []byte // the row with the whole record, nil if there is none
}

// Whole returns the record with all that the commit did, if the effect has it: see
// layout.Record.IsWhole. What a large change assigns is only there if somebody needed it where
// the effect was made.
func (e *Effect) Whole() (layout.Record, error) {
	if e.whole == nil {
		return e.Record, nil
	}
	row, err := layout.DecodeWhole(nil, e.whole)
	if err != nil {
		return layout.Record{}, err
	}
	return layout.DecodeRecord(row, e.Record.Position)
}

// Of makes a batch of an effect, to which what it returns refers. It fails with ErrNoEffect for what no batch
// of this database does: today's batches set and delete rows in its data, indexes and settings,
// delete ranges of them, and set one row of its log, with one of its records perhaps.
// The drop of a database is no effect.
func (m Maker) Of(id layout.ID, effect []byte) (*Effect, error) { return m.of(id, effect, false) }

// OfOwn is Of for bytes that nobody else has. Those of a large effect become the batch, and are not copied.
func (m Maker) OfOwn(id layout.ID, effect []byte) (*Effect, error) {
	return m.of(id, effect, len(effect) >= LargeBytes)
}

func (m Maker) of(id layout.ID, effect []byte, isOwn bool) (*Effect, error) {
	e := &Effect{Batch: &Batch{ID: id}}
	if err := e.read(effect); err != nil {
		return nil, err
	}
	e.Rows = m.DB.NewBatch()
	if !isOwn {
		// Pebble uses the memory of a batch again, and the bytes may be those of a record that others have.
		effect = bytes.Clone(effect)
	}
	if err := e.Rows.SetRepr(effect); err != nil {
		e.Close()
		return nil, fmt.Errorf("%w: %w", ErrNoEffect, err)
	}
	if e.Logged.Position > 0 && e.Record.Truncated {
		e.assignments = []tree.Assignment{{Path: e.Record.At}} // something at or below it has changed
		e.vague = true
	} else {
		e.assignments = e.Record.Assignments
	}
	return e, nil
}

// read takes an effect apart.
func (e *Effect) read(effect []byte) error {
	if len(effect) < effectHead || len(effect) > maxEffect {
		return fmt.Errorf("%w: it has %d bytes", ErrNoEffect, len(effect))
	}
	if binary.LittleEndian.Uint64(effect) != 0 {
		return fmt.Errorf("%w: it was applied somewhere", ErrNoEffect)
	}
	rest := effect[effectHead:]
	for range binary.LittleEndian.Uint32(effect[effectCount:]) {
		var row effectRow
		var ok bool
		if row, rest, ok = cutRow(rest); !ok {
			return fmt.Errorf("%w: it is cut short", ErrNoEffect)
		}
		if err := e.take(row); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrNoEffect, len(rest))
	}
	if e.whole != nil && e.Logged.Position == 0 {
		return fmt.Errorf("%w: a record without a row of the log", ErrNoEffect)
	}
	return nil
}

// An effectRow is what an effect does to a row, or to a range of rows: then the value is its end.
type effectRow struct {
	kind       pebble.InternalKeyKind
	key, value []byte
}

// cutRow returns the first row of an effect and what follows it.
func cutRow(b []byte) (row effectRow, rest []byte, ok bool) {
	if len(b) == 0 {
		return row, nil, false
	}
	row.kind = pebble.InternalKeyKind(b[0])
	if row.key, rest, ok = cutSized(b[1:]); !ok || row.kind == pebble.InternalKeyKindDelete {
		return row, rest, ok
	}
	row.value, rest, ok = cutSized(rest)
	return row, rest, ok
}

// cutSized returns the bytes that their length stands before.
func cutSized(b []byte) (sized, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) || n > 1 && size>>(7*(n-1)) == 0 { // no other way to write the length
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

// take notes what an effect does to a row.
func (e *Effect) take(row effectRow) error {
	if !e.owns(row.key) {
		return e.refuse(row)
	}
	switch space := row.key[0]; {
	case row.kind == pebble.InternalKeyKindSet && space == layout.SpaceLog:
		return e.takeLog(row)
	case row.kind == pebble.InternalKeyKindSet && space == layout.SpaceRecord:
		return e.takeRecord(row)
	case space == layout.SpaceLog || space == layout.SpaceRecord: // they are trimmed by each store
		return e.refuse(row)
	case row.kind == pebble.InternalKeyKindSet:
		return e.takeSet(row)
	case row.kind == pebble.InternalKeyKindDelete:
		if isSetting(row.key) {
			e.setting(row.key, nil)
		}
		return nil
	case row.kind == pebble.InternalKeyKindRangeDelete && e.ownsRange(row.key, row.value) && !isSetting(row.key):
		return nil
	}
	return e.refuse(row)
}

func (e *Effect) refuse(row effectRow) error {
	return fmt.Errorf("%w: kind %d of change of %s", ErrNoEffect, row.kind, layout.DescribeKey(row.key))
}

// owns reports whether a key belongs to the database.
func (e *Effect) owns(key []byte) bool {
	return len(key) >= layout.RootBytes && key[0] >= layout.SpaceData && key[0] <= layout.SpaceRecord &&
		layout.ID(binary.BigEndian.Uint32(key[1:])) == e.ID
}

// ownsRange reports whether a range that begins with a key of the database has no others.
func (e *Effect) ownsRange(from, to []byte) bool {
	return bytes.Compare(from, to) < 0 && bytes.Compare(to, layout.AppendSpace(nil, from[0], e.ID+1)) <= 0
}

// isSetting reports whether a key is that of a setting.
func isSetting(key []byte) bool { return key[0] == layout.SpaceSettings && !layout.IsLeftKey(key) }

func (e *Effect) setting(key, value []byte) {
	if e.Settings == nil {
		e.Settings = layout.Settings{}
	}
	e.Settings[string(key[layout.RootBytes:])] = value
}

// takeSet notes that a row is set, other than that of the log.
func (e *Effect) takeSet(row effectRow) error {
	switch {
	case isSetting(row.key):
		e.setting(row.key, append([]byte{}, row.value...))
	case layout.IsSweepKey(row.key):
		e.due.sweeps = true
	case layout.IsDueKey(row.key):
		if _, err := layout.CutDueKey(row.key); err != nil {
			return fmt.Errorf("%w: %w", ErrNoEffect, err)
		}
		e.due.add(row.key)
	case layout.IsUnbuiltKey(row.key):
		e.begins = true
	}
	return nil
}

// takeLog notes the row of the log. There is one at most.
func (e *Effect) takeLog(row effectRow) (err error) {
	if len(row.key) != layout.LogKeyBytes || e.Logged.Position > 0 || layout.LogPosition(row.key) == 0 {
		return e.refuse(row)
	}
	position := layout.LogPosition(row.key)
	if e.Record, err = layout.DecodeRecord(row.value, position); err != nil {
		return fmt.Errorf("%w: %w", ErrNoEffect, err)
	}
	if e.Record.Dropped {
		return e.refuse(row)
	}
	e.Logged.Position, e.Logged.Millis = position, e.Record.Millis
	e.Logged.Bytes = int64(len(row.key) + len(row.value))
	return nil
}

// takeRecord notes the row of the whole record, which stands behind that of the log.
func (e *Effect) takeRecord(row effectRow) error {
	if len(row.key) != layout.LogKeyBytes || e.whole != nil || layout.LogPosition(row.key) != e.Logged.Position {
		return e.refuse(row)
	}
	e.whole = row.value
	e.Logged.Whole = int64(len(row.key) + len(row.value))
	return nil
}
