// Package damage tells damage on disk from other failures, and marks it with
// ErrDamaged, once for all packages of the store.
package damage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
)

// ErrDamaged says that bytes on disk are not those that were written.
var ErrDamaged = errors.New("stored data is damaged")

// Mark marks an error as damage if it comes from a failed checksum, a file
// that is missing or bytes that no store writes; it leaves other errors alone.
func Mark(err error) error {
	if err == nil || errors.Is(err, ErrDamaged) {
		return err
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, layout.ErrMalformedKey) || errors.Is(err, ErrMalformedRow) {
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

// ErrMalformedRow is wrapped by every decoder of row values.
var ErrMalformedRow = errors.New("malformed row")

// AtRow says which row could not be read.
func AtRow(key []byte, err error) error {
	return Mark(fmt.Errorf("row %x: %w: %w", key, ErrMalformedRow, err))
}

// MarkOpen marks the failures of Pebble's Open that mean damage: all but those
// of the system. Pebble names files that are missing, too short or cannot be
// understood, but not always as corruption.
func MarkOpen(err error) error {
	errno, ok := errors.AsType[syscall.Errno](err)
	if ok && errno != syscall.ENOENT && !pebble.IsCorruptionError(err) {
		return err
	}
	return fmt.Errorf("%w; restore a backup into an empty directory with livetree restore", &corruption{err})
}
