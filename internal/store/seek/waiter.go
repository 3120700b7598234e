package seek

import (
	"errors"
	"runtime"
)

// A Waiter is who waits for what is read: until it is closed, or for ever if it is
// nil.
type Waiter <-chan struct{}

// RowsBetween is after how many rows a read looks whether somebody still waits for
// it, while it has nothing to write.
const RowsBetween = 256

// ErrUnwanted says that a read ended because nobody waited for it any more.
var ErrUnwanted = errors.New("nobody waits for what is read")

// Left returns ErrUnwanted if nobody waits any more. It looks at the first row and
// then now and then. In between it lets others run: whoever is to tell that nobody
// waits, and reads of a few rows. The scheduler would let it go on for 200 times as
// long.
func (w Waiter) Left(row int) error {
	if row%RowsBetween != 0 {
		return nil
	}
	if row > 0 {
		runtime.Gosched()
	}
	select {
	case <-w:
		return ErrUnwanted
	default:
		return nil
	}
}

// Pace is Left, and calls a function, which may be nil, where it lets others run. If that
// fails, it does.
func (w Waiter) Pace(row int, between func() error) error {
	if err := w.Left(row); err != nil || between == nil || row == 0 || row%RowsBetween != 0 {
		return err
	}
	return between()
}

// A Cost is what a read has taken from the store.
type Cost struct {
	Rows, Bytes int
}

// Add counts a row of some bytes. A nil Cost counts nothing.
func (c *Cost) Add(bytes int) {
	if c != nil {
		c.Rows++
		c.Bytes += bytes
	}
}
