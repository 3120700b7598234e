package proof

import (
	"fmt"
	"sync"
	"time"
	"unsafe"
)

// A MachineClock is a clock like the machine's, which goes only when it is told to.
// Setting it changes the time that it shows. It does not change how much time has
// passed between two readings, which Time.Sub returns.
type MachineClock struct {
	mu  sync.Mutex
	now time.Time
	set time.Duration // by how much it was set forward
}

// NewMachineClock returns a clock that shows the time of the machine.
func NewMachineClock() *MachineClock {
	return &MachineClock{now: time.Now()} //nolint:forbidigo // only this reading tells how much time has passed
}

// Now reads the clock.
func (c *MachineClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return shown(c.now, c.set)
}

// Pass lets time pass.
func (c *MachineClock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set sets the clock forward, or back if d is negative, by whole seconds.
func (c *MachineClock) Set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set += d
}

// shown returns a reading that shows another time. Package time has no function for
// that, so it changes the seconds in the first word of a Time, where they are above 30
// bits of nanoseconds.
func shown(t time.Time, forward time.Duration) time.Time {
	seconds := int64(forward / time.Second)
	changed := t
	*(*uint64)(unsafe.Pointer(&changed)) += uint64(seconds) << 30
	if changed.Unix() != t.Unix()+seconds || changed.Sub(t) != 0 {
		panic(fmt.Sprintf("a Time is not laid out as it was: %v became %v", t, changed))
	}
	return changed
}
