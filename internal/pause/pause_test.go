package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

func TestFor(t *testing.T) {
	why := errors.New("given up")
	for _, test := range []struct {
		wait, end time.Duration
		took      time.Duration
		want      error
	}{
		{time.Minute, time.Hour, time.Minute, nil},
		{time.Hour, time.Minute, time.Minute, why},
		{0, time.Hour, 0, nil},
		{-time.Second, time.Hour, 0, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), test.end, why)
			defer cancel()
			start := time.Now()
			if err := pause.For(ctx, test.wait); !errors.Is(err, test.want) || time.Since(start) != test.took {
				t.Errorf("For(%v) = %v after %v, want %v after %v", test.wait, err, time.Since(start), test.want, test.took)
			}
		})
	}
}
