package store

import (
	"errors"
	"math"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// Position returns the position of the newest commit of the database, 0 if
// there is none.
func (t Tree) Position() (uint64, error) { return t.reader.Position() }

// Changes calls yield with the changes behind a position, in order, until it
// returns false. It fails with ErrTrimmed when the log no longer reaches back
// to that position.
func (t Tree) Changes(behind uint64, yield func(tree.Change) bool) error {
	return t.changes(behind, math.MaxUint64, nil, math.MaxInt64, yield)
}

// ChangesAt is Changes up to and with another position, for the changes at, above or
// below some paths, and those of settings. Other assignments of the same changes are
// left out. It fails with ErrTooMuch when it would have to read more than a number of
// bytes.
func (t Tree) ChangesAt(behind, until uint64, paths []tree.Path, maxBytes int64, yield func(tree.Change) bool) error {
	return t.changes(behind, until, layout.NewPathSet(paths), maxBytes, yield)
}

func (t Tree) changes(behind, until uint64, paths layout.PathSet, maxBytes int64, yield func(tree.Change) bool) error {
	it, err := t.reader.LogRows(behind + 1)
	if err != nil {
		return damage.Mark(err)
	}
	rows, bytes := 0, int64(0)
	defer func() {
		t.store.counters.logRows.Add(uint64(rows))
		t.store.counters.logBytes.Add(uint64(bytes))
		_ = it.Close()
	}()
	for ok := it.First(); ok && behind < until; ok = it.Next() {
		if err := t.reader.Waiter.Left(rows); err != nil {
			return err
		}
		position := layout.LogPosition(it.Key())
		if position != behind+1 {
			return ErrTrimmed
		}
		row, err := it.ValueAndErr()
		if err != nil {
			return damage.Mark(err)
		}
		rows++
		if bytes += int64(len(row)); bytes > maxBytes {
			return &TooMuchError{behind}
		}
		c, concerns, err := layout.DecodeLogRow(row, position, paths)
		if err != nil {
			return damage.AtRow(it.Key(), err)
		}
		if concerns && !yield(c) {
			return nil
		}
		behind = position
	}
	if err := it.Error(); err != nil || behind >= until || until == math.MaxUint64 {
		return damage.Mark(err)
	}
	return ErrTrimmed // a log that ends early must not pass for one without changes
}

var (
	// ErrTrimmed says that changes were asked for that the log has no more.
	ErrTrimmed = errors.New("the log of changes does not reach back so far")
	// ErrTooMuch says that the changes that were asked for are too many to look
	// through. The error is a TooMuchError.
	ErrTooMuch = errors.New("too many changes to look through")
)

// A TooMuchError is ErrTooMuch, with the position up to which changes were looked at.
type TooMuchError struct{ Until uint64 }

func (e *TooMuchError) Error() string { return ErrTooMuch.Error() }

// Unwrap returns ErrTooMuch.
func (e *TooMuchError) Unwrap() error { return ErrTooMuch }
