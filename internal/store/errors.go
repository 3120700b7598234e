package store

import (
	"errors"

	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/datadir"
	"github.com/livetree/livetree/internal/store/inspect"
	"github.com/livetree/livetree/internal/store/seek"
)

// What can be wrong with a data directory or a store, for errors.Is.
var (
	ErrDamaged  = damage.ErrDamaged
	ErrUnwanted = seek.ErrUnwanted
	ErrInUse    = datadir.ErrInUse
	ErrForeign  = datadir.ErrForeign
	ErrNewer    = datadir.ErrNewer
	// ErrUnfinished says that a file ends with a record that is not whole. A power cut
	// leaves that, and does no harm; so does damage, which does.
	ErrUnfinished = inspect.ErrUnfinished

	ErrNoSpace  = errors.New("the disk is nearly full")
	ErrStalled  = errors.New("the disk does not keep up with the writes")
	ErrClosed   = errors.New("the store is closed")
	ErrTooLarge = errors.New("the node is larger than the limit")
	ErrExists   = errors.New("the database exists already")
	ErrBusy     = errors.New("too many large nodes are being read for their ETags")
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
	case errors.Is(err, ErrNoSpace) || datadir.IsDiskFailure(err):
		return ExitIO
	}
	return 1
}
