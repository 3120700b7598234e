package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	ErrUnwanted = errors.New("nobody waits for what is read")
)

// The exit codes of a process that cannot go on; they are those of sysexits.h.
const (
	ExitDamaged = 65 // what is on disk is damaged
	ExitIO      = 74 // the disk refused a write or a sync
)

// ExitCode returns the exit code of a process that ends because of an error: one
// of those above, 1 for any other error, and 0 for none. Errors that are not the
// store's are judged as well: a server has more files on its disk.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrDamaged):
		return ExitDamaged
	case errors.Is(err, ErrNoSpace) || isDiskFailure(err):
		return ExitIO
	}
	return 1
}

// damaged marks an error as damage if it comes from a failed checksum, a file
// that is missing or bytes that no store writes; it leaves other errors alone.
func damaged(err error) error {
	if err == nil || errors.Is(err, ErrDamaged) {
		return err
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, errMalformedKey) || errors.Is(err, errMalformedRow) {
		return &corruption{err}
	}
	return err
}

// corruption is an error of Pebble that means ErrDamaged. It is told in one line:
// Pebble joins to it, once for each layer that it passes, an error that carries
// details for programs and whose text says nothing.
type corruption struct{ err error }

func (c *corruption) Error() string {
	var lines []string
	for line := range strings.SplitSeq(c.err.Error(), "\n") {
		if !strings.HasSuffix(line, "<corruption detail carrier>") && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return ErrDamaged.Error() + ": " + strings.Join(lines, "; ")
}

func (c *corruption) Unwrap() []error { return []error{ErrDamaged, c.err} }

// errMalformedRow is wrapped by every decoder of row values.
var errMalformedRow = errors.New("malformed row")

// rowError says which row could not be read.
func rowError(key []byte, err error) error {
	return damaged(fmt.Errorf("row %x: %w: %w", key, errMalformedRow, err))
}

// failed says of the error of a disk that it is one, and leaves other errors
// alone.
func failed(err error) error {
	if !isDiskFailure(err) || errors.Is(err, ErrDamaged) {
		return err
	}
	return fmt.Errorf("the disk failed, check it and start again: %w", err)
}

// isDiskFailure reports whether an error is that of a disk that fails or takes
// nothing more, rather than one of how a data directory was set up: its name, its
// owner, its rights.
func isDiskFailure(err error) bool {
	return isNoSpace(err) || slices.ContainsFunc(diskFailures, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}

// diskFailures are what systems say of a disk that is broken or gone, was made
// read-only because of an error, or is behind a network that is.
var diskFailures = []syscall.Errno{syscall.EIO, syscall.EROFS, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
