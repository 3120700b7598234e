package engine

import (
	"context"
	"sync/atomic"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/tree"
)

// A deleting is what the turns of one step share.
type deleting struct {
	db      *Database
	deleted atomic.Int64  // children
	newest  atomic.Uint64 // the newest commit of the step
}

// turn deletes children, and then leaves the writer to others. Where their rows take too much for one write, as those below long keys do,
// it makes two: else one child would keep all after it from being deleted.
func (d *deleting) turn(ctx context.Context, keys [][]byte) error {
	turn := &expiring{keys: keys}
	commit, err := d.db.writer.write(ctx, Request{Who: auth.Identity{By: tree.ByExpiry}, expiring: turn})
	if half := len(keys) / 2; half > 0 && fault.KindOf(err) == fault.TooLarge {
		if err := d.turn(ctx, keys[:half]); err != nil {
			return err
		}
		return d.turn(ctx, keys[half:])
	}
	if err != nil {
		return err
	}
	d.deleted.Add(int64(len(commit.Assignments)))
	if d.newest.Swap(commit.Position) != commit.Position-1 && commit.Position > 0 {
		rest := d.db.source.Metrics.Foreground.Rest(d.db.source.Clock.Now(), turn.took)
		_ = pause.For(ctx, max(expiryRest*turn.took, rest)) // if ctx has ended, the next write says so
	}
	return nil
}
