// Package pause waits between two tries, looks or steps, unless the work is given up
// meanwhile.
package pause

import (
	"context"
	"time"
)

// For waits for some time. It returns nil, or why ctx has ended if that comes first. A
// wait of no time, or of less, is over at once.
func For(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
