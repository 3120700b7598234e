package archiver

import (
	"context"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/bases"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/journal"
)

// lookForBase is after how many times Pace.Every it is looked whether a base is due.
const lookForBase = 10

// begin makes the base that records need to follow, unless there is one: in a new archive,
// for a store that begins to be archived, and where records were lost.
func (a *Archiver) begin(ctx context.Context, w *archive.Writer) error {
	if a.hold.State() == journal.Lost {
		a.note(func(s *Status) { s.State, s.Losses = StateLost, s.Losses+1 })
		a.options.Logger.Error("too many records waited for the archive, and were dropped: it cannot bring back the time until its next base, which is being made",
			"archive", a.options.Place.String(), "spool", a.options.Spool)
	}
	if a.hold.State() == journal.Following && w.Line().LastBase != nil {
		return nil
	}
	if a.hold.State() != journal.Beginning {
		if err := a.hold.Restart(); err != nil {
			return err
		}
	}
	var positions []journal.Released
	err := a.makeBase(ctx, w, func(id store.ID, position uint64) *archive.Hash {
		positions = append(positions, journal.Released{DB: id, Position: position})
		return nil
	})
	if err != nil {
		return err
	}
	return a.hold.Begin(positions)
}

// makeBases makes a base whenever one is due, until ctx ends.
func (a *Archiver) makeBases(ctx context.Context, w *archive.Writer) error {
	for {
		if a.baseIsDue(w.Line()) {
			if err := a.makeBase(ctx, w, nil); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
		if pause.For(ctx, lookForBase*a.options.Every) != nil {
			return nil
		}
	}
}

// baseIsDue reports whether a restore from the newest base would take long.
func (a *Archiver) baseIsDue(line archive.Status) bool {
	last := line.LastBase
	return last == nil || a.options.Now().Sub(last.Made) >= a.options.BaseEvery || line.SinceBase > max(last.Bytes, a.options.BaseBytes)
}

// makeBase sends all rows of one view, and removes what the archive need not keep any
// longer. Chain is told the position of each database; it may be nil.
func (a *Archiver) makeBase(ctx context.Context, w *archive.Writer, chain func(store.ID, uint64) *archive.Hash) error {
	a.note(func(s *Status) { s.MakingBase = true })
	defer a.note(func(s *Status) { s.MakingBase = false })
	began := a.options.Now()
	options := bases.Options{Now: a.options.Now, Chain: chain, HideKey: a.options.SecretKey, Bare: len(a.options.Recipients) > 0}
	manifest, err := bases.Take(ctx, a.options.Store, w, options)
	if err != nil {
		return err
	}
	a.note(func(s *Status) {
		s.Bases++
		s.Base = manifest.Made
		s.State, s.Error = StateOK, ""
	})
	a.options.Logger.Info("a base was archived", "archive", a.options.Place.String(), "databases", manifest.Databases, "bytes", manifest.Bytes,
		"took", a.options.Now().Sub(began).Round(time.Millisecond))
	if _, err := w.Prune(ctx, a.options.Now().Add(-a.options.Keep)); err != nil && ctx.Err() == nil {
		a.options.Logger.Warn("old parts of the archive could not be removed, which is tried again after the next base", "archive", a.options.Place.String(), "error", err)
	}
	return nil
}
