package archive

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/livetree/livetree/internal/archive/place"
)

// Which line tells a moment? An archive may hold those of several servers, which had it one
// after the other: one was replaced, or a second was tried for a day. Each makes a base when
// it takes the claim from another, and only the holder of the claim writes. So the line that
// was written to last, up to the moment, is that of the server which had the claim then. This
// is the rule for all: what is restored is what Newest has had proved.

// Newest returns the line that was written to last, ErrNoBase if there is none.
func (r *Reader) Newest(ctx context.Context) (Line, error) {
	lines, err := r.Lines(ctx)
	if err != nil {
		return Line{}, err
	}
	if len(lines) == 0 {
		return Line{}, ErrNoBase
	}
	chosen, err := r.choose(ctx, lines, time.Time{})
	return lines[max(chosen, 0)], err
}

// Find returns the newest base that shows a moment, or an earlier one, in the line that was
// written to last up to the moment. A zero time means now. It fails with ErrNoBase, and says
// how far the archive reaches back, if there is none. Damaged manifests are passed over, but
// not a line that has no other.
func (r *Reader) Find(ctx context.Context, at time.Time) (Manifest, error) {
	epochs, err := epochs(ctx, r.place)
	if err != nil {
		return Manifest{}, err
	}
	return r.find(ctx, epochs, at)
}

// FindIn is Find in one line.
func (r *Reader) FindIn(ctx context.Context, epoch uint64, at time.Time) (Manifest, error) {
	return r.find(ctx, []uint64{epoch}, at)
}

func (r *Reader) find(ctx context.Context, epochs []uint64, at time.Time) (Manifest, error) {
	var lines []Line
	for _, epoch := range epochs {
		line, err := r.seek(ctx, epoch, at)
		if err != nil {
			return Manifest{}, err
		}
		lines = append(lines, line)
	}
	chosen, err := r.choose(ctx, lines, at)
	if err != nil {
		return Manifest{}, err
	}
	if chosen >= 0 {
		if found := lines[chosen].baseAt(at); found != nil {
			return *found, nil
		}
		return Manifest{}, lines[chosen].Damaged[0]
	}
	return Manifest{}, noBase(lines)
}

// seek returns a line with the base that tells a moment, or with all of them if there is none. It finds it by few
// manifests. If a clock was set back in between, it may be an older base than the newest that tells the moment.
func (r *Reader) seek(ctx context.Context, epoch uint64, at time.Time) (Line, error) {
	whole, _, _, err := bases(ctx, r.place, epoch)
	if err != nil {
		return Line{}, err
	}
	i := len(whole)
	if !at.IsZero() {
		i = sort.Search(len(whole), func(i int) bool {
			m, failed := manifest(ctx, r.place, epoch, whole[i])
			if _, damaged := errors.AsType[*Damage](failed); failed != nil && !damaged && !errors.Is(failed, place.ErrNotFound) {
				err = failed
			}
			return failed == nil && m.Moment().After(at)
		})
	}
	for line := (Line{Epoch: epoch}); err == nil && i > 0; i-- {
		if err = line.read(ctx, r.place, whole[i-1]); line.baseAt(at) != nil {
			return line, err
		}
	}
	line := Line{Epoch: epoch}
	for i := 0; i < len(whole) && err == nil; i++ {
		err = line.read(ctx, r.place, whole[i])
	}
	return line, err
}

// noBase says how far some lines reach back.
func noBase(lines []Line) error {
	var first time.Time
	for _, line := range lines {
		for _, m := range line.Bases {
			if first.IsZero() || m.Moment().Before(first) {
				first = m.Moment()
			}
		}
	}
	if first.IsZero() {
		return fmt.Errorf("%w: it holds no base", ErrNoBase)
	}
	return fmt.Errorf("%w: its first moment is %s", ErrNoBase, first.UTC().Format(time.RFC3339Nano))
}

// baseAt returns the newest base that shows a moment or an earlier one, nil if there is none.
func (l Line) baseAt(at time.Time) (found *Manifest) {
	for i, m := range l.Bases {
		if (at.IsZero() || !m.Moment().After(at)) && (found == nil || !m.Moment().Before(found.Moment())) {
			found = &l.Bases[i]
		}
	}
	return found
}

// choose returns which of some lines was written to last, up to a moment; -1 if none was. Of a line
// that has bases, one must show the moment, unless all of them are damaged.
func (r *Reader) choose(ctx context.Context, lines []Line, at time.Time) (int, error) {
	var able []int
	for i, line := range lines {
		if line.baseAt(at) != nil || len(line.Bases) == 0 && len(line.Damaged) > 0 {
			able = append(able, i)
		}
	}
	if len(able) == 1 {
		return able[0], nil // as in most archives
	}
	chosen, newest := -1, time.Time{}
	for _, i := range able {
		written, err := r.written(ctx, lines[i], at)
		if err != nil {
			return -1, err
		}
		if written.After(newest) || chosen >= 0 && written.Equal(newest) && lines[i].beganAfter(lines[chosen], at) {
			chosen, newest = i, written
		}
	}
	return chosen, nil
}

// beganAfter reports whether the newest base up to a moment is newer than that of another line.
func (l Line) beganAfter(other Line, at time.Time) bool {
	own, others := l.baseAt(at), other.baseAt(at)
	return own != nil && (others == nil || own.Moment().After(others.Moment()))
}

// forever is after all times of commits.
const forever = 1<<53 - 1

// written returns when a line was written to last, up to a moment: by the times of its bases
// and of its records. Without a base it is zero if no record is that old. It reads a few
// indexes, two segments, and those at the end that no index has.
func (r *Reader) written(ctx context.Context, line Line, at time.Time) (last time.Time, err error) {
	after := uint64(0)
	if base := line.baseAt(at); base != nil {
		last, after = base.Moment(), base.Follows
	}
	if at.IsZero() {
		at = time.UnixMilli(forever)
	}
	number, err := r.segmentAt(ctx, line.Epoch, at.UnixMilli()+1)
	if err != nil {
		return last, err
	}
	// All segments before that one are up to the moment, and a part of it may be.
	for number = max(number, after+2) - 1; last.Before(at); number++ {
		s, err := r.segmentFrom(ctx, line.Epoch, number)
		if err != nil || s == nil || time.UnixMilli(s.head.First).After(at) {
			return last, err
		}
		number = s.head.Number
		if newest := time.UnixMilli(min(s.head.Last, at.UnixMilli())); newest.After(last) {
			last = newest
		}
	}
	return last, nil
}

// segmentFrom reads the first whole segment from a number on; nil if there is none.
func (r *Reader) segmentFrom(ctx context.Context, epoch, number uint64) (*segmentReader, error) {
	name := segmentName(epoch, number)
	for name != "" {
		content, err := place.Read(ctx, r.place, name, maxObject)
		if err == nil {
			s, damage := readSegment(content)
			if damage == nil && segmentName(epoch, s.head.Number) == name {
				return s, nil
			}
		} else if !errors.Is(err, place.ErrNotFound) {
			return nil, err
		}
		if name, err = firstName(ctx, r.place, segmentsPrefix(epoch), name); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
