package shardtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// A parcel is a transfer of the suite, and what it sends.
type parcel struct {
	shard.Transfer
	parts [][]byte
	sum   record.Sum
}

// transferID makes an id that no other case has.
func transferID(s int, r *rand.Rand) (id record.TransferID) {
	id[0] = byte(s)
	for i := range id[1:] {
		id[1+i] = byte(r.Uint32())
	}
	return id
}

// send begins a transfer and puts its parts, from all members and in any order.
func send(ctx context.Context, c Cluster, s, parts int, r *rand.Rand) (p *parcel, err error) {
	for p == nil {
		_, log := c.Log(r.IntN(c.Size()))
		t, err := log.Begin(ctx, transferID(s, r))
		switch {
		case err == nil:
			p = &parcel{Transfer: t}
		case ctx.Err() != nil:
			return nil, fmt.Errorf("no transfer is begun: %w", err)
		}
	}
	for i := range parts {
		p.parts = append(p.parts, bytes.Repeat([]byte{byte(r.Uint32()), byte(i)}, 1+r.IntN(500)))
		p.sum.Add(p.parts[i])
	}
	for _, i := range r.Perm(parts) {
		_, log := c.Log(r.IntN(c.Size()))
		if err := p.put(ctx, log, i); err != nil {
			return nil, fmt.Errorf("part %d of %d: %w", i, parts, err)
		}
	}
	return p, nil
}

func (p *parcel) put(ctx context.Context, log shard.Log, i int) error {
	return shard.Repeat(ctx, func(ctx context.Context) error { return log.PutPart(ctx, p.Transfer, uint32(i), p.parts[i]) })
}

// assemble appends the record of a transfer after a head.
func (p *parcel) assemble(ctx context.Context, log shard.Log, s int, base shard.Head, origin uint64) (shard.Head, error) {
	record := record.Record{
		Kind: record.Assemble, Origin: record.Origin{Node: 1, Number: origin}, Tenure: 1, Previous: base.Digest, Transfer: p.sum.Transfer(p.ID),
	}
	encoded, err := record.Encode()
	if err != nil {
		return shard.Head{}, err
	}
	return shard.Settle(ctx, shard.Assembling(log, p.Transfer), s, base, base.After(1, encoded), encoded)
}

// there returns the parts that a member has.
func (p *parcel) there(ctx context.Context, log shard.Log) (parts [][]byte, err error) {
	for {
		page, err := log.Parts(ctx, p.ID, uint32(len(parts)))
		switch {
		case err != nil && pause.For(ctx, time.Millisecond) != nil:
			return nil, err
		case err != nil:
		case len(page) == 0:
			return parts, nil
		}
		parts = append(parts, page...)
	}
}

// complete holds that a member which has the record of a transfer has its parts, without waiting for them.
func (p *parcel) complete(ctx context.Context, log shard.Log, s int, number uint64) error {
	if err := wantEntry(ctx, log, s, number); err != nil {
		return err
	}
	parts, err := p.there(ctx, log)
	if err != nil || !slices.EqualFunc(parts, p.parts, bytes.Equal) {
		return fmt.Errorf("record %d is there, and %d of its %d parts are, %v", number, len(parts), len(p.parts), fmt.Sprint(err))
	}
	return nil
}

// wantEntry waits until a member has a record.
func wantEntry(ctx context.Context, log shard.Log, s int, number uint64) error {
	for {
		page, err := log.Page(ctx, s, number)
		if err == nil && len(page.Entries) > 0 {
			return nil
		}
		if ended := pause.For(ctx, time.Millisecond); ended != nil {
			return fmt.Errorf("record %d does not come: %w, %v", number, ended, fmt.Sprint(err))
		}
	}
}

// testTransfers sends parts, assembles them, and trims.
func testTransfers(ctx context.Context, c Cluster, s int, r *rand.Rand) error {
	var head shard.Head
	var sent []*parcel
	for i := range 4 {
		p, err := send(ctx, c, s, 1+i*shard.PageParts, r)
		if err != nil {
			return err
		}
		_, log := c.Log(i % c.Size())
		if head, err = p.assemble(ctx, log, s, head, uint64(i)); err != nil {
			return fmt.Errorf("transfer %d is not assembled: %w", i, err)
		}
		sent = append(sent, p)
		for j := range c.Size() {
			_, log := c.Log(j)
			if err := p.complete(ctx, log, s, head.Number); err != nil {
				return fmt.Errorf("member %d: %w", j, err)
			}
		}
		if err := p.closed(ctx, log, s, head); err != nil {
			return err
		}
	}
	_, log := c.Log(0)
	var below shard.Numbers
	for below[s] = 1; below[s] <= 6; below[s]++ {
		if err := trim(ctx, log, below); err != nil {
			return err
		}
		for i, p := range sent {
			number := uint64(i + 1)
			if number >= min(below[s], head.Number) {
				if err := p.complete(ctx, log, s, number); err != nil {
					return fmt.Errorf("after a trim below %d: %w", below[s], err)
				}
			} else if err := p.vanishes(ctx, log); err != nil {
				return fmt.Errorf("after a trim below %d: %w", below[s], err)
			}
		}
	}
	return nil
}

