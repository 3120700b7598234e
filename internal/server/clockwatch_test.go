package server

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/state"
)

// TestClockThatIsSetBack: timestamps and push keys do not follow it, and the
// operator is told, once for each time.
func TestClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		machine, log := newFakeClock(), new(logBook)
		clock := state.NewClock(machine.Now, rand.Reader, 0)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go watchClock(ctx, clock, time.Second, log.logger())
		told := func() int {
			time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
			return strings.Count(log.String(), "the clock is behind")
		}
		millis, key := clock.Millis(), pushKey(t, clock)
		if n := told(); n != 0 {
			t.Errorf("of a clock that is right the operator was told %d times", n)
		}
		for times := 1; times <= 2; times++ {
			machine.Add(-time.Hour)
			if n := told(); n != times {
				t.Errorf("of a clock that was set back the operator was told %d times, want %d", n, times)
			}
			laterMillis, laterKey := clock.Millis(), pushKey(t, clock)
			if laterMillis < millis || laterKey <= key {
				t.Errorf("after the clock was set back it is %d and %s, behind %d and %s", laterMillis, laterKey, millis, key)
			}
			key = laterKey
			machine.Add(2 * time.Hour)
			told()
			millis = clock.Millis()
		}
	})
}

func pushKey(t *testing.T, clock *state.Clock) string {
	t.Helper()
	key, err := clock.PushKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}
