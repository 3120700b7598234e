package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/archive/place"
)

// A replay goes through the records after a base.
type replay struct {
	reader *Reader
	epoch  uint64
	until  int64
	all    bool // there is no until
	yield  func(Entry) error

	number uint64 // the last segment that was read
	sum    Hash   // of it
	late   bool   // the next segment is not the first after the base: nothing is known before it
	round  bool   // it goes on with the next
	final  bool   // no round after this one has a record that is wanted
	newest int64  // the newest time in the first segment of the round
	good   time.Time
	base   time.Time
	from   uint64    // the number of the base
	start  uint64    // the segment before the first
	later  []uint64  // the bases after it that were not looked at
	coming *Manifest // the first of those that were
	states map[uint32]*state
}

// A state is how far the records of a database were read.
type state struct {
	mark  Mark
	known bool // the chain of the mark, which a base may not say
	made  bool // it was told that it is there
	ended bool // a record after the moment was met
}

// disorder is by how much the record of a commit may be older than one of another database
// that became durable before it: a commit has its time before it is worked out and stored.
const disorder = time.Minute

// Replay yields the records after a base up to a moment, in the order in which they were
// sent: those of one database by position. A zero time means all of them. Rows are valid
// until yield returns.
//
// All of a segment is checked before its first record is yielded, so all that was yielded
// is good. Segments are read until no later one can hold a record up to the moment: the
// records of different databases need not be in the order of their times.
//
// Where records are missing, as a later base says, it ends with a *Gap, unless the moment is
// before that. An archive that is damaged gives a *Damage. A caller who asked for a moment that is not
// after its LastGood has got what can be had of that moment: the damaged segment may have
// held some records of the same time, and a late one of another database.
func (r *Reader) Replay(ctx context.Context, m Manifest, until time.Time, yield func(Entry) error) error {
	p, err := r.newReplay(ctx, m, until, yield)
	if err != nil {
		return err
	}
	err = r.Databases(ctx, m, func(d Database) error {
		s := &state{mark: Mark{Position: d.Position}, made: true}
		if d.Chain != nil {
			s.mark.Chain, s.known = *d.Chain, true
		}
		p.states[d.Number] = s
		return nil
	})
	if err != nil {
		return err
	}
	return p.run(ctx)
}

// ReplayAfter is Replay for somebody who has all records up to a time after the base: it begins
// with the first segment that may hold a later one, and so yields some that are there already.
func (r *Reader) ReplayAfter(ctx context.Context, m Manifest, after, until time.Time, yield func(Entry) error) error {
	p, err := r.newReplay(ctx, m, until, yield)
	if err != nil {
		return err
	}
	number, err := r.segmentAt(ctx, p.epoch, after.Add(-disorder).UnixMilli())
	if err != nil {
		return err
	}
	if number > m.Follows+1 {
		p.number, p.late = number-1, true
		p.round, p.newest = true, m.Moment().UnixMilli() // it may be in the middle of one
	}
	return p.run(ctx)
}

func (r *Reader) newReplay(ctx context.Context, m Manifest, until time.Time, yield func(Entry) error) (*replay, error) {
	epoch, err := m.epoch()
	if err != nil {
		return nil, err
	}
	whole, _, _, err := bases(ctx, r.place, epoch)
	later := slices.DeleteFunc(whole, func(n uint64) bool { return n <= m.Number })
	return &replay{
		reader: r, epoch: epoch, until: until.UnixMilli(), all: until.IsZero(), yield: yield, later: later, from: m.Number,
		number: m.Follows, start: m.Follows, sum: m.FollowsSum, good: m.Moment(), base: m.Moment(), states: map[uint32]*state{},
	}, err
}

// run reads one segment after the other.
func (p *replay) run(ctx context.Context) error {
	for {
		if more, err := p.next(ctx); err != nil || !more {
			return err
		}
	}
}