// closed holds that nothing is done for a transfer that is assembled, or abandoned, any more.
func (p *parcel) closed(ctx context.Context, log shard.Log, s int, head shard.Head) error {
	if err := p.put(ctx, log, 0); !errors.Is(err, shard.ErrGone) {
		return fmt.Errorf("a part of a closed transfer: %v, want ErrGone", fmt.Sprint(err))
	}
	err := shard.Repeat(ctx, func(ctx context.Context) error { return log.Abandon(ctx, p.Transfer, 0) })
	if !errors.Is(err, shard.ErrGone) {
		return fmt.Errorf("a closed transfer is abandoned: %v, want ErrGone", fmt.Sprint(err))
	}
	if _, err := p.assemble(ctx, log, s, head, 1000); !errors.Is(err, shard.ErrGone) {
		return fmt.Errorf("a closed transfer is assembled: %v, want ErrGone", fmt.Sprint(err))
	}
	return nil
}

// vanishes waits until a member has no part of a transfer any more.
func (p *parcel) vanishes(ctx context.Context, log shard.Log) error {
	for {
		parts, err := p.there(ctx, log)
		if err == nil && len(parts) == 0 {
			return nil
		}
		if ended := pause.For(ctx, time.Millisecond); ended != nil {
			return fmt.Errorf("%d parts are still there, %v", len(parts), fmt.Sprint(err))
		}
	}
}

// testAbandoned has one member abandon transfers while another assembles them: the record is there with all parts, or
// neither.
func testAbandoned(ctx context.Context, c Cluster, s int, r *rand.Rand) error {
	for i := range 12 {
		p, err := send(ctx, c, s, 3, r)
		if err != nil {
			return err
		}
		_, log := c.Log(i % c.Size())
		_, other := c.Log((i + 1) % c.Size())
		heads, err := headsOf(ctx, log)
		if err != nil {
			return err
		}
		if err := p.isOpen(ctx, other); err != nil {
			return err
		}
		early := time.Duration(r.Int64N(int64(2 * time.Millisecond)))
		var head shard.Head
		var assembled error
		_ = atOnce(2, func(j int) error {
			if j == 0 {
				head, assembled = p.assemble(ctx, log, s, heads[s], uint64(i))
				return nil
			}
			if err := pause.For(ctx, early); err != nil {
				return err
			}
			return shard.Repeat(ctx, func(ctx context.Context) error { return other.Abandon(ctx, p.Transfer, 0) })
		})
		switch {
		case assembled == nil:
			err = p.complete(ctx, other, s, head.Number)
		case errors.Is(assembled, shard.ErrGone):
			err = errors.Join(p.closed(ctx, log, s, heads[s]), p.vanishes(ctx, other))
		default:
			err = fmt.Errorf("a transfer that may be abandoned: %w", assembled)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isOpen holds that a transfer is listed as open, and not abandoned by one that has not seen its last part.
func (p *parcel) isOpen(ctx context.Context, log shard.Log) error {
	for range 2 {
		var open []shard.Transfer
		err := errors.New("not asked")
		for err != nil {
			if open, err = log.OpenTransfers(ctx); err != nil && pause.For(ctx, time.Millisecond) != nil {
				return err
			}
		}
		i := slices.IndexFunc(open, func(t shard.Transfer) bool { return t.ID == p.ID })
		if i < 0 || open[i].Created != p.Created || open[i].Touched <= p.Created {
			return fmt.Errorf("the open transfers are %+v, want %+v among them, and touched later", open, p.Transfer)
		}
		err = shard.Repeat(ctx, func(ctx context.Context) error { return log.Abandon(ctx, p.Transfer, open[i].Touched-1) })
		if !errors.Is(err, shard.ErrGone) {
			return fmt.Errorf("a transfer is abandoned that was touched since: %v, want ErrGone", fmt.Sprint(err))
		}
	}
	return nil
}
