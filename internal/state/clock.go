package state

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/livetree/livetree/internal/pushid"
)

// A Clock tells the time of commits and makes push keys for all databases of a
// store. It never goes back, not even over a restart.
type Clock struct {
	now  func() time.Time
	last atomic.Int64
	keys *pushid.Generator
}

// NewClock returns a clock that starts after floorMillis, the time of the
// newest commit so far.
func NewClock(now func() time.Time, rand io.Reader, floorMillis int64) *Clock {
	c := &Clock{now: now, keys: pushid.New(rand)}
	c.last.Store(floorMillis + 1)
	return c
}

// Millis returns the time in milliseconds since the UNIX epoch.
func (c *Clock) Millis() int64 {
	now := c.now().UnixMilli()
	for {
		last := c.last.Load()
		if now <= last {
			return last
		}
		if c.last.CompareAndSwap(last, now) {
			return now
		}
	}
}

// Raise makes the clock tell times after that of a commit, which another node has made.
func (c *Clock) Raise(millis int64) {
	for last := c.last.Load(); last <= millis && !c.last.CompareAndSwap(last, millis+1); last = c.last.Load() {
	}
}

// Now returns the time of the machine, for measuring how long something takes and
// for nothing else: it is not the injected one.
func (c *Clock) Now() time.Time {
	return time.Now() //nolint:forbidigo // see above
}

// Reading returns what the injected clock shows. The time between two readings is
// right also if the machine's clock was set in between, and goes on where Millis stands
// still.
func (c *Clock) Reading() time.Time { return c.now() }

// Behind returns by how much the clock of the machine is behind the time that
// is told: not zero after it was set back.
func (c *Clock) Behind() time.Duration {
	return max(0, time.Duration(c.last.Load()-c.now().UnixMilli())*time.Millisecond)
}

// PushKey returns a key that is greater than all before it.
func (c *Clock) PushKey() (string, error) { return c.keys.Next(c.Millis()) }
