package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/livetree/livetree/internal/archive/place"
)

// A RecordsRequest says which records of one database are read.
type RecordsRequest struct {
	Epoch    uint64 // of the line
	Database uint32
	// From is a time: all records of it and later ones are read, and some from before it. Zero
	// for all that are there.
	From time.Time
	// Until is the time after which no record is wanted; some may come all the same.
	Until time.Time
	// Segment, if it is not 0, is where to begin in place of From.
	Segment uint64
	// MaxBytes bounds the size of the segments that are read, but for the last of them.
	MaxBytes int64
}

// Records yields records of one database, by position, with the segment that each is in. It
// needs no base: it finds the first segment by the indexes. If there is more than MaxBytes to
// read, next is the segment to go on with; else it is 0. First is the time from which on all
// records of the database were read. Rows are valid until yield returns.
func (r *Reader) Records(ctx context.Context, q RecordsRequest, yield func(segment uint64, e Entry) error) (first time.Time, next uint64, err error) {
	w := &records{reader: r, request: q, yield: yield, number: q.Segment, round: true}
	if w.number == 0 {
		if w.number, err = r.segmentAt(ctx, q.Epoch, q.From.Add(-disorder).UnixMilli()); err != nil {
			return first, 0, err
		}
	}
	for more := true; more; w.number++ {
		if w.read > q.MaxBytes {
			return w.first, w.number, nil
		}
		if more, err = w.step(ctx); err != nil {
			if own, ok := errors.AsType[errYield](err); ok {
				err = own.error
			}
			return w.first, 0, err
		}
	}
	return w.first, 0, nil
}

// segmentAt returns a segment that is not after the first one with a record of a time or later.
// It reads few indexes, and these need not name all segments: where one does not tell, it
// returns the segment after the last that is known to be earlier.
func (r *Reader) segmentAt(ctx context.Context, epoch uint64, millis int64) (uint64, error) {
	groups, err := indexes(ctx, r.place, epoch)
	if err != nil {
		return 0, err
	}
	var failed error
	infosOf := func(i int) []SegmentInfo {
		infos, err := readIndex(ctx, r.place, epoch, groups[i])
		if _, damaged := errors.AsType[*Damage](err); err != nil && !damaged {
			failed = err
		}
		return infos
	}
	isLater := func(info SegmentInfo) bool { return info.Last >= millis }
	i := sort.Search(len(groups), func(i int) bool { return slices.ContainsFunc(infosOf(i), isLater) })
	// The segments of one round need not be in the order of times, and it may be in two groups:
	// begin a group earlier, with the last segment of the one before that.
	earlier := uint64(0)
	for i = max(0, i-2); i < len(groups) && failed == nil; i++ {
		for _, info := range infosOf(i) {
			if isLater(info) {
				return earlier + 1, failed
			}
			earlier = info.Number
		}
	}
	return earlier + 1, failed
}

// records goes through the segments of a line, for one database.
type records struct {
	reader  *Reader
	request RecordsRequest
	yield   func(uint64, Entry) error

	number   uint64 // the next segment
	sum      Hash   // of the one before, if it was read
	begun    bool
	round    bool // the segment before goes on, or is not known
	final    bool
	read     int64
	first    time.Time
	position uint64 // the last one that was yielded
}

// step reads one segment, and reports whether to go on.
func (w *records) step(ctx context.Context) (more bool, err error) {
	name := segmentName(w.request.Epoch, w.number)
	content, err := place.Read(ctx, w.reader.place, name, maxObject)
	if errors.Is(err, place.ErrNotFound) {
		return w.skip(ctx)
	}
	if err != nil {
		return false, err
	}
	w.read += int64(len(content))
	s, err := readSegment(content)
	switch {
	case err != nil:
	case s.head.Epoch != epochText(w.request.Epoch) || s.head.Number != w.number:
		err = fmt.Errorf("it is segment %d of %s", s.head.Number, s.head.Epoch)
	case w.begun && s.head.Previous != w.sum:
		err = errors.New("it does not follow the segment before it")
	default:
		err = w.take(s)
	}
	if _, own := errors.AsType[errYield](err); own || errors.Is(err, ErrNoIdentity) {
		return false, err
	}
	if err != nil {
		return false, &Damage{Object: name, LastGood: w.first, Err: err}
	}
	if !w.begun {
		w.first = time.UnixMilli(s.head.First)
	}
	if !w.round {
		w.final = s.head.Last > w.request.Until.Add(disorder).UnixMilli()
	}
	w.begun, w.sum, w.round = true, s.sum, s.head.GoesOn
	return w.round || !w.final, ctx.Err()
}

// skip finds the first segment that was not pruned; it reports false at the end of the line.
func (w *records) skip(ctx context.Context) (more bool, err error) {
	missing := segmentName(w.request.Epoch, w.number)
	prefix := segmentsPrefix(w.request.Epoch)
	name, err := firstName(ctx, w.reader.place, prefix, missing)
	if err != nil || name == "" {
		return false, err
	}
	if w.begun {
		if come, err := hasAny(ctx, w.reader.place, missing); come || err != nil {
			w.number-- // a server has sent it, and the later ones, since
			return come, err
		}
		return false, &Damage{Object: missing, LastGood: w.first, Err: errors.New("it is missing, and later segments are there")}
	}
	number, _, err := numberOf(name, prefix)
	w.number = number - 1
	return err == nil, err
}

// take checks the records that a segment has of the database, and yields those that are new.
func (w *records) take(s *segmentReader) error {
	identities := w.reader.options.Identities
	if err := s.open(identities); err != nil {
		return err
	}
	defer s.close()
	for _, p := range s.databases {
		if p.number != w.request.Database {
			continue
		}
		if err := w.check(s, p); err != nil {
			return err
		}
		if err := s.rewind(identities); err != nil {
			return err
		}
		return s.entries(w.hand)
	}
	return nil
}

// check follows the chain of the database through the segment.
func (w *records) check(s *segmentReader, p passage) error {
	mark := p.before
	err := s.entries(func(_ int, e Entry) error {
		if e.Database == p.number && e.Position > 0 {
			mark = mark.After(e)
		}
		return nil
	})
	if err == nil && mark != p.after {
		err = fmt.Errorf("the records of %s do not have the hash that the segment says", p.name)
	}
	return err
}

// hand yields a record, unless it is of another database or was yielded.
func (w *records) hand(_ int, e Entry) error {
	if e.Database != w.request.Database || e.Position <= w.position {
		return nil
	}
	w.position = e.Position
	if err := w.yield(w.number, e); err != nil {
		return errYield{err}
	}
	return nil
}
