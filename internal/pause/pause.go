// Package pause waits between two tries, looks or steps, unless the work is given up
// meanwhile.
//
// Work in the background waits by measure. A Foreground is told how long the requests of
// clients take, and says how long a step of the background is followed by a rest: none while
// nobody asks for anything, and more the longer requests take. Building an index, deleting what
// expires, backups and the scrub share the one of their server. Pebble's flushes and
// compactions know nothing of it.
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
