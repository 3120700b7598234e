package shardtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/pause"
)

// A fate is what became of a record, as its writer was told.
type fate struct {
	token      string
	number     uint64 // 0 if it never was
	never      bool
	begun, end int // on the clock of the ledger
}

// A ledger holds what writers to one shard were told.
type ledger struct {
	shard int
	mu    sync.Mutex
	clock int
	count uint64
	fates []*fate
}

// begin notes a record that is about to be written.
func (l *ledger) begin(node int) (*fate, record.Origin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	l.count++
	f := &fate{token: fmt.Sprintf("%d/%d/%d", l.shard, node, l.count), begun: l.clock}
	l.fates = append(l.fates, f)
	return f, record.Origin{Node: record.NodeID(node + 1), Number: l.count}
}

// told notes what the writer was told.
func (l *ledger) told(f *fate, head shard.Head, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	switch {
	case err == nil:
		f.number, f.end = head.Number, l.clock
	case errors.Is(err, shard.ErrUnknown):
	case errors.Is(err, shard.ErrStale), errors.Is(err, shard.ErrAgain):
		f.never = true
	default:
		return err
	}
	return nil
}

// headsOf asks for the heads until it gets them.
func headsOf(ctx context.Context, log shard.Log) (heads shard.Heads, err error) {
	for {
		if heads, err = log.Heads(ctx); err == nil {
			return heads, nil
		}
		if ended := pause.For(ctx, 5*time.Millisecond); ended != nil {
			return heads, fmt.Errorf("no heads: %w, %w", ended, err)
		}
	}
}

// write writes one record after the head, with some bytes beside its token. It says whether it did.
func (l *ledger) write(ctx context.Context, log shard.Log, node, bytes int) (bool, error) {
	heads, err := headsOf(ctx, log)
	if err != nil {
		return false, err
	}
	return l.writeAfter(ctx, log, node, heads[l.shard], bytes)
}

func (l *ledger) writeAfter(ctx context.Context, log shard.Log, node int, base shard.Head, bytes int) (bool, error) {
	f, origin := l.begin(node)
	r := record.Record{Kind: record.Control, Origin: origin, Tenure: base.Tenure + 1, Previous: base.Digest}
	r.Effect = append(append([]byte(f.token), 0), make([]byte, bytes)...)
	encoded, err := r.Encode()
	if err != nil {
		return false, err
	}
	head, err := shard.Settle(ctx, log, l.shard, base, base.After(r.Tenure, encoded), encoded)
	return err == nil, l.told(f, head, err)
}

// check holds what the log has against what was told: each record that was acknowledged is there once, at its number; none that
// never was is there; one that was begun after another had been acknowledged comes after it; and the digests make a chain.
func (l *ledger) check(ctx context.Context, log shard.Log) error {
	found, err := l.read(ctx, log)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, f := range l.fates {
		at := found[f.token]
		switch {
		case f.never && at > 0:
			return fmt.Errorf("record %s, of which was said that it never was, is number %d", f.token, at)
		case f.number > 0 && at != f.number:
			return fmt.Errorf("record %s was acknowledged as number %d, and is number %d", f.token, f.number, at)
		}
		for _, earlier := range l.fates[:i] {
			if earlier.end > 0 && earlier.end < f.begun && at > 0 && earlier.number > at {
				return fmt.Errorf("record %s was begun after %s was acknowledged, and comes before it", f.token, earlier.token)
			}
		}
	}
	return nil
}

// read reads the whole log of the shard, and returns the number of each record.
func (l *ledger) read(ctx context.Context, log shard.Log) (map[string]uint64, error) {
	heads, err := headsOf(ctx, log)
	if err != nil {
		return nil, err
	}
	reader := chain{shard: l.shard, found: map[string]uint64{}}
	for reader.head.Number < heads[l.shard].Number {
		page, err := log.Page(ctx, l.shard, reader.head.Number+1)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Entries {
			if err := reader.Take(e); err != nil {
				return nil, err
			}
		}
		if err := pause.For(ctx, time.Millisecond); err != nil {
			return nil, fmt.Errorf("the log ends at %d, its head is %d: %w", reader.head.Number, heads[l.shard].Number, err)
		}
	}
	if now, err := headsOf(ctx, log); err != nil || now[l.shard] == heads[l.shard] && reader.head != heads[l.shard] {
		return nil, fmt.Errorf("the records make the head %+v, the log says %+v, %v", reader.head, heads[l.shard], fmt.Sprint(err))
	}
	return reader.found, nil
}

// A chain takes the records of one shard, and holds that they follow each other.
type chain struct {
	shard int
	head  shard.Head
	found map[string]uint64
	// taken is told of each entry that is new.
	taken func()
}

// Next implements [shard.Follower].
func (c *chain) Next(s int) uint64 {
	if s != c.shard {
		return ^uint64(0) // of no interest here
	}
	return c.head.Number + 1
}

// Take implements [shard.Follower].
func (c *chain) Take(e shard.Entry) error {
	if e.Shard != c.shard || e.Number <= c.head.Number {
		return nil
	}
	r, err := record.Decode(e.Record)
	if err != nil {
		return err
	}
	token := string(r.Effect)
	for i, b := range r.Effect {
		if b == 0 {
			token = string(r.Effect[:i])
			break
		}
	}
	switch {
	case e.Number != c.head.Number+1:
		return fmt.Errorf("record %d of shard %d follows %d", e.Number, e.Shard, c.head.Number)
	case r.Previous != c.head.Digest:
		return fmt.Errorf("record %d of shard %d belongs to another history", e.Number, e.Shard)
	case c.found[token] > 0:
		return fmt.Errorf("record %s is there as number %d and %d", token, c.found[token], e.Number)
	}
	c.head = c.head.After(r.Tenure, e.Record)
	c.head.Revision = e.Revision
	c.found[token] = e.Number
	if c.taken != nil {
		c.taken()
	}
	return nil
}

// some returns a small random number of bytes.
func some(r *rand.Rand) int { return r.IntN(100) }
