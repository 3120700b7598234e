package logkeep

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/batch"
	"github.com/livetree/livetree/internal/store/damage"
	"github.com/livetree/livetree/internal/store/layout"
)

// This file finds out about the logs that were there when the store was opened. It
// looks at a few rows of each: a log may have a million.

const (
	// SurveyPortion is how many logs are looked at in a round of the keeper.
	SurveyPortion = 1000
	// surveyRows is how many rows a log may have to be read whole.
	surveyRows = 64
	// surveySegments is how many segments a longer log is taken for.
	surveySegments = maxSegments / 2
	// surveySample is how many rows of a segment stand for the others.
	surveySample = 4
)

// A Survey is how far a survey of the logs has come.
type Survey struct {
	next layout.ID
	done bool
	rows int // that were read
}

// Read returns how many rows were read, and whether all logs were looked at.
func (s *Survey) Read() (rows int, all bool) { return s.rows, s.done }

// Look looks at the next logs, at most so many. It reads the newest state,
// durable or not: a log is always cut before a row that is in the write-ahead log
// already.
func (k *Keeper) Look(survey *Survey, most int) {
	if survey.done {
		return
	}
	it, err := k.db.NewIter(&pebble.IterOptions{LowerBound: []byte{layout.SpaceLog}, UpperBound: []byte{layout.SpaceLog + 1}})
	if err != nil {
		k.logger.Error("look for logs of changes", "error", damage.Mark(err))
		return
	}
	v := &surveyor{Iterator: it, keeper: k}
	defer func() { _ = v.Close() }()
	ok := v.SeekGE(layout.AppendSpace(nil, layout.SpaceLog, survey.next))
	for n := 0; ok && n < most; n++ {
		id := v.id()
		if err := v.look(id); err != nil {
			k.logger.Error("look at the log of changes", "database", uint32(id), "error", damage.Mark(err))
		}
		survey.next = id + 1
		k.lookedTo(uint64(survey.next))
		if !v.Valid() || v.id() <= id {
			ok = v.SeekGE(layout.AppendSpace(nil, layout.SpaceLog, survey.next))
		}
	}
	survey.rows += v.rows
	if survey.done = !ok; survey.done {
		k.lookedTo(allLooked)
	}
	if err := v.Error(); err != nil {
		k.logger.Error("look for logs of changes", "error", damage.Mark(err))
	}
}

// lookedTo notes how far the survey has come: up to there logs may be cut.
func (k *Keeper) lookedTo(id uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looked = max(k.looked, id)
}

// A surveyor looks at rows of logs.
type surveyor struct {
	*pebble.Iterator
	keeper *Keeper
	rows   int
}

// id returns the database of the current row.
func (v *surveyor) id() layout.ID { return layout.ID(binary.BigEndian.Uint32(v.Key()[1:])) }

// row returns the current row.
func (v *surveyor) row() (r batch.LogRow, err error) {
	v.rows++
	row, err := v.ValueAndErr()
	if err != nil {
		return r, err
	}
	if len(row) < layout.LogHead || len(v.Key()) != layout.LogKeyBytes {
		return r, damage.AtRow(v.Key(), errors.New("log row cut short"))
	}
	return batch.LogRow{Position: layout.LogPosition(v.Key()), Millis: layout.LogMillis(row), Bytes: int64(len(v.Key()) + len(row))}, nil
}

// look looks at the log of a database, whose first row is the current one. A log of
// one row is nothing to remember; the iterator is then at the next log.
func (v *surveyor) look(id layout.ID) error {
	first, err := v.row()
	if err != nil {
		return err
	}
	if !v.Next() || v.id() != id {
		return v.Error()
	}
	if !v.SeekLT(v.keeper.known(id)) || v.id() != id {
		return v.Error() // all of it was committed since
	}
	newest, err := v.row()
	if err != nil {
		return err
	}
	l := newKeptLog(id, first)
	switch rows := newest.Position - first.Position; {
	case rows >= surveyRows:
		err = v.sample(l, newest)
	case rows > 0:
		err = v.read(l, newest)
	}
	if err == nil {
		v.keeper.found(l)
	}
	return err
}

