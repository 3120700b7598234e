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

// A Cluster is what the suite runs against: members with one log.
type Cluster interface {
	Size() int
	// Log returns the log as a member has it, and a context that ends when the member does.
	Log(i int) (context.Context, shard.Log)
	// Restart stops a member hard and starts it again.
	Restart(i int)
}

// A Case is one part of the suite. It writes to a shard of its own, and returns what is wrong.
type Case struct {
	Name string
	Run  func(ctx context.Context, c Cluster, shard int, r *rand.Rand) error
}

// Cases are the suite. They may run one after the other on one cluster, each with another shard.
var Cases = []Case{
	{"heads", testHeads},
	{"bounds", testBounds},
	{"writers", testWriters},
	{"pages", testPages},
	{"watch", testWatch},
	{"given up", testGivenUp},
	{"restarts", testRestarts},
	{"transfers", testTransfers},
	{"abandoned", testAbandoned},
	{"flushed", testFlushed},
}

// testHeads holds that every member sees at once what any other was told, and that a writer with an
// old head is refused.
func testHeads(ctx context.Context, c Cluster, s int, r *rand.Rand) error {
	l := &ledger{shard: s}
	var known []shard.Head
	for i := range 12 {
		_, log := c.Log(i % c.Size())
		heads, err := headsOf(ctx, log)
		if err != nil {
			return err
		}
		known = append(known, heads[s])
		if heads[s].Number != uint64(i) {
			return fmt.Errorf("after %d records the head at member %d is %d", i, i%c.Size(), heads[s].Number)
		}
		if ok, err := l.writeAfter(ctx, log, i, heads[s], some(r)); !ok || err != nil {
			return fmt.Errorf("record %d after the head %+v is refused: %v", i+1, heads[s], fmt.Sprint(err))
		}
		if ok, err := l.writeAfter(ctx, log, i, known[r.IntN(len(known))], some(r)); ok || err != nil {
			return fmt.Errorf("a record after an old head is taken: %v", fmt.Sprint(err))
		}
	}
	_, log := c.Log(0)
	return l.check(ctx, log)
}

// testBounds appends the longest record, and one that is longer.
func testBounds(ctx context.Context, c Cluster, s int, _ *rand.Rand) error {
	l := &ledger{shard: s}
	_, log := c.Log(0)
	if ok, err := l.write(ctx, log, 0, record.MaxBytes-100); !ok || err != nil {
		return fmt.Errorf("a long record is refused: %v", fmt.Sprint(err))
	}
	heads, err := headsOf(ctx, log)
	if err != nil {
		return err
	}
	long := make([]byte, record.MaxBytes+1)
	_, err = log.Append(ctx, s, heads[s], heads[s].After(1, long), long)
	if err == nil || errors.Is(err, shard.ErrUnknown) || errors.Is(err, shard.ErrAgain) || errors.Is(err, shard.ErrStale) {
		return fmt.Errorf("a record that is too long: %v, want an error that says so", fmt.Sprint(err))
	}
	return l.check(ctx, log)
}

