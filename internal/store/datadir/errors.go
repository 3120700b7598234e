package datadir

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/livetree/livetree/internal/store/damage"
)

// Failed says of the error of a disk that it is one, and leaves other errors
// alone.
func Failed(err error) error {
	if !IsDiskFailure(err) || errors.Is(err, damage.ErrDamaged) {
		return err
	}
	return fmt.Errorf("the disk failed, check it and start again: %w", err)
}

// IsDiskFailure reports whether an error is that of a disk that fails or takes
// nothing more, rather than one of how a data directory was set up: its name, its
// owner, its rights.
func IsDiskFailure(err error) bool {
	return IsNoSpace(err) || slices.ContainsFunc(diskFailures, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}

// diskFailures are what systems say of a disk that is broken or gone, was made
// read-only because of an error, or is behind a network that is.
var diskFailures = []syscall.Errno{syscall.EIO, syscall.EROFS, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE}

// IsNoSpace reports whether an error is that of a disk that is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// What can be wrong with a data directory, for errors.Is.
var (
	ErrInUse   = errors.New("the data directory is in use by another process")
	ErrForeign = errors.New("not a Livetree data directory")
	ErrNewer   = errors.New("the data directory was written by a newer Livetree")
)
