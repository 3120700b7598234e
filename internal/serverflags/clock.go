package serverflags

import (
	"fmt"
	"time"
)

// ClockVariable shifts the clock of a server. It is for drills, and has no flag.
const ClockVariable = "LIVETREE_CLOCK_OFFSET"

// maxClockOffset is how far a clock may be shifted: certificates between nodes are good for longer.
const maxClockOffset = 12 * time.Hour

// ClockOffset returns by how much the clock of a server is to be ahead, 0 if the variable is not set.
func ClockOffset(lookup func(string) (string, bool)) (time.Duration, error) {
	text, ok := lookup(ClockVariable)
	if !ok || text == "" {
		return 0, nil
	}
	offset, err := time.ParseDuration(text)
	if err != nil || offset.Abs() > maxClockOffset {
		return 0, fmt.Errorf("%s is %q: it must be a time such as 5m or -5m, %s at most; it is for drills: leave it out to serve", ClockVariable, text, maxClockOffset)
	}
	return offset, nil
}