// gap returns the base that does not continue what was read, nil if it has not come to one. It reads the manifest of
// a base when it has passed the one before.
func (p *replay) gap(ctx context.Context) (*Manifest, error) {
	for {
		if p.coming != nil && p.number < p.coming.Follows {
			return nil, nil
		}
		if p.coming != nil && !p.coming.Unknown.IsZero() {
			return p.coming, nil
		}
		if p.coming = nil; len(p.later) == 0 {
			return nil, nil
		}
		m, err := manifest(ctx, p.reader.place, p.epoch, p.later[0])
		if _, damaged := errors.AsType[*Damage](err); err != nil && !damaged && !errors.Is(err, place.ErrNotFound) {
			return nil, err
		}
		if p.later = p.later[1:]; err == nil {
			p.coming = &m
		}
	}
}

// next reads one more segment, and reports whether to go on.
func (p *replay) next(ctx context.Context) (more bool, err error) {
	if gap, err := p.gap(ctx); err != nil {
		return false, err
	} else if gap != nil {
		if !p.all && p.until <= p.lastGood().UnixMilli() {
			return false, nil
		}
		return false, &Gap{From: p.lastGood(), To: gap.Moment()}
	}
	name := segmentName(p.epoch, p.number+1)
	content, err := place.Read(ctx, p.reader.place, name, maxObject)
	if errors.Is(err, place.ErrNotFound) {
		return p.checkEnd(ctx)
	}
	if err != nil {
		return false, err
	}
	more, err = p.segment(ctx, content)
	if own, ok := errors.AsType[errYield](err); ok {
		return false, own.error
	}
	if err == nil || errors.Is(err, ErrNoIdentity) || ctx.Err() != nil {
		return more, err
	}
	if !p.all && p.until <= p.lastGood().UnixMilli() {
		return false, nil // the segment was looked at only to see that it is later
	}
	return false, p.reader.unlessPruned(ctx, p.epoch, p.from, &Damage{Object: name, LastGood: p.lastGood(), Err: err})
}

// lastGood returns the last moment of which all records were read. There may be more of
// the same millisecond as the newest of them. A base stands for its own moment.
func (p *replay) lastGood() time.Time {
	if before := p.good.Add(-time.Millisecond); before.After(p.base) {
		return before
	}
	return p.base
}

// checkEnd fails if the segment that was not found is missing: it is not, if a server has sent it, and what shows
// that it is missing, since. Then there is more.
func (p *replay) checkEnd(ctx context.Context) (more bool, err error) {
	missing := segmentName(p.epoch, p.number+1)
	why, err := p.passedEnd(ctx, missing)
	if err != nil || why == nil {
		return false, err
	}
	if come, err := hasAny(ctx, p.reader.place, missing); come || err != nil {
		return come, err
	}
	return false, p.reader.unlessPruned(ctx, p.epoch, p.from, &Damage{Object: missing, LastGood: p.lastGood(), Err: why})
}

// passedEnd returns what shows that the line does not end before a segment: those after it, or the index.
func (p *replay) passedEnd(ctx context.Context, missing string) (why, err error) {
	next, err := firstName(ctx, p.reader.place, segmentsPrefix(p.epoch), missing)
	if err != nil {
		return nil, err
	}
	if next != "" {
		return errors.New("it is missing, and later segments are there"), nil
	}
	infos, err := readIndex(ctx, p.reader.place, p.epoch, groupEnd(p.number+1))
	if _, damaged := errors.AsType[*Damage](err); err != nil && !damaged {
		return nil, err
	}
	if n := len(infos); n > 0 && infos[n-1].Number > p.number {
		return errors.New("it is missing, and the index names it"), nil
	}
	return nil, nil
}

