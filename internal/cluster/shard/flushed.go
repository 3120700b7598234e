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
}

// Publish puts what a node has flushed, whatever it has said before. A put of an earlier process that takes effect late can not undo that: a
// node that has started again from a copy may have flushed less.
func Publish(ctx context.Context, log Log, node record.NodeID, numbers Numbers) error {
	put := false
	f := Flushed{Node: node, Numbers: numbers}
	return Repeat(ctx, func(ctx context.Context) error {
		rows, err := log.Flushed(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAgain, err)
		}
		for _, row := range rows {
			if row.Node != node {
				continue
			}
			if put && row.Revision != f.Revision && row.Numbers == numbers {
				return nil // by a put whose outcome was not known
			}
			f.Revision = row.Revision
		}
		put = true
		if err := log.SetFlushed(ctx, f); err != nil {
			return fmt.Errorf("%w: %w", ErrAgain, err)
		}
		return nil
	})
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
