package engine

import (
	"bytes"
	"context"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// This file removes rows of what expires that have no data. A write that replaces very many
// children at once leaves their rows, and a mark. Then all such rows of the database are
// looked at, in steps. What that takes is a tenth of the time at most, however often rows are
// left.

// sweepRest is how many times as long as a step of a sweep took the next one waits.
const sweepRest = 9

// sweep makes a step of a sweep, if rows are to be swept. Next is when the next child is due.
func (e *Expiry) sweep(ctx context.Context, next int64) (Expired, error) {
	began := e.db.source.Clock.Now()
	if left := e.rested.Sub(began); left > 0 {
		again := e.db.source.Clock.Millis() + max(1, left.Milliseconds())
		return Expired{Next: next, Oldest: Never, Again: again}, nil
	}
	request, err := e.findStale()
	if request == nil || err != nil {
		return Expired{Next: next, Oldest: Never, Again: Never}, state.Classify(err)
	}
	cursor := e.swept
	if len(request.keys) > 0 || request.swept != nil {
		if _, err := e.db.writer.write(ctx, Request{Who: auth.Identity{By: tree.ByExpiry}, expiring: request}); err != nil {
			e.swept, e.mark = nil, nil // from the beginning
			return Expired{Next: next, Oldest: Never, Again: Never}, err
		}
	}
	if cursor == nil {
		e.mark = nil
	}
	ended := e.db.source.Clock.Now()
	rest := max(time.Millisecond, sweepRest*ended.Sub(began))
	e.rested = ended.Add(rest)
	return Expired{Next: next, Oldest: Never, Again: e.db.source.Clock.Millis() + rest.Milliseconds()}, nil
}

// findStale looks at the next rows of a sweep on a view. It returns nil if there is none.
func (e *Expiry) findStale() (*expiring, error) {
	view, published := e.db.view()
	defer view.Release()
	if published.Dropped {
		return nil, state.NoDatabase(e.db.source.Name)
	}
	reader := view.Tree(e.db.source.ID).Reader()
	if e.mark == nil {
		var err error
		if e.mark, err = reader.SweepMark(); err != nil || e.mark == nil {
			return nil, err
		}
	}
	from, to := layout.DueRange(e.db.source.ID)
	if e.swept != nil {
		from = e.swept
	}
	found, left := &expiring{}, e.db.writer.limits.ExpireChildren
	e.swept = nil
	var bad error
	err := reader.EachDueRow(from, to, func(key []byte) bool {
		if left--; left < 0 {
			e.swept = bytes.Clone(key)
			return false
		}
		var row layout.DueRow
		var should []byte
		if row, bad = layout.CutDueKey(key); bad == nil {
			_, should, bad = dueAgain(reader, published.Settings.Indexes, row)
		}
		if bad == nil && !bytes.Equal(should, key) {
			found.keys = append(found.keys, bytes.Clone(key))
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if e.swept == nil {
		found.swept = e.mark
	}
	return found, err
}
