package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
)

// This file commits what others have agreed on. A record holds commits of several databases
// of a shard, which are in the order of the shard's log. Each store applies it whole or not at
// all, and in the same batch notes its number: so after a crash it is known which record comes
// next.

// ErrRecord says that a record is not the one that comes next.
var ErrRecord = errors.New("not the next record of its shard")

// A RecordPart is one commit of a record, or an answer that waits for the record: then there is
// no batch.
type RecordPart struct {
	Batch  *batch.Batch
	Ticket Ticket // nil if nobody is to be told
}

// BatchOf reads the batch of a commit from its effect, the bytes that Batch.Effect has made of
// it in this store or in another: see batch.Effect. The bytes must not change.
func BatchOf(s *Store, id layout.ID, effect []byte) (*batch.Effect, error) {
	return s.batches.Of(id, effect)
}

// BatchOfOwn is BatchOf for bytes that nobody else has, which may become the batch.
func BatchOfOwn(s *Store, id layout.ID, effect []byte) (*batch.Effect, error) {
	return s.batches.OfOwn(id, effect)
}

// CommitRecord applies a record as Commit does a batch: all of its commits, and up to where the
// shard is applied, in one. The records of a shard are committed by one goroutine, in order.
// All batches are closed in any case; after an error nothing was applied, and no ticket is
// used.
func CommitRecord(s *Store, parts []RecordPart, applied Applied) error {
	return commitRecord(s, parts, applied, nil)
}

// recordBytes is how much memory the rows of a record take. A large batch that grows step by step would take twice as much.
func recordBytes(parts []RecordPart) int {
	bytes := 1 << 10 // what a record adds
	for _, part := range parts {
		if part.Batch != nil {
			bytes += part.Batch.Rows.Len()
		}
	}
	return bytes
}

// firstLarge returns the batch that the others of a record may be added to, so that it is not copied: the first, if it is large and has room for all that comes. It
// returns nil if there is none.
func firstLarge(parts []RecordPart) *pebble.Batch {
	for i, part := range parts {
		if part.Batch == nil {
			continue
		}
		bytes := part.Batch.Rows.Repr()
		if len(bytes) < batch.LargeBytes || cap(bytes)-len(bytes) < recordBytes(parts[i+1:]) {
			return nil
		}
		return part.Batch.Rows
	}
	return nil
}

// commitRecord is CommitRecord with more rows, which more adds.
func commitRecord(s *Store, parts []RecordPart, applied Applied, more func(*pebble.Batch) error) error {
	rows := firstLarge(parts)
	isOwn := rows == nil
	if isOwn {
		rows = s.db.NewBatchWithSize(recordBytes(parts))
	}
	defer func() {
		if isOwn {
			_ = rows.Close()
		}
		for _, part := range parts {
			if part.Batch != nil {
				part.Batch.Close()
			}
		}
	}()
	last, err := AppliedOf(s, applied.Shard)
	if err == nil && applied.Number != last.Number+1 {
		err = fmt.Errorf("%w: %d after %d of shard %d", ErrRecord, applied.Number, last.Number, applied.Shard)
	}
	if err == nil && more != nil {
		err = more(rows)
	}
	if err != nil {
		return err
	}
	p := &s.pipeline
	p.slots <- struct{}{}
	p.gate.RLock()
	defer p.gate.RUnlock()
	millis, format, err := gatherRecord(s, rows, parts)
	if err == nil {
		err = rows.Set(layout.AppliedKey(applied.Shard), applied.AppendTo(nil), nil)
	}
	if err == nil {
		err = s.apply(rows, millis, max(format, layout.FormatApplied))
	}
	if err != nil {
		s.rows.Undo(rows) // with those that were gathered
		for _, part := range slices.Backward(parts) {
			if part.Batch != nil {
				s.memos.Undo(part.Batch, p.group.Load())
			}
			s.holds.Undo(part.Batch)
		}
		<-p.slots
		return err
	}
	p.addRecord(parts)
	commits := uint64(0)
	for _, part := range parts {
		if b := part.Batch; b != nil {
			s.log.Add(b.ID, b.Logged)
			commits++
		}
	}
	s.counters.commits.Add(max(commits, 1) - 1) // the syncer counts one
	return nil
}

// gatherRecord puts the batches of a record into one, and tells all who look at commits before
// they are applied. It returns the latest time, and the format that the rows need. The gate is
// held.
func gatherRecord(s *Store, rows *pebble.Batch, parts []RecordPart) (millis int64, format uint32, err error) {
	group := s.pipeline.group.Load()
	for _, part := range parts {
		b := part.Batch
		if b == nil {
			continue
		}
		if b.Rows != rows {
			err = errors.Join(err, rows.Apply(b.Rows, nil))
		}
		foretell(s, b, group)
		millis, format = max(millis, b.Logged.Millis), max(format, b.Format())
	}
	return millis, format, err
}

// addRecord is add for the tickets of a record, which is one batch.
func (p *pipeline) addRecord(parts []RecordPart) {
	var tickets []Ticket
	for _, part := range parts {
		if part.Ticket != nil {
			tickets = append(tickets, part.Ticket)
		}
	}
	p.add(1, tickets...)
}

// AppliedOf returns up to where the store has the records of a shard. There is none with the
// number 0; a tenure is that of a former cluster then.
func AppliedOf(s *Store, shard byte) (Applied, error) {
	row, err := seek.CopyOf(s.db, layout.AppliedKey(shard))
	if row == nil || err != nil {
		return Applied{Shard: shard}, err
	}
	a, err := layout.DecodeApplied(shard, row)
	if err != nil {
		err = damage.AtRow(layout.AppliedKey(shard), err)
	}
	return a, err
}
