package archiver

import (
	"context"
	"errors"
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

// send sends what is committed, a round after the other, until ctx ends. What waits from before
// the start has waited long enough.
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

// CatchUp returns when all that was committed before the call is in the archive. It fails when
// ctx ends before that.
func (a *Archiver) CatchUp(ctx context.Context) error {
	round := a.begun.Load() + 1
	for {
		if waiting, lost := a.hold.Stats(); waiting == 0 && !lost || a.done.Load() >= round {
			return nil
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
	round := a.begun.Add(1)
	for a.full = (position{}); ; {
		segment, err := a.collect()
		if err == nil && segment.Len() > 0 {
			err = a.sendSegment(ctx, w, segment)
		}
		if err != nil {
			return err
		}
		if a.full.db == 0 {
			a.done.Store(round)
			return nil
		}
	}
}

// sendSegment sends a segment and releases its records.
func (a *Archiver) sendSegment(ctx context.Context, w *archive.Writer, segment *archive.Segment) error {
	bytes := segment.Bytes()
	a.unsent = segment // it may have been sent even if that fails, and must be sent again then
	if err := a.append(ctx, w, segment); err != nil {
		return err
	}
	a.unsent = nil
	var released []journal.Released
	for database, mark := range segment.Marks() {
		released = append(released, journal.Released{DB: layout.ID(database), Position: mark.Position, Note: mark.Chain[:]})
	}
	if err := a.hold.Release(released); err != nil {
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
		if err == nil || errors.Is(err, archive.ErrTaken) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.fail(StateFailing, err)
		if tries.wait(ctx) != nil {
			return ctx.Err()
		}
		a.options.Logger.Warn("the archive cannot be written, records wait on disk", "archive", a.options.Place.String(), "error", err)
	}
}

// collect makes a segment of what waits, from where the last one of the round was full.
func (a *Archiver) collect() (*archive.Segment, error) {
	segment := archive.NewSegment()
	first := int64(0)
	var failed error
	from := a.full
	a.full = position{}
	err := a.hold.Pending(func(p journal.Pending) bool {
		if p.DB == from.db {
			p.To = min(p.To, from.to) // or one database could keep all others waiting
		}
		if p.DB < from.db || p.DB == from.db && p.To < p.From {
			return true
		}
		if failed = a.add(segment, p, &first); errors.Is(failed, errFull) {
			a.full = position{p.DB, p.To}
			segment.GoesOn()
		}
		return failed == nil
	})
	if failed != nil && !errors.Is(failed, errFull) {
		return nil, failed
	}
	if first > 0 {
		a.note(func(s *Status) { s.Oldest = time.UnixMilli(first) })
	}
	return segment, err
}

// maxEntries bounds the segments of many databases with little in each.
const maxEntries = 1 << 20

// errFull says that a segment has enough.
var errFull = errors.New("the segment is full")

// add adds the records of one database, until the segment is full.
func (a *Archiver) add(segment *archive.Segment, p journal.Pending, first *int64) error {
	if segment.Len() >= maxEntries {
		return errFull
	}
	if p.To < p.From { // a new database, to which nothing was written yet
		segment.Made(uint32(p.DB), p.Name, a.options.Now().UnixMilli())
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
		if *first == 0 || millis < *first {
			*first = millis
		}
		return segment.Add(archive.Entry{Database: uint32(p.DB), Name: p.Name, Position: position, Millis: millis, Row: row})
	})
}

// outgoing returns a record as it leaves the machine: without secrets, unless it is
// encrypted.
func (a *Archiver) outgoing(row []byte, position uint64) ([]byte, error) {
	if len(a.options.Recipients) > 0 || !layout.HasValues(row) {
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
