package server

import (
	"context"
	"errors"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// olderBytes is how much of the archive is read for one page of a history.
const olderBytes = 64 << 20

// errEnough ends reading an archive.
var errEnough = errors.New("enough was read")

// older reads commits from the line of the archive that this server writes. It is nil for a
// server without an archive.
func (a *archiving) older(epoch uint64) rows.Older {
	if a == nil {
		return nil
	}
	return func(ctx context.Context, q rows.OlderQuery, yield func(uint64, tree.Change) bool) (time.Time, uint64, error) {
		request := archive.RecordsRequest{
			Epoch: epoch, Database: q.Database, From: q.From, Until: q.Until, Segment: q.Segment, MaxBytes: olderBytes,
		}
		first, next, err := archive.NewReader(a.place, a.reading).Records(ctx, request, func(segment uint64, e archive.Entry) error {
			record, err := layout.DecodeRecord(e.Row, e.Position)
			if err == nil && !yield(segment, record.Change) {
				err = errEnough
			}
			return err
		})
		switch {
		case errors.Is(err, errEnough):
			return first, 0, nil
		case err != nil:
			return first, 0, fault.Wrap(fault.Unavailable, err, "%v", err)
		}
		return first, next, nil
	}
}
