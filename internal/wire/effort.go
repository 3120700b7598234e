package wire

import (
	"time"

	"github.com/livetree/livetree/internal/wire/message"
)

// busyTime is how soon after a write another one may be expected.
const busyTime = time.Second

// An effort says whether a request may have taken a large stack.
type effort struct {
	last  time.Time // when the last request came
	large bool
}

// note notes that a request is about to be done. One write after the other does not count:
// the stack is of use for the next.
func (e *effort) note(a message.Action, now time.Time) {
	if a != message.Put && a != message.Merge || now.Sub(e.last) > busyTime {
		e.large = true
	}
	e.last = now
}

// take reports whether a request may have taken a large stack, once.
func (e *effort) take() bool {
	large := e.large
	e.large = false
	return large
}
