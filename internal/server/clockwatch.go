package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/state"
)

// clockTolerance is how far the machine's clock may be behind the time of commits
// before the operator is told.
const clockTolerance = time.Minute

// watchClock tells the operator of a clock that was set back, until ctx ends. The
// time of commits never goes back: it stands still until the clock catches up.
func watchClock(ctx context.Context, clock *state.Clock, every time.Duration, logger *slog.Logger) {
	told := false
	for ctx.Err() == nil {
		behind := clock.Behind()
		switch {
		case behind > clockTolerance && !told:
			told = true
			logger.Warn("the clock is behind the newest commit: timestamps stand still until it catches up", "behind", behind)
		case behind == 0:
			told = false
		}
		_ = pause.For(ctx, every)
	}
}
