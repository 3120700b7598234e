package shard

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/livetree/livetree/internal/cluster/record"
)

// A Flushed says which records of each shard a node would still have applied after a crash.
type Flushed struct {
	Node    record.NodeID
	Numbers Numbers
	// Level is the newest level of records that the node can apply.
	Level uint16
	// Keep is from which record on the log is to stay for nodes that are sent copies by this one, 0 for none.
	Keep Numbers
	// Revision is that at which the node said so.
	Revision int64
}

// Flushes are the calls of a [Log] by which nodes tell what they have flushed, and so what may be trimmed.
type Flushes interface {
	// SetFlushed puts what a node has flushed, if what it said before has still the revision of f, 0 if it has said nothing yet. It
	// returns ErrStale, ErrUnknown or ErrAgain, perhaps wrapped.
	SetFlushed(ctx context.Context, f Flushed) error
	// Flushed returns what nodes have flushed, with everything that was put before the call.
	Flushed(ctx context.Context) ([]Flushed, error)
	// ForgetFlushed deletes what a node has said, if that has still the revision of f. It returns the errors of SetFlushed. It is for nodes that were
	// removed: their numbers are not given again.
	ForgetFlushed(ctx context.Context, f Flushed) error
}

// Publish puts what a node has flushed and can apply, whatever it has said before; the revision of f does not matter. A put of an earlier process that takes effect late can not undo that: a
// node that has started again from a copy may have flushed less.
func Publish(ctx context.Context, log Log, f Flushed) error {
	put := false
	return Repeat(ctx, func(ctx context.Context) error {
		rows, err := log.Flushed(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAgain, err)
		}
		revision := int64(0)
		for _, row := range rows {
			if row.Node != f.Node {
				continue
			}
			if put && row.Revision != f.Revision && row.Numbers == f.Numbers && row.Level == f.Level && row.Keep == f.Keep {
				return nil // by a put whose outcome was not known
			}
			revision = row.Revision
		}
		f.Revision = revision
		put = true
		if err := log.SetFlushed(ctx, f); err != nil {
			return fmt.Errorf("%w: %w", ErrAgain, err)
		}
		return nil
	})
}

// Append appends the row as it is stored, without its node and revision. What is kept is only there if something is.
func (f Flushed) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(f.Numbers.Append(b), f.Level)
	if f.Keep != (Numbers{}) {
		b = f.Keep.Append(b)
	}
	return b
}

// ParseFlushed reads a row that was stored. The first versions wrote no level, and did not say what is kept. A newer one may have written more, which is left out.
func ParseFlushed(b []byte) (f Flushed, err error) {
	const numbers = 8 * Count
	if len(b) != numbers && len(b) < numbers+2 {
		return f, fmt.Errorf("%w: a row of a node of %d bytes", ErrDamaged, len(b))
	}
	f.Numbers, err = ParseNumbers(b[:numbers])
	if len(b) > numbers {
		f.Level = binary.BigEndian.Uint16(b[numbers:])
	}
	if kept := b[min(len(b), numbers+2):]; err == nil && len(kept) >= numbers {
		f.Keep, err = ParseNumbers(kept[:numbers])
	}
	return f, err
}

// Append appends the numbers as they are stored.
func (n Numbers) Append(b []byte) []byte {
	for _, number := range n {
		b = binary.BigEndian.AppendUint64(b, number)
	}
	return b
}

// ParseNumbers reads numbers that were stored.
func ParseNumbers(b []byte) (n Numbers, err error) {
	if len(b) != 8*Count {
		return n, fmt.Errorf("%w: numbers of %d bytes", ErrDamaged, len(b))
	}
	for s := range n {
		n[s] = binary.BigEndian.Uint64(b[8*s:])
	}
	return n, nil
}
