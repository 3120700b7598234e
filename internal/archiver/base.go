package archiver

import (
	"context"
	"errors"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/archive/bases"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/journal"
)

// lookForBase is after how many times Pace.Every it is looked whether a base is due.
const lookForBase = 10

// expect has a place that this store was archived to refuse to begin anew: it may not be
// mounted.
func (a *Archiver) expect() error {
	note, err := a.hold.Note()
	if err != nil {
		return err
	}
	noted, ok := readEnd(note)
	if p, asks := a.options.Place.(interface{ Expect() }); asks && ok && noted.isAt(a.options.Place.String()) {
		p.Expect()
	}
	return nil
}

// begin makes the base that records need to follow, unless there is one: in a new archive,
// for a store that begins to be archived, and where records were lost. It follows only where
// the line ends exactly where this store has left it.
func (a *Archiver) begin(ctx context.Context, w *archive.Writer) error {
	note, err := a.hold.Note()
	if err != nil {
		return err
	}
	noted, ok := readEnd(note)
	line := w.Line()
	if a.tellLoss(); a.hold.State() == journal.Following && ok && noted.isOf(line, a.options.isBare()) {
		if a.end = endOf(a.options.Place.String(), a.options.isBare(), line); a.end.segment == noted.segment && a.end.bare == noted.bare {
			a.end.next = noted.next
		}
		return nil
	}
	if line.LastBase != nil || line.Segment > 0 {
		w.Break()
		a.tell("the archive does not end where this server has left it, or commits were made that it was not told of: it cannot bring back the time until its next base, which is being made")
	}
	if a.hold.State() != journal.Beginning {
		if err := store.Restart(a.options.Store, a.hold); err != nil {
			return err
		}
	}
	var positions []journal.Released
	err = a.makeBase(ctx, w, func(id store.ID, position uint64) *archive.Hash {
		positions = append(positions, journal.Released{DB: id, Position: position})
		return nil
	})
	if err != nil {
		return err
	}
	a.end = endOf(a.options.Place.String(), a.options.isBare(), w.Line())
	if err := a.hold.Begin(append(positions, journal.Released{Note: a.end.note()})); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told, a.status.State, a.status.Error = false, StateOK, ""
	return nil
}

// tellLoss tells, once, that the hold was lost.
func (a *Archiver) tellLoss() {
	if a.hold.State() == journal.Lost && !a.standsBy.Load() {
		a.tell("too many records waited for the archive, and were dropped: it cannot bring back the time until its next base")
	}
}

// tell tells a loss, unless that was done since the last base that records follow.
func (a *Archiver) tell(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.told {
		return
	}
	a.told, a.status.State, a.status.Losses = true, StateLost, a.status.Losses+1
	a.options.Logger.Error("the archive has lost records", "why", what, "archive", a.options.Place.String(), "spool", a.options.Spool)
}

// makeBases makes a base whenever one is due, until ctx ends.
func (a *Archiver) makeBases(ctx context.Context, w *archive.Writer) error {
	for {
		if a.options.baseIsDue(w.Line(), a.options.Now()) {
			if err := a.makeBase(ctx, w, nil); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				if errors.Is(err, archive.ErrTaken) || errors.Is(err, archive.ErrMoved) {
					return err
				}
				a.fail(StateFailing, err)
				a.options.Logger.Warn("a base could not be archived", "archive", a.options.Place.String(), "error", err)
			}
		}
		if pause.For(ctx, lookForBase*a.options.Every) != nil {
			return nil
		}
	}
}

// baseIsDue reports whether a restore from the newest base would take long, or would take another server's line for
// this one's: after that server had the archive, only a base says that this one has it again. Records need not wait for it.
func (p Pace) baseIsDue(line archive.Status, now time.Time) bool {
	last := line.LastBase
	if last != nil && last.Made.Sub(now) > late {
		return true // the clock was wrong then
	}
	if last == nil || line.Back {
		return true
	}
	age := now.Sub(last.Made)
	return age >= p.BaseEvery || age >= p.BaseLeast && line.SinceBase > max(last.Bytes, p.BaseBytes)
}

// makeBase sends all rows of one view, and removes what the archive need not keep any
// longer. Chain is told the position of each database; it may be nil.
func (a *Archiver) makeBase(ctx context.Context, w *archive.Writer, chain func(store.ID, uint64) *archive.Hash) error {
	if a.bases.next > 0 { // the last one failed
		if err := pause.For(ctx, a.bases.next); err != nil {
			return err
		}
	}
	a.bases.grow()
	a.note(func(s *Status) { s.MakingBase = true })
	defer a.note(func(s *Status) { s.MakingBase = false })
	began, before := a.options.Now(), w.Line().LastBase
	options := bases.Options{Now: a.options.Now, Chain: chain, HideKey: a.options.SecretKey, Bare: a.options.isBare()}
	manifest, err := bases.Take(ctx, a.options.Store, w, options)
	if err != nil {
		return err
	}
	a.bases.succeeded()
	a.note(func(s *Status) {
		s.Bases++
		s.Base = manifest.Made
		if s.State != StateLost {
			s.State, s.Error = StateOK, ""
		}
	})
	a.options.Logger.Info("a base was archived", "archive", a.options.Place.String(), "databases", manifest.Databases, "bytes", manifest.Bytes,
		"took", a.options.Now().Sub(began).Round(time.Millisecond))
	if before != nil {
		a.prune(ctx, w, before.Made)
	}
	return nil
}

// prune removes what need not be kept. If the clock has jumped ahead, that must not take all
// of the past with it: the base before tells the time, too.
func (a *Archiver) prune(ctx context.Context, w *archive.Writer, before time.Time) {
	now := a.options.Now()
	if most := before.Add(2 * a.options.BaseEvery); now.After(most) {
		now = most
	}
	if _, err := w.Prune(ctx, now.Add(-a.options.Keep)); err != nil && ctx.Err() == nil {
		a.options.Logger.Warn("old parts of the archive could not be removed, which is tried again after the next base", "archive", a.options.Place.String(), "error", err)
	}
}
