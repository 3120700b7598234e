package shardtest

import (
	"bytes"
	"context"
	"fmt"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// A transfer is one of a fake.
type transfer struct {
	shard.Transfer
	parts map[uint32]part
	// shard and number are those of the record that has assembled it, if number is not 0.
	shard   int
	number  uint64
	deleted int64 // the revision at which it was deleted
}

// A part is one of a transfer.
type part struct {
	bytes    []byte
	revision int64
}

// open returns a transfer, if it is the one that was begun, and open.
func (f *Fake) open(t shard.Transfer) (*transfer, error) {
	for _, known := range f.transfers {
		if known.ID == t.ID && known.Created == t.Created && known.number == 0 && known.deleted == 0 {
			return known, nil
		}
	}
	return nil, shard.ErrGone
}

// Begin implements [shard.Transfers].
func (l *memberLog) Begin(ctx context.Context, id record.TransferID) (t shard.Transfer, err error) {
	f := l.fake
	t.ID = id
	t.Created, err = l.propose(ctx, sending, 0, func() error {
		for _, known := range f.transfers {
			if known.ID == id && known.deleted == 0 {
				return shard.ErrGone
			}
		}
		f.revision++
		f.transfers = append(f.transfers, &transfer{Transfer: shard.Transfer{ID: id, Created: f.revision, Touched: f.revision}, parts: map[uint32]part{}})
		return nil
	})
	t.Touched = t.Created
	return t, err
}

// PutPart implements [shard.Transfers].
func (l *memberLog) PutPart(ctx context.Context, t shard.Transfer, number uint32, b []byte) error {
	if len(b) > record.MaxBytes {
		return fmt.Errorf("a part of %d bytes", len(b))
	}
	f := l.fake
	b = bytes.Clone(b)
	_, err := l.propose(ctx, sending, int(number), func() error {
		known, err := f.open(t)
		if err != nil {
			return err
		}
		f.revision++
		known.Touched = f.revision
		known.parts[number] = part{b, f.revision}
		return nil
	})
	return err
}

// Assemble implements [shard.Transfers].
func (l *memberLog) Assemble(ctx context.Context, t shard.Transfer, s int, base, next shard.Head, encoded []byte) (int64, error) {
	if len(encoded) > record.MaxBytes {
		return 0, fmt.Errorf("a record of %d bytes", len(encoded))
	}
	f := l.fake
	encoded = bytes.Clone(encoded)
	return l.propose(ctx, appending, s, func() error {
		known, err := f.open(t)
		if err != nil && f.heads[s].Revision == base.Revision {
			return err
		}
		if err != nil {
			return shard.ErrStale
		}
		if err := f.append(s, base, next, encoded); err != nil {
			return err
		}
		known.shard, known.number, known.Touched = s, next.Number, f.revision
		return nil
	})
}

// Abandon implements [shard.Transfers].
func (l *memberLog) Abandon(ctx context.Context, t shard.Transfer, touched int64) error {
	f := l.fake
	_, err := l.propose(ctx, sending, 0, func() error {
		known, err := f.open(t)
		if err != nil {
			return err
		}
		if touched != 0 && known.Touched != touched {
			return shard.ErrGone
		}
		f.revision++
		known.deleted = f.revision
		return nil
	})
	return err
}

// Parts implements [shard.Transfers].
func (l *memberLog) Parts(ctx context.Context, id record.TransferID, from uint32) (parts [][]byte, err error) {
	f, c := l.fake, l.call(paging, 0)
	c.ready = func() bool { return true }
	c.step = func() bool {
		if f.chance(20) {
			c.err = errLost
			return true
		}
		now := f.members[l.member].revision
		for _, known := range f.transfers {
			if known.ID != id || known.deleted > 0 && known.deleted <= now {
				continue
			}
			for len(parts) < shard.PageParts {
				p, ok := known.parts[from+uint32(len(parts))]
				if !ok || p.revision > now {
					break
				}
				parts = append(parts, p.bytes)
			}
		}
		return true
	}
	if err := f.do(ctx, c); err != nil {
		return nil, err
	}
	return parts, nil
}

// OpenTransfers implements [shard.Transfers].
func (l *memberLog) OpenTransfers(ctx context.Context) (open []shard.Transfer, err error) {
	f, c := l.fake, l.call(heading, 1)
	c.step = func() bool {
		for _, known := range f.transfers {
			if known.number == 0 && known.deleted == 0 {
				open = append(open, known.Transfer)
			}
		}
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := f.do(ctx, c); err != nil {
		return nil, err
	}
	return open, nil
}

// trimParts deletes the parts of records that are trimmed, with the revision that the log has.
func (f *Fake) trimParts() {
	var first shard.Numbers // that is left
	for _, e := range f.entries {
		if e.deleted == 0 && (first[e.Shard] == 0 || e.Number < first[e.Shard]) {
			first[e.Shard] = e.Number
		}
	}
	for _, known := range f.transfers {
		trimmed := known.number < first[known.shard] || f.options.PartsEarly
		if known.deleted == 0 && known.number > 0 && trimmed {
			known.deleted = f.revision
		}
	}
}
