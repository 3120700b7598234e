package archive

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/archive/place"
)

// Pruned says what was removed.
type Pruned struct {
	Lines, Bases, Segments, Objects int
	Bytes                           int64
}

// Prune removes what no moment from `from` on needs. Of each line it keeps the newest
// base that shows that moment, and all that follows it; a line that ended before is
// removed if a later one shows the moment. It never removes the newest base of the
// archive, nor the last segment of a line that it keeps, nor anything of a line with
// damage in its manifests, nor the line of the server that had the claim last, which may go on with it. A line
// without a base is one whose removal was interrupted.
//
// A base loses its manifest first, so that it never seems whole, and segments go in
// ascending order. It may be interrupted, and run beside a writer.
func Prune(ctx context.Context, p place.Place, from time.Time) (Pruned, error) {
	var done Pruned
	lines, err := NewReader(p, ReaderOptions{}).Lines(ctx)
	if err != nil {
		return done, err
	}
	for _, line := range lines {
		if len(line.Damaged) > 0 {
			continue
		}
		var err error
		switch {
		case len(line.Bases) == 0 && !line.Last.After(from), len(line.Bases) > 0 && isOver(line, lines, from):
			err = done.unclaimed(ctx, p, line.Epoch)
		case len(line.Bases) > 0:
			err = done.part(ctx, p, line, from)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// Prune removes what no moment from `from` on needs, as the function of that name does.
func (w *Writer) Prune(ctx context.Context, from time.Time) (Pruned, error) {
	if taken := w.now().taken; taken != nil {
		return Pruned{}, taken
	}
	return Prune(ctx, w.place, from)
}

// isOver reports whether another line that began later shows the moment.
func isOver(line Line, lines []Line, from time.Time) bool {
	end := line.Bases[len(line.Bases)-1].Moment()
	if line.Last.After(end) {
		end = line.Last
	}
	return slices.ContainsFunc(lines, func(other Line) bool {
		return other.Epoch != line.Epoch && slices.ContainsFunc(other.Bases, func(m Manifest) bool {
			return m.Moment().After(end) && !m.Moment().After(from)
		})
	})
}

// unclaimed removes a whole line, unless its server has the claim, or may have it: the claim cannot be read.
func (d *Pruned) unclaimed(ctx context.Context, p place.Place, epoch uint64) error {
	claim, err := readClaim(ctx, p)
	if _, damaged := errors.AsType[*Damage](err); damaged {
		return nil
	}
	if err != nil || claim == nil || claim.Epoch == epochText(epoch) {
		return err
	}
	return d.line(ctx, p, epoch)
}

// line removes a whole line.
func (d *Pruned) line(ctx context.Context, p place.Place, epoch uint64) error {
	whole, _, _, err := bases(ctx, p, epoch)
	if err != nil {
		return err
	}
	for _, number := range whole {
		if err := d.base(ctx, p, epoch, number); err != nil {
			return err
		}
	}
	if err := d.all(ctx, p, linePrefix(epoch), func(string) bool { return true }); err != nil {
		return err
	}
	d.Lines++
	return nil
}

// part removes what comes before the newest base that shows a moment.
func (d *Pruned) part(ctx context.Context, p place.Place, line Line, from time.Time) error {
	if err := d.torn(ctx, p, line); err != nil {
		return err
	}
	keep := slices.IndexFunc(line.Bases, func(m Manifest) bool { return m.Moment().After(from) }) - 1
	if keep == -2 {
		keep = len(line.Bases) - 1
	}
	if keep < 0 {
		return nil
	}
	kept := line.Bases[keep]
	for _, m := range line.Bases[:keep] {
		if err := d.base(ctx, p, line.Epoch, m.Number); err != nil {
			return err
		}
	}
	// Bases that were given up have no manifest, and smaller numbers than a whole one.
	if err := d.below(ctx, p, basesPrefix(line.Epoch), kept.Number); err != nil {
		return err
	}
	if err := d.below(ctx, p, segmentsPrefix(line.Epoch), kept.Follows); err != nil {
		return err
	}
	return d.below(ctx, p, indexPrefix(line.Epoch), kept.Follows)
}

// torn removes what is there of bases that were given up, before the newest that is whole.
func (d *Pruned) torn(ctx context.Context, p place.Place, line Line) error {
	newest := line.Bases[len(line.Bases)-1].Number
	for _, number := range line.torn {
		if number >= newest {
			break
		}
		if err := d.all(ctx, p, basePrefix(line.Epoch, number), func(string) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

// base removes a base, its manifest first.
func (d *Pruned) base(ctx context.Context, p place.Place, epoch, number uint64) error {
	if err := p.Delete(ctx, manifestName(epoch, number)); err != nil {
		return err
	}
	d.Objects++
	d.Bases++
	return d.all(ctx, p, basePrefix(epoch, number), func(string) bool { return true })
}

// below removes the objects after a prefix whose number is below another.
func (d *Pruned) below(ctx context.Context, p place.Place, prefix string, number uint64) error {
	return d.all(ctx, p, prefix, func(name string) bool {
		n, _, err := numberOf(name, prefix)
		return err == nil && n < number
	})
}

// pruneBatch is how many names are gathered before they are deleted: a list should not
// be changed by who goes through it. They take a few MiB. A directory is read as a whole for each list.
const pruneBatch = 20_000

// all removes objects after a prefix, in the order of names, up to the first that stays.
func (d *Pruned) all(ctx context.Context, p place.Place, prefix string, goes func(name string) bool) error {
	for after := ""; ; {
		var batch []place.Object
		for o, err := range p.List(ctx, prefix, after) {
			if err != nil {
				return err
			}
			if !goes(o.Name) || len(batch) == pruneBatch {
				break
			}
			batch = append(batch, o)
		}
		for _, o := range batch {
			if err := p.Delete(ctx, o.Name); err != nil {
				return err
			}
			d.count(o, prefix)
			after = o.Name
		}
		if len(batch) < pruneBatch {
			return nil
		}
	}
}

func (d *Pruned) count(o place.Object, prefix string) {
	d.Objects++
	d.Bytes += o.Bytes
	if epoch, err := epochOf(o.Name); err == nil && prefix == segmentsPrefix(epoch) {
		d.Segments++
	}
}
