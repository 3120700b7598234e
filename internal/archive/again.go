package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/livetree/livetree/internal/archive/place"
)

// lookBack is how many segments are read again to compare records that were sent twice. A
// server that was killed sends only its last segment again.
const lookBack = 64

// checkAgain compares records of a segment that were all read before, so that the chain does
// not come to the mark of what was read: they must be the same.
func (p *replay) checkAgain(ctx context.Context, d passage) error {
	s := p.states[d.number]
	if !s.known || d.after.Position == 0 || d.after.Position >= s.mark.Position {
		return nil
	}
	for number := p.number; number > p.start; number-- {
		if p.number-number >= lookBack {
			return fmt.Errorf("the records of %s up to position %d come again, long after they were read", d.name, d.after.Position)
		}
		there, found, err := p.markIn(ctx, number, d.number, d.after.Position)
		if err != nil {
			return err
		}
		if found {
			if there != d.after {
				return fmt.Errorf("the records of %s up to position %d are not those that were read before", d.name, d.after.Position)
			}
			return nil
		}
	}
	return nil // they are in the base, which does not tell
}

// errFound ends a search.
var errFound = errors.New("found")

// markIn returns where the chain of a database stands after a position, if a segment has it.
func (p *replay) markIn(ctx context.Context, number uint64, database uint32, position uint64) (mark Mark, found bool, err error) {
	content, err := place.Read(ctx, p.reader.place, segmentName(p.epoch, number), maxObject)
	if err != nil && !errors.Is(err, place.ErrNotFound) {
		err = errYield{err}
	}
	if err != nil {
		return mark, false, err
	}
	s, err := readSegment(content)
	if err != nil {
		return mark, false, err
	}
	if err := s.open(p.reader.options.Identities); err != nil {
		return mark, false, err
	}
	defer s.close()
	for _, d := range s.databases {
		if d.number != database || d.before.Position >= position || d.after.Position < position {
			continue
		}
		mark = d.before
		err := s.entries(func(_ int, e Entry) error {
			if e.Database != database {
				return nil
			}
			if mark = mark.After(e); e.Position >= position {
				return errFound
			}
			return nil
		})
		if errors.Is(err, errFound) {
			return mark, mark.Position == position, nil
		}
		return mark, false, err
	}
	return mark, false, nil
}
