package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

const (
	// partsUnderWay is how many parts a node puts at a time, of all groups together: more would hold up the
	// records of others, and the heartbeats of the log.
	partsUnderWay = 4
	// partTimes is how much longer a part may be under way than a record.
	partTimes = 3
	// partsPause is how long a node waits after parts could not be read.
	partsPause = 20 * time.Millisecond
	// abandonTime is how long a node tries to delete parts that it does not need. If it cannot, they are
	// deleted when nothing was done for their transfer for a while.
	abandonTime = 2 * time.Second
)

// A parcel is a group in the log in parts.
type parcel struct {
	transfer shard.Transfer
	sum      record.Sum
}

// record returns the record that assembles a group.
func (p *parcel) record(g record.Group) record.Record {
	return record.Record{Kind: record.Assemble, Database: g.Database, Base: g.Base, Transfer: p.sum.Transfer(p.transfer.ID)}
}

// sentGroups are the groups in parts whose record this process has under way. It has them in memory, and does not read them from the log.
type sentGroups struct {
	mu     sync.Mutex
	groups map[record.TransferID]record.Group
}

func (s *sentGroups) add(id record.TransferID, g record.Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups == nil {
		s.groups = map[record.TransferID]record.Group{}
	}
	s.groups[id] = g
}

func (s *sentGroups) remove(id record.TransferID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.groups, id)
}

func (s *sentGroups) find(id record.TransferID) (record.Group, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.groups[id]
	return g, ok
}

// appendParts sends a group in parts, and then has a record assemble them in its turn. What became of it is what became of that record:
// until then the group never was. Parts that are of no use are deleted. That is tried, too, if the outcome is not known: a transfer whose
// record is in the log stays.
func (n *Node) appendParts(ctx context.Context, s int, w *waitingGroup) error {
	if most := record.MaxParts * n.o.PartBytes; w.group.Bytes() > most {
		return fmt.Errorf("%w: %d bytes, at most %d are taken", ErrTooLarge, w.group.Bytes(), most)
	}
	transfer, err := n.begin(ctx)
	if err != nil {
		return unsent(err)
	}
	w.parcel = &parcel{transfer: transfer}
	if err := n.send(ctx, s, w); err != nil {
		n.abandon(transfer)
		return unsent(err)
	}
	n.sent.add(transfer.ID, w.group)
	defer n.sent.remove(transfer.ID)
	if err := n.await(ctx, s, w); err != nil {
		n.abandon(transfer)
		return err
	}
	return nil
}

// unsent says that a group never was, because its parts could not be sent. It may not be known whether a part is in the log, but
// that is not told on: whether the group is, is known.
func unsent(err error) error {
	return fmt.Errorf("%w: parts of a group: %s", ErrNever, err.Error())
}

// begin begins a transfer. An id whose outcome is not known is not tried again.
func (n *Node) begin(ctx context.Context) (t shard.Transfer, err error) {
	ctx, cancel := n.bounded(ctx)
	defer cancel()
	err = shard.Repeat(ctx, func(ctx context.Context) error {
		var id record.TransferID
		binary.BigEndian.PutUint64(id[:8], uint64(n.o.ID))
		binary.BigEndian.PutUint64(id[8:], n.numbers.Add(1))
		t, err = n.o.Log.Begin(ctx, id)
		return err
	})
	return t, err
}

// bounded is a context for one part: it ends with that of the caller, with the node, or after a while that is longer than that of a record:
// nobody waits for a part but its own write.
func (n *Node) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, partTimes*n.o.AppendTime)
	stop := context.AfterFunc(n.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// send puts all parts of a group. It ends early once this node is not the home any more for which the group was judged.
func (n *Node) send(ctx context.Context, s int, w *waitingGroup) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	defer parts.Wait()
	number := uint32(0)
	for part := range w.group.Cut(n.o.PartBytes) {
		select {
		case <-n.slots:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-n.life.Done():
			return errEnded
		}
		if tenure, ok := n.Home(s); !ok || tenure != w.tenure {
			n.slots <- struct{}{}
			cancel(ErrNever)
			return ErrNever
		}
		w.parcel.sum.Add(part)
		at := number
		number++
		parts.Go(func() {
			defer func() { n.slots <- struct{}{} }()
			if err := n.put(ctx, w.parcel.transfer, at, part); err != nil {
				cancel(fmt.Errorf("part %d: %w", at, err))
			}
		})
	}
	parts.Wait()
	return context.Cause(ctx)
}

func (n *Node) put(ctx context.Context, t shard.Transfer, number uint32, part []byte) error {
	ctx, cancel := n.bounded(ctx)
	defer cancel()
	return shard.Repeat(ctx, func(ctx context.Context) error { return n.o.Log.PutPart(ctx, t, number, part) })
}

// abandon deletes the parts of a transfer that this node has given up.
func (n *Node) abandon(t shard.Transfer) {
	ctx, cancel := context.WithTimeout(n.life, abandonTime)
	defer cancel()
	err := shard.Repeat(ctx, func(ctx context.Context) error { return n.o.Log.Abandon(ctx, t, 0) })
	if err != nil && !errors.Is(err, shard.ErrGone) {
		n.o.Logger.Debug("the parts of a group are left for later", "transfer", t.ID, "error", err)
	}
}

// assembled returns a record as appliers know it: an Assemble is the record with the group that it assembles. It returns ErrBroken if
// that is not what the log has.
//
// The parts are read from the log of this node alone. They are there: each was put before the record was appended, so
// each has a smaller revision, and who knows the record knows the log up to its revision. They are deleted only after the record was.
func (n *Node) assembled(r record.Record) (record.Record, error) {
	if r.Kind != record.Assemble {
		return r, nil
	}
	if g, ok := n.sent.find(r.Transfer.ID); ok {
		return r.With(g), nil
	}
	joiner := record.NewJoiner(r)
	for number, more := joiner.Next(); more; number, more = joiner.Next() {
		parts, err := n.o.Log.Parts(n.life, r.Transfer.ID, number)
		if err != nil {
			if ended := pause.For(n.life, partsPause); ended != nil {
				return r, fmt.Errorf("parts of transfer %v: %w, %w", r.Transfer.ID, ended, err)
			}
			continue
		}
		if len(parts) == 0 {
			return r, fmt.Errorf("%w: part %d of transfer %v is missing", ErrBroken, number, r.Transfer.ID)
		}
		for _, part := range parts {
			if err := joiner.Add(part); err != nil {
				return r, fmt.Errorf("%w: %w", ErrBroken, err)
			}
		}
	}
	whole, err := joiner.Record()
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return whole, nil
}
