package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/livetree/livetree/internal/archive"
	"github.com/livetree/livetree/internal/store"
)

// ErrTooFar says that a restore from a base is shorter than going forward.
var ErrTooFar = errors.New("a newer base is nearer")

// Advance takes a data directory that Run made of one database at a moment forward to a later
// one. It fails with ErrTooFar if there is a base between the two. After another error the
// directory is of no use.
func Advance(ctx context.Context, r *archive.Reader, dir string, from time.Time, opts Options) error {
	p, err := newPlan(ctx, r, opts.At)
	if err != nil {
		return fmt.Errorf("restore %s: %w", opts.At, err)
	}
	if p.base.Moment().After(from) {
		return ErrTooFar
	}
	j := &restoring{Options: opts, reader: r, plan: p, data: dir}
	s, err := j.openStore()
	if err != nil {
		return err
	}
	return errors.Join(j.advance(ctx, s, from), s.Close())
}

// advance applies the records after a time.
func (j *restoring) advance(ctx context.Context, s *store.Store, from time.Time) error {
	r, err := NewReplayer(s)
	if err != nil {
		return err
	}
	err = j.reader.ReplayAfter(ctx, j.base, from, j.until, func(e archive.Entry) error { return j.apply(r, e) })
	if err != nil {
		return err
	}
	return errors.Join(r.Check(), r.Wait())
}