// testWriters has all members write to one shard at once.
func testWriters(ctx context.Context, c Cluster, s int, r *rand.Rand) error {
	l := &ledger{shard: s}
	err := atOnce(max(2, c.Size()), func(i int) error {
		_, log := c.Log(i % c.Size())
		for written := 0; written < 6; {
			ok, err := l.write(ctx, log, i, 10)
			if err != nil {
				return err
			}
			if ok {
				written++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, log := c.Log(r.IntN(c.Size()))
	return l.check(ctx, log)
}

// atOnce runs a function n times at once, and returns the first error.
func atOnce(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// testPages turns pages, and trims.
func testPages(ctx context.Context, c Cluster, s int, r *rand.Rand) error {
	const records = shard.PageEntries + 9
	l := &ledger{shard: s}
	_, log := c.Log(0)
	for range records {
		if ok, err := l.write(ctx, log, 0, some(r)); !ok || err != nil {
			return fmt.Errorf("a lone writer is refused: %v", fmt.Sprint(err))
		}
	}
	if err := l.check(ctx, log); err != nil {
		return err
	}
	if err := wantPage(ctx, log, s, 1, 1, shard.PageEntries); err != nil {
		return err
	}
	if err := wantPage(ctx, log, s, records+1, 0, 0); err != nil {
		return err
	}
	var below shard.Numbers
	for _, test := range []struct{ below, first uint64 }{{20, 20}, {10, 20}, {records, records}, {records + 5, records}} {
		below[s] = test.below
		if err := trim(ctx, log, below); err != nil {
			return err
		}
		if err := wantPage(ctx, log, s, test.first, test.first, min(shard.PageEntries, int(records-test.first+1))); err != nil {
			return err
		}
		if err := wantTrimmed(ctx, log, s, test.first-1); err != nil {
			return err
		}
	}
	heads, err := headsOf(ctx, log)
	if err == nil && heads[s].Number != records {
		err = fmt.Errorf("after a trim of everything the head is %d, want %d", heads[s].Number, records)
	}
	return err
}

func trim(ctx context.Context, log shard.Log, below shard.Numbers) error {
	for {
		err := log.Trim(ctx, below)
		if err == nil || pause.For(ctx, time.Millisecond) != nil {
			return err
		}
	}
}

// wantPage waits for a page of n entries from a number on: a member may lag.
func wantPage(ctx context.Context, log shard.Log, s int, from, first uint64, n int) error {
	for {
		page, err := log.Page(ctx, s, from)
		if err == nil && len(page.Entries) == n && (n == 0 || page.Entries[0].Number == first) && page.Last == (n < shard.PageEntries) {
			return nil
		}
		if ended := pause.For(ctx, time.Millisecond); ended != nil {
			return fmt.Errorf("the page from %d has %d entries, last %v, %v; want %d from %d", from, len(page.Entries), page.Last, fmt.Sprint(err), n, first)
		}
	}
}

// wantTrimmed waits until a member knows that a record was trimmed.
func wantTrimmed(ctx context.Context, log shard.Log, s int, number uint64) error {
	for {
		page, err := log.Page(ctx, s, number)
		if errors.Is(err, shard.ErrTrimmed) {
			return nil
		}
		if ended := pause.For(ctx, time.Millisecond); ended != nil {
			return fmt.Errorf("a page from below a trim has %d entries, %v, want ErrTrimmed", len(page.Entries), fmt.Sprint(err))
		}
	}
}

// testWatch has every member follow the log while all write, and compacts meanwhile.
func testWatch(ctx context.Context, c Cluster, s int, _ *rand.Rand) error {
	const each, extra = 8, 5
	want := uint64(c.Size()*each + extra)
	l := &ledger{shard: s}
	follow := func(i int) error {
		life, log := c.Log(i)
		life, done := context.WithCancel(life)
		defer done()
		stop := context.AfterFunc(ctx, done)
		defer stop()
		reader := &chain{shard: s, found: map[string]uint64{}}
		reader.taken = func() {
			if reader.head.Number == want {
				done()
			}
		}
		err := shard.Follow(life, log, reader)
		if reader.head.Number != want {
			return fmt.Errorf("member %d has followed up to %d of %d: %v", i, reader.head.Number, want, fmt.Sprint(err))
		}
		return nil
	}
	write := func(i, n int) error {
		_, log := c.Log(i)
		for written := 0; written < n; {
			ok, err := l.write(ctx, log, i, 10)
			if err != nil {
				return err
			}
			if ok {
				written++
			}
		}
		return trim(ctx, log, shard.Numbers{})
	}
	// Some are there before anybody follows, the others come meanwhile.
	if err := write(0, extra); err != nil {
		return err
	}
	return atOnce(2*c.Size(), func(i int) error {
		if i < c.Size() {
			return follow(i)
		}
		return write(i-c.Size(), each)
	})
}

// testGivenUp has writers give up at any time, and send the same record again.
func testGivenUp(ctx context.Context, c Cluster, s int, r *rand.Rand) error {
	l := &ledger{shard: s}
	for i := range 20 {
		_, log := c.Log(i % c.Size())
		heads, err := headsOf(ctx, log)
		if err != nil {
			return err
		}
		hasty := &hastyLog{Log: log, patience: time.Duration(r.Int64N(int64(2 * time.Millisecond)))}
		if ok, err := l.writeAfter(ctx, hasty, i, heads[s], some(r)); !ok || err != nil {
			return fmt.Errorf("a lone writer that sends its record again is refused: %v", fmt.Sprint(err))
		}
	}
	_, log := c.Log(0)
	return l.check(ctx, log)
}

// hastyLog gives up its first appends early.
type hastyLog struct {
	shard.Log
	patience time.Duration
}

// Append implements [shard.Log].
func (l *hastyLog) Append(ctx context.Context, s int, base, next shard.Head, encoded []byte) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	l.patience = 2*l.patience + time.Millisecond
	return l.Log.Append(ctx, s, base, next, encoded)
}

// testRestarts stops members hard while all write.
func testRestarts(ctx context.Context, c Cluster, s int, r *rand.Rand) error {
	l := &ledger{shard: s}
	stop := make(chan struct{})
	rounds := 2 * c.Size()
	err := atOnce(c.Size()+1, func(i int) error {
		if i == c.Size() {
			defer close(stop)
			for round := range rounds {
				if err := pause.For(ctx, time.Duration(20+r.IntN(60))*time.Millisecond); err != nil {
					return err
				}
				c.Restart(round % c.Size())
				if err := settled(ctx, c, round%c.Size()); err != nil {
					return err
				}
			}
			return nil
		}
		for {
			select {
			case <-stop:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			default:
			}
			life, log := c.Log(i)
			if _, err := l.write(life, log, i, 10); err != nil && life.Err() == nil {
				return err
			}
			if err := pause.For(ctx, 3*time.Millisecond); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	for i := range c.Size() {
		_, log := c.Log(i)
		if err := l.check(ctx, log); err != nil {
			return fmt.Errorf("at member %d: %w", i, err)
		}
	}
	return nil
}

// settled waits until a member that was started again can tell the heads.
func settled(ctx context.Context, c Cluster, i int) error {
	_, log := c.Log(i)
	_, err := headsOf(ctx, log)
	return err
}
