package store

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// What can be wrong with a data directory or a store, for errors.Is.
var (
	ErrInUse    = errors.New("the data directory is in use by another process")
	ErrForeign  = errors.New("not a Livetree data directory")
	ErrNewer    = errors.New("the data directory was written by a newer Livetree")
	ErrDamaged  = errors.New("stored data is damaged")
	ErrNoSpace  = errors.New("the disk is nearly full")
	ErrStalled  = errors.New("the disk does not keep up with the writes")
	ErrClosed   = errors.New("the store is closed")
	ErrTooLarge = errors.New("the node is larger than the limit")
	ErrExists   = errors.New("the database exists already")
)

// damaged marks an error as damage if it comes from a failed checksum, a file
// that is missing or bytes that no store writes; it leaves other errors alone.
func damaged(err error) error {
	if err == nil || errors.Is(err, ErrDamaged) {
		return err
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, errMalformedKey) || errors.Is(err, errMalformedRow) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// errMalformedRow is wrapped by every decoder of row values.
var errMalformedRow = errors.New("malformed row")

// rowError says which row could not be read.
func rowError(key []byte, err error) error {
	return damaged(fmt.Errorf("row %x: %w: %w", key, errMalformedRow, err))
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
