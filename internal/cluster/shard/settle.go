package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/livetree/livetree/internal/pause"
)

// The pauses of Settle: the first, and the longest, between two that double.
const (
	firstPause = time.Millisecond
	mostPause  = 250 * time.Millisecond
)

// Settle appends a record after base, and returns the new head once the record is in the log. It returns
// ErrStale if the record is not in the log and never will be. An append whose outcome is not known is sent
// again as it was, with the same base: one of the copies at most takes effect. Once one of them is
// refused, the log holds a record of that number, which is this one or another.
//
// The record must differ from every other, also from those of earlier processes of this node, by its
// origin. Settle returns ErrUnknown only if ctx ends, or if the number was trimmed before it could be
// looked at; the caller must then not tell a client that the record was, or was not, appended. If ctx ends
// and the log has refused the record each time, Settle returns ErrAgain: the record never was.
func Settle(ctx context.Context, log Log, shard int, base, next Head, encoded []byte) (Head, error) {
	wait, outcome := firstPause, ErrAgain
	for {
		revision, err := log.Append(ctx, shard, base, next, encoded)
		switch {
		case err == nil:
			next.Revision = revision
			return next, nil
		case errors.Is(err, ErrStale):
			return look(ctx, log, shard, next, encoded)
		case errors.Is(err, ErrUnknown):
			outcome = ErrUnknown
		case !errors.Is(err, ErrAgain):
			return Head{}, err
		}
		if ended := pause.For(ctx, wait); ended != nil {
			return Head{}, fmt.Errorf("%w: %w: %w", outcome, ended, err)
		}
		wait = min(2*wait, mostPause)
	}
}

// look finds out which record has the number of next, and returns next if it is this one. The
// number is taken, but this node may not have learned of it yet.
func look(ctx context.Context, log Log, shard int, next Head, encoded []byte) (Head, error) {
	wait := firstPause
	for {
		page, err := log.Page(ctx, shard, next.Number)
		switch {
		case errors.Is(err, ErrTrimmed):
			return Head{}, fmt.Errorf("%w: %w", ErrUnknown, err)
		case err != nil || len(page.Entries) == 0:
		case bytes.Equal(page.Entries[0].Record, encoded):
			next.Revision = page.Entries[0].Revision
			return next, nil
		default:
			return Head{}, ErrStale
		}
		if ended := pause.For(ctx, wait); ended != nil {
			return Head{}, fmt.Errorf("%w: %w", ErrUnknown, ended)
		}
		wait = min(2*wait, mostPause)
	}
}
