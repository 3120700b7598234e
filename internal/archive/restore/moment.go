package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/store/layout"
)

// A Moment says what to restore. The zero value is the newest state.
type Moment struct {
	// Time is the moment; all commits up to it are restored.
	Time time.Time
	// Database and Position, if they are set, are those of a commit. Its database is
	// restored up to it, the others up to its time.
	Database string
	Position uint64
}

// String describes the moment for people.
func (m Moment) String() string {
	switch {
	case m.Database != "":
		return fmt.Sprintf("position %d of %s", m.Position, m.Database)
	case m.Time.IsZero():
		return "the newest state"
	}
	return m.Time.UTC().Format(time.RFC3339Nano)
}

// ParseMoment reads DATABASE:POSITION, or what parse reads as a time; the newest state if it is
// empty.
func ParseMoment(text string, parse func(string) (time.Time, error)) (m Moment, err error) {
	if text == "" {
		return m, nil
	}
	name, position, _ := strings.Cut(text, ":")
	if n, err := strconv.ParseUint(position, 10, 64); err == nil && strings.Trim(name, "0123456789") != "" {
		return Moment{Database: name, Position: n}, nil
	}
	if m.Time, err = parse(text); err != nil {
		err = fmt.Errorf("%w; or DATABASE:POSITION", err)
	}
	return m, err
}

// ErrNoCommit says that an archive does not hold a commit.
var ErrNoCommit = errors.New("the archive does not hold that commit")

// A plan is what is to be restored.
type plan struct {
	base  archive.Manifest
	until time.Time // zero for all
	// number and position are those of a database that ends at a position, if there is
	// one.
	number   uint32
	position uint64
}

// newPlan finds the base for a moment, and the time of a commit.
func newPlan(ctx context.Context, r *archive.Reader, opts Options) (plan, error) {
	at := opts.At
	switch {
	case at.Database != "":
		return findCommit(ctx, r, at)
	case len(opts.Lines) > 0:
		return findIn(ctx, r, at.Time, opts)
	}
	base, err := r.Find(ctx, at.Time)
	return plan{base: base, until: at.Time}, err
}

// takes reports whether a record is to be restored.
func (p plan) takes(e archive.Entry) bool {
	return p.position == 0 || e.Database != p.number || e.Position <= p.position
}

// findCommit looks for a commit, from the newest base of each line to the oldest. It reads the
// records after each base that does not show the commit or a later one.
func findCommit(ctx context.Context, r *archive.Reader, at Moment) (plan, error) {
	lines, err := r.Lines(ctx)
	if err != nil {
		return plan{}, err
	}
	// The line that was written to last comes first, as for the newest state: see archive.Reader.Find.
	slices.SortStableFunc(lines, func(a, b archive.Line) int { return b.End().Compare(a.End()) })
	var list []archive.Manifest
	for _, line := range lines {
		slices.SortStableFunc(line.Bases, func(a, b archive.Manifest) int {
			return cmp.Or(b.Moment().Compare(a.Moment()), cmp.Compare(b.Number, a.Number))
		})
		list = append(list, line.Bases...)
	}
	var damage *archive.Damage
	for _, base := range list {
		p, err := findAfter(ctx, r, base, at)
		if err == nil {
			err = p.rebase(ctx, r, list)
		}
		if found, ok := errors.AsType[*archive.Damage](err); ok {
			damage = cmp.Or(damage, found) // an older base may lead to the commit without it
		} else if !errors.Is(err, ErrNoCommit) {
			return p, err
		}
	}
	if damage != nil {
		return plan{}, fmt.Errorf("%w, or it comes after damage: %w", ErrNoCommit, damage)
	}
	return plan{}, fmt.Errorf("%w: %s", ErrNoCommit, at)
}

// findAfter looks for a commit in a base and the records after it. Of databases that
// had the name one after the other it takes the last. Records of one that was dropped before the base may come
// after it; if the base shows a later database of that name they do not count: that one may have come to the
// position before, which an older base tells. Damage after the commit does no harm.
func findAfter(ctx context.Context, r *archive.Reader, base archive.Manifest, at Moment) (plan, error) {
	p := plan{base: base, position: at.Position}
	var least layout.ID // the serial number of the database that has the name in the base, then of the one that was found
	look := func(number uint32, name string, position uint64, millis int64) {
		if serial := layout.ID(number).Serial(); name == at.Database && position == at.Position && serial >= least {
			least, p.number, p.until = serial, number, time.UnixMilli(millis)
		}
	}
	err := r.Databases(ctx, base, func(d archive.Database) error {
		if d.Name == at.Database {
			least = layout.ID(d.Number).Serial()
		}
		look(d.Number, d.Name, d.Position, d.Millis)
		return nil
	})
	if err == nil {
		err = r.Replay(ctx, base, time.Time{}, func(e archive.Entry) error {
			look(e.Database, e.Name, e.Position, e.Millis)
			return nil
		})
	}
	if _, ok := errors.AsType[*archive.Gap](err); ok {
		err = nil // what comes after it is after another base
	}
	if damage, ok := errors.AsType[*archive.Damage](err); ok && p.number != 0 && !p.until.After(damage.LastGood) {
		err = nil
	}
	if err == nil && p.number == 0 {
		err = ErrNoCommit
	}
	return p, err
}

// rebase takes the newest base of a list, which has the newest first, that shows no
// commit after the one that was found: also not of other databases, but for those of the
// same millisecond. Damaged bases are passed over.
func (p *plan) rebase(ctx context.Context, r *archive.Reader, list []archive.Manifest) error {
	for _, base := range list {
		if base.Epoch != p.base.Epoch || base.Moment().After(p.until) {
			continue
		}
		fits := true
		err := r.Databases(ctx, base, func(d archive.Database) error {
			fits = fits && (d.Number != p.number || d.Position <= p.position)
			return nil
		})
		if _, damaged := errors.AsType[*archive.Damage](err); err != nil && !damaged {
			return err
		}
		if err == nil && fits {
			p.base = base
			return nil
		}
	}
	return fmt.Errorf("%w: the commit is of %s, before the first base", archive.ErrNoBase, p.until.UTC().Format(time.RFC3339Nano))
}
