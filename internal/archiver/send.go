package archiver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/pause"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store/journal"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/transfer"
)

// peek is how often it is looked whether so much waits that it is sent early: a part of
// Pace.Every.
const peek = 10

// send sends what is committed, a segment after the other, until ctx ends. It begins with what
// is there: who was woken for it may have been another.
func (a *Archiver) send(ctx context.Context, w *archive.Writer) error {
	for {
		err := a.sendRound(ctx, w)
		if err == nil {
			err = a.hold.Wait(ctx)
		}
		if err == nil {
			err = a.gather(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// gather waits until others may have joined what waits, but not on a machine that is so busy
// that short pauses take long.
func (a *Archiver) gather(ctx context.Context) error {
	began := a.options.Now()
	for range peek {
		if bytes, _ := a.hold.Stats(); bytes >= a.options.Bytes || a.options.Now().Sub(began) >= a.options.Every {
			break
		}
		if err := pause.For(ctx, a.options.Every/peek); err != nil {
			return err
		}
	}
	return nil
}

// late is by how much a commit may become durable after the time that it has.
const late = time.Minute

// ErrStopped says that nothing is archived any more.
var ErrStopped = errors.New("nothing is archived any more")

// CatchUp returns when all that was committed up to a time, and before the call, is in the
// archive; a zero time is that of the call. It fails when ctx ends before that, and when nothing
// is archived any more.
func (a *Archiver) CatchUp(ctx context.Context, at time.Time) error {
	if a.options.Cluster != nil {
		return a.catchUpShared(ctx, at)
	}
	round := a.begun.Load() + 1
	for {
		switch databases, _ := a.hold.Waiting(); {
		case !at.IsZero() && at.Before(a.archivedAt().Add(-late)), a.done.Load() >= round,
			a.ready.Load() && a.hold.State() == journal.Following && databases == 0:
			return nil
		case a.Status().State == StateTaken:
			return ErrStopped
		}
		if err := pause.For(ctx, a.options.Every/peek); err != nil {
			return err
		}
	}
}

// A position is where a segment was full: the next one goes on there.
type position struct {
	db layout.ID // 0 if none was full
	to uint64    // the last position of it that belongs to the round
}

// sendRound sends all that is there now. What is committed meanwhile waits for the next
// round, as long as others do: segments of a busy server are not small.
func (a *Archiver) sendRound(ctx context.Context, w *archive.Writer) error {
	if a.unsent != nil {
		if err := a.sendSegment(ctx, w, a.unsent); err != nil {
			return err
		}
	}
	round, began := a.begun.Add(1), a.options.Now()
	if a.options.Cluster != nil { // a round holds all that was acknowledged when it was begun
		if err := a.options.Cluster.CaughtUp(ctx); err != nil {
			return err
		}
	}
	for a.full, a.first = (position{}), a.after+1; ; {
		segment, err := a.collect()
		if err == nil && segment.Len() > 0 {
			err = a.sendSegment(ctx, w, segment)
		}
		if err != nil {
			return err
		}
		if a.full.db == 0 {
			a.done.Store(round)
			a.mu.Lock()
			a.archived = began
			a.mu.Unlock()
			return nil
		}
	}
}

// sendSegment sends a segment and releases its records.
func (a *Archiver) sendSegment(ctx context.Context, w *archive.Writer, segment *archive.Segment) error {
	bytes := segment.Bytes()
	a.unsent = segment // it may have been sent even if that fails, and must be sent again then
	sum, err := w.Prepare(segment)
	if err != nil {
		return err
	}
	// What is sent must be known again after a crash: it is noted first.
	a.end = a.end.with(sum)
	if err := a.hold.SetNote(a.end.note()); err != nil {
		return err
	}
	if err := a.append(ctx, w, segment); err != nil {
		return err
	}
	a.unsent = nil
	var released []journal.Released
	for database, mark := range segment.Marks() {
		a.after = layout.ID(database)
		released = append(released, journal.Released{DB: a.after, Position: mark.Position, Note: mark.Chain[:]})
	}
	a.end = endOf(a.options.Place.String(), a.options.isBare(), w.Line())
	if err := a.hold.Release(append(released, journal.Released{Note: a.end.note()})); err != nil {
		return err
	}
	a.sent(segment.Len(), bytes)
	return nil
}

// append sends one segment, for as long as it takes: what may have been sent must be sent
// again.
func (a *Archiver) append(ctx context.Context, w *archive.Writer, segment *archive.Segment) error {
	tries := &tries{least: a.options.LeastPause, most: a.options.MostPause}
	for {
		err := w.Append(ctx, segment)
		if err == nil || errors.Is(err, archive.ErrTaken) || errors.Is(err, archive.ErrMoved) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.fail(StateFailing, err)
		a.tellLoss()
		if tries.wait(ctx) != nil {
			return ctx.Err()
		}
		a.options.Logger.Warn("the archive cannot be written, records wait on disk", "archive", a.options.Place.String(), "error", err)
	}
}

// collect makes a segment of what waits, from where the last one of the round was full. Its times are not after the moment at which
// that is looked up: who restores takes the newest time of a round for one up to which nothing is missing, but for a minute.
func (a *Archiver) collect() (*archive.Segment, error) {
	segment := archive.NewSegment()
	from, began := a.full, a.options.Now().UnixMilli()
	a.full = position{}
	list, err := a.pending()
	for _, p := range list {
		if p.DB == from.db {
			p.To = min(p.To, from.to) // or one database could keep all others waiting
		}
		if from.db != 0 && a.turn(p.DB) < a.turn(from.db) || p.DB == from.db && p.To < p.From {
			continue
		}
		if err = a.add(segment, p, began); errors.Is(err, errFull) {
			a.full = position{p.DB, p.To}
			segment.GoesOn()
			return segment, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return segment, err
}

// pending returns what waits, in the order of the round.
func (a *Archiver) pending() (list []journal.Pending, err error) {
	err = a.hold.Pending(func(p journal.Pending) bool {
		list = append(list, p)
		return true
	})
	slices.SortFunc(list, func(x, y journal.Pending) int { return cmp.Compare(a.turn(x.DB), a.turn(y.DB)) })
	return list, err
}

// turn returns where a database is in the order of the round: after the last one comes the
// first.
func (a *Archiver) turn(db layout.ID) uint32 { return uint32(db) - uint32(a.first) }

// maxEntries bounds the segments of many databases with little in each.
const maxEntries = 1 << 20

// errFull says that a segment has enough.
var errFull = errors.New("the segment is full")

// add adds the records of one database, until the segment is full. What waits was looked up at a time that is given.
func (a *Archiver) add(segment *archive.Segment, p journal.Pending, at int64) error {
	if segment.Len() >= maxEntries {
		return errFull
	}
	if p.To < p.From { // a new database, to which nothing was written yet
		segment.Made(uint32(p.DB), p.Name, at)
		return nil
	}
	mark := archive.Mark{Position: p.From - 1}
	copy(mark.Chain[:], p.Note)
	segment.Begin(uint32(p.DB), p.Name, mark)
	return a.hold.Read(p.DB, p.From, p.To, func(position uint64, row []byte) error {
		if segment.Bytes() >= a.options.MaxSegment {
			return errFull
		}
		row, err := a.outgoing(row, position)
		if err != nil {
			return err
		}
		millis := layout.LogMillis(row)
		return segment.Add(archive.Entry{Database: uint32(p.DB), Name: p.Name, Position: position, Millis: millis, Row: row})
	})
}

// outgoing returns a record as it leaves the machine: without secrets, unless it is
// encrypted.
func (a *Archiver) outgoing(row []byte, position uint64) ([]byte, error) {
	if a.options.isBare() || !layout.HasValues(row) {
		return row, nil
	}
	record, err := layout.DecodeRecord(row, position)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{state.SettingSecrets, state.SettingHookSecrets} {
		if secrets := record.Values[name]; secrets != nil {
			record.Values[name] = transfer.HideSecrets(a.options.SecretKey, secrets)
		}
	}
	return layout.AppendRecord(nil, record), nil
}