// segment goes through one segment.
func (p *replay) segment(ctx context.Context, content []byte) (more bool, err error) {
	s, err := readSegment(content)
	if err != nil {
		return false, err
	}
	switch {
	case s.head.Epoch != epochText(p.epoch) || s.head.Number != p.number+1:
		return false, fmt.Errorf("it is segment %d of %s", s.head.Number, s.head.Epoch)
	case s.head.Previous != p.sum && !p.late:
		return false, errors.New("it does not follow the segment before it")
	}
	p.late = false
	if !p.round {
		// A record up to the moment was durable when this round was begun, and is in it at the
		// latest, if the round has records that are much later.
		p.newest = s.head.Last
		p.final = !p.all && p.newest > p.until+disorder.Milliseconds()
	}
	if err := s.open(p.reader.options.Identities); err != nil {
		return false, err
	}
	defer s.close()
	if err := p.checkBefore(s.databases); err != nil {
		return false, err
	}
	if err := p.checkChains(ctx, s); err != nil {
		return false, err
	}
	if err := s.rewind(p.reader.options.Identities); err != nil {
		return false, err
	}
	err = s.entries(func(_ int, e Entry) error {
		if err := p.take(e); err != nil {
			return err
		}
		return ctx.Err()
	})
	if err != nil {
		return false, err
	}
	p.number, p.sum, p.round = s.head.Number, s.sum, s.head.GoesOn
	if !p.round {
		p.good = time.UnixMilli(p.newest)
	}
	return p.round || !p.final, nil
}

// checkBefore fails if records are missing between what was read of a database and what
// a segment holds of it.
func (p *replay) checkBefore(databases []passage) error {
	for _, d := range databases {
		s := p.states[d.number]
		if s == nil {
			// It was made since the base, or it was dropped before it and its last records
			// were sent after: whoever understands them can tell.
			s = &state{mark: d.before, known: true}
			p.states[d.number] = s
		}
		switch {
		case d.before.Position > s.mark.Position:
			return fmt.Errorf("the records of %s between the positions %d and %d are missing", d.name, s.mark.Position, d.before.Position)
		case d.before.Position == s.mark.Position && !s.known:
			s.mark, s.known = d.before, true
		case d.before.Position == s.mark.Position && d.before != s.mark:
			return fmt.Errorf("the records of %s up to position %d are not those that were read before", d.name, d.before.Position)
		}
	}
	return nil
}

// checkChains follows the chains through a segment. They must pass through what was read
// before, and end where the segment says.
func (p *replay) checkChains(ctx context.Context, s *segmentReader) error {
	marks := make([]Mark, len(s.databases))
	for i, d := range s.databases {
		marks[i] = d.before
	}
	err := s.entries(func(place int, e Entry) error {
		before := marks[place]
		if e.Position == 0 && before == (Mark{}) && len(e.Row) == 0 {
			return ctx.Err() // it says that the database was made
		}
		if e.Position <= before.Position {
			return fmt.Errorf("the position %d of %s is out of order", e.Position, e.Name)
		}
		marks[place] = before.After(e)
		if err := p.states[e.Database].check(e, before, marks[place]); err != nil {
			return err
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for i, d := range s.databases {
		if marks[i] != d.after {
			return fmt.Errorf("the records of %s do not have the hash that the segment says", d.name)
		}
		if err := p.checkAgain(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// check fails if the chain of a segment does not pass through the mark of what was read.
// The mark stays where it is: a segment whose check fails was not read.
func (s *state) check(e Entry, before, after Mark) error {
	switch {
	case e.Position == s.mark.Position && !s.known:
		s.mark, s.known = after, true
	case e.Position == s.mark.Position && after != s.mark:
		return fmt.Errorf("the record of %s at position %d is not the one that was read before", e.Name, e.Position)
	case e.Position > s.mark.Position && before.Position <= s.mark.Position && before != s.mark:
		return fmt.Errorf("the record of %s at position %d does not follow the one at %d", e.Name, e.Position, s.mark.Position)
	}
	return nil
}

// take yields a record of a segment that was checked, unless it was read before.
func (p *replay) take(e Entry) error {
	s := p.states[e.Database]
	switch {
	case e.Position == 0 && s.mark.Position == 0 && !s.made:
		s.made = true
		if !p.all && e.Millis > p.until {
			return nil
		}
		return p.hand(e)
	case e.Position <= s.mark.Position:
		return nil
	}
	s.mark = s.mark.After(e)
	if s.ended = s.ended || !p.all && e.Millis > p.until; s.ended {
		return nil
	}
	return p.hand(e)
}

// hand yields a record.
func (p *replay) hand(e Entry) error {
	if err := p.yield(e); err != nil {
		return errYield{err}
	}
	return nil
}
