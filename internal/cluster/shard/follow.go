package shard

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// A Follower takes the entries of all shards.
type Follower interface {
	// Next is the number of the entry of a shard that is wanted next.
	Next(shard int) uint64
	// Take takes an entry. It may have come before, or be newer than the one that is wanted next if the log
	// has a hole. An error ends Follow.
	Take(Entry) error
}

// retryPause is how long Follow waits after the log could not be read.
const retryPause = 50 * time.Millisecond

// Follow hands a follower the entries of all shards, in the order of their numbers within a shard, until
// ctx ends or the follower refuses one. It also ends with ErrTrimmed, when the next entry of a
// shard is gone.
//
// It turns pages until it has seen the last of each shard, and then watches from the smallest revision of these
// last pages: what came to a shard after its page has a later one. A watch alone would
// have the log read all that a node has missed at once.
func Follow(ctx context.Context, log Log, f Follower) error {
	for {
		revision, err := turnPages(ctx, log, f)
		if err == nil {
			err = watchFrom(ctx, log, revision+1, f)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errRead):
			if err := pause.For(ctx, retryPause); err != nil {
				return err
			}
		case !errors.Is(err, ErrCompacted):
			return err
		}
	}
}

// errRead says that the log could not be read, which may pass.
var errRead = errors.New("the log could not be read")

// turnPages hands over everything that this node has, and returns the revision up to which that is all.
func turnPages(ctx context.Context, log Log, f Follower) (int64, error) {
	least := int64(math.MaxInt64)
	for s := range Count {
		for {
			page, err := log.Page(ctx, s, f.Next(s))
			if err != nil {
				if errors.Is(err, ErrTrimmed) || errors.Is(err, ErrDamaged) {
					return 0, err
				}
				return 0, errors.Join(errRead, err)
			}
			for _, e := range page.Entries {
				if err := f.Take(e); err != nil {
					return 0, err
				}
			}
			if page.Last {
				least = min(least, page.Revision)
				break
			}
		}
	}
	return least, nil
}

// watchFrom hands over what is appended from a revision on, until the watch ends.
func watchFrom(ctx context.Context, log Log, revision int64, f Follower) error {
	watch, err := log.Watch(ctx, revision)
	if err != nil {
		return errors.Join(errRead, err)
	}
	defer watch.Close()
	for {
		entries, err := watch.Next(ctx)
		switch {
		case errors.Is(err, ErrCompacted) || errors.Is(err, ErrDamaged):
			return err
		case err != nil:
			return errors.Join(errRead, err)
		}
		for _, e := range entries {
			if err := f.Take(e); err != nil {
				return err
			}
		}
	}
}