// read reads the rest of a log up to a row.
func (v *surveyor) read(l *keptLog, newest batch.LogRow) error {
	for ok := v.SeekGE(layout.LogKey(nil, l.id, l.newest.Position+1)); ok; ok = v.Next() {
		r, err := v.row()
		if err != nil {
			return err
		}
		l.add(r, v.keeper.keep)
		if r.Position >= newest.Position {
			return nil
		}
	}
	return fmt.Errorf("the log ends before position %d: %w", newest.Position, errors.Join(damage.ErrDamaged, v.Error()))
}

// sample halves a log up to a row again and again, where that tells the most.
func (v *surveyor) sample(l *keptLog, newest batch.LogRow) error {
	_, bytes, err := v.probe(l.id, l.newest.Position)
	if err != nil {
		return err
	}
	l.newest, l.opened = newest, newest.Millis
	l.segments[0].millis = max(l.began, newest.Millis)
	l.segments[0].bytes = bytes * int64(newest.Position-l.segments[0].first+1)
	l.bytes = l.segments[0].bytes
	for len(l.segments) < surveySegments {
		i, ok := l.heaviest(v.keeper.keep)
		if !ok {
			break
		}
		if err := v.halve(l, i); err != nil {
			return err
		}
	}
	return nil
}

// probe returns the time of the row at a position, and the mean size of some rows
// after it.
func (v *surveyor) probe(id layout.ID, position uint64) (millis, bytes int64, err error) {
	n := int64(0)
	for ok := v.SeekGE(layout.LogKey(nil, id, position)); ok && v.id() == id && n <= surveySample; ok = v.Next() {
		r, err := v.row()
		if err != nil {
			return 0, 0, err
		}
		if n == 0 {
			millis = r.Millis
		} else {
			bytes += r.Bytes
		}
		n++
	}
	return millis, bytes / max(1, n-1), v.Error()
}

// halve makes two of a segment.
func (v *surveyor) halve(l *keptLog, i int) error {
	left := &l.segments[i]
	end := l.end(i)
	middle := left.first + (end-left.first)/2
	millis, bytes, err := v.probe(l.id, middle-1)
	if err != nil {
		return err
	}
	right := logSegment{first: middle, millis: max(left.millis, millis), bytes: bytes * int64(end-middle)}
	half := left.bytes * int64(middle-left.first) / int64(end-left.first)
	l.bytes += half + right.bytes - left.bytes
	left.millis, left.bytes = millis, half
	l.segments = append(l.segments, logSegment{})
	copy(l.segments[i+2:], l.segments[i+1:])
	l.segments[i+1] = right
	return nil
}

// end returns the position after the last of a segment.
func (l *keptLog) end(i int) uint64 {
	if i+1 < len(l.segments) {
		return l.segments[i+1].first
	}
	return l.newest.Position + 1
}

// heaviest returns the segment that is the most of the log, unless all are small.
func (l *keptLog) heaviest(keep Keep) (found int, ok bool) {
	most := 2.0 / surveySegments
	for i, s := range l.segments {
		if w := l.weight(i, i, keep); w > most && l.end(i)-s.first > 2*surveySample {
			found, ok, most = i, true, w
		}
	}
	return found, ok
}

// known returns the key before which the keeper does not know the log.
func (k *Keeper) known(id layout.ID) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.logs[id]; l != nil {
		return layout.LogKey(nil, id, l.segments[0].first)
	}
	return layout.AppendSpace(nil, layout.SpaceLog, id+1)
}

// found notes what the survey found of a log.
func (k *Keeper) found(l *keptLog) {
	k.mu.Lock()
	defer k.mu.Unlock()
	later := k.logs[l.id]
	if later == nil {
		k.insert(l)
		later = l
	} else {
		k.remove(later)
		later.prepend(l, k.keep)
		k.insert(later)
	}
	if later.bytes > k.keep.DatabaseBytes && !later.full {
		later.full = true
		k.full = append(k.full, later)
	}
}
