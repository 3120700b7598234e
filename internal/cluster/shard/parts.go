package shard

import (
	"context"
	"errors"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/pause"
)

// PageParts is how many parts of a transfer are read at once, at most.
const PageParts = 8

// ErrGone says that a transfer is no more open: it was abandoned, or a record has assembled it. What was asked for had no effect, and never
// will.
var ErrGone = errors.New("the transfer was abandoned")

// A Transfer is what the log knows of a group that is sent in parts. It is open until a record assembles it. From then on its parts
// belong to that record, and are deleted when the record is trimmed.
type Transfer struct {
	ID record.TransferID
	// Created is the revision at which it was begun. It tells it from one of the same id that was begun by a
	// call which took effect late, so that nothing that was meant for the one is done to the other.
	Created int64
	// Touched is the revision at which something was last done for it.
	Touched int64
}

// Transfers are the calls of a [Log] for groups that are larger than a record.
//
// A transfer has a key of its own. Each call for an open transfer compares it, and is refused once it is gone; also the append of the record that
// assembles the parts. So whoever abandons a transfer can do so at any time: either the record is in the log, and the parts stay, or
// it never will be. No clock is part of that argument.
type Transfers interface {
	// Begin begins a transfer. If it fails the id must not be used again.
	Begin(ctx context.Context, id record.TransferID) (Transfer, error)
	// PutPart stores a part of an open transfer. It returns ErrGone, ErrUnknown or ErrAgain, perhaps wrapped; after the last two the same
	// part may be put again.
	PutPart(ctx context.Context, t Transfer, number uint32, part []byte) error
	// Assemble is Append for the record that assembles a transfer. Beside the errors of Append it returns ErrGone, only if the
	// head is still base: then the record is not in the log and never will be.
	Assemble(ctx context.Context, t Transfer, shard int, base, next Head, encoded []byte) (revision int64, err error)
	// Abandon deletes an open transfer and its parts. If touched is not 0 it does so only if nothing was done for the transfer since. It
	// returns ErrGone if there was nothing to delete.
	Abandon(ctx context.Context, t Transfer, touched int64) error
	// Parts returns parts of a transfer that follow each other, from a number on, PageParts at most, as this node has them: none
	// if the first is not there. They were put before the record that assembles them was appended, so a node that has the record has the parts.
	Parts(ctx context.Context, id record.TransferID, from uint32) ([][]byte, error)
	// OpenTransfers returns transfers that are open.
	OpenTransfers(ctx context.Context) ([]Transfer, error)
}

// Assembling is a log whose appends are of records that assemble a transfer.
func Assembling(log Log, t Transfer) Log { return assembling{log, t} }

type assembling struct {
	Log
	transfer Transfer
}

func (l assembling) Append(ctx context.Context, s int, base, next Head, encoded []byte) (int64, error) {
	return l.Assemble(ctx, l.transfer, s, base, next, encoded)
}

// Repeat does something again as it was, until its outcome is known, or ctx ends. It must be such that a second time does nothing more than the first.
func Repeat(ctx context.Context, do func(context.Context) error) error {
	for wait := firstPause; ; wait = min(2*wait, mostPause) {
		err := do(ctx)
		if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrAgain) {
			return err
		}
		if ended := pause.For(ctx, wait); ended != nil {
			return errors.Join(ended, err)
		}
	}
}
