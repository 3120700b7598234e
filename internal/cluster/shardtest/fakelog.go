package shardtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
)

// memberLog implements [shard.Log] for one life of a member.
type memberLog struct {
	fake               *Fake
	member, generation int
}

func (l *memberLog) call(kind, s int) *call {
	c := &call{member: l.member, generation: l.generation, kind: kind, shard: s}
	c.ready = func() bool { return !l.fake.members[l.member].cut }
	return c
}

// A proposal is a change of the log on its way.
type proposal struct {
	// take makes the change if what it compares holds, and returns why it does not.
	take     func() error
	done     bool
	err      error
	revision int64 // of the change
}

// effect compares a proposal and makes its change.
func (f *Fake) effect(p *proposal) {
	p.done = true
	if p.err = p.take(); p.err == nil {
		p.revision = f.revision
	}
}

// propose has a change take effect at some time or never, and returns its revision if that is told.
func (l *memberLog) propose(ctx context.Context, kind, s int, take func() error) (int64, error) {
	f, c := l.fake, l.call(kind, s)
	p := &proposal{take: take}
	c.leave = func() {
		if !p.done {
			f.late = append(f.late, p)
		}
	}
	c.step = func() bool {
		switch {
		case p.done && f.chance(8):
			c.err = errLost
		case p.done:
			c.err = p.err
		case f.chance(20):
			c.err = shard.ErrAgain
		case f.chance(6):
			c.err = errLost
			if f.chance(2) {
				f.late = append(f.late, p)
			}
		default:
			f.effect(p)
			return false
		}
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := f.do(ctx, c)
	switch {
	case err == nil:
		return p.revision, nil
	case errors.Is(err, shard.ErrStale), errors.Is(err, shard.ErrAgain), errors.Is(err, shard.ErrGone):
		return 0, err
	}
	return 0, fmt.Errorf("%w: %w", shard.ErrUnknown, err)
}

// Append implements [shard.Log].
func (l *memberLog) Append(ctx context.Context, s int, base, next shard.Head, encoded []byte) (int64, error) {
	if len(encoded) > record.MaxBytes {
		return 0, fmt.Errorf("a record of %d bytes", len(encoded))
	}
	encoded = bytes.Clone(encoded)
	return l.propose(ctx, appending, s, func() error { return l.fake.append(s, base, next, encoded) })
}

// append compares the head and appends a record.
func (f *Fake) append(s int, base, next shard.Head, encoded []byte) error {
	if f.heads[s].Revision != base.Revision && !f.options.NoCompare {
		return shard.ErrStale
	}
	f.revision++
	next.Revision = f.revision
	f.heads[s] = next
	f.entries = append(f.entries, stored{
		Entry: shard.Entry{Shard: s, Number: next.Number, Revision: f.revision, Record: encoded}, head: next,
	})
	return nil
}

// Heads implements [shard.Log].
func (l *memberLog) Heads(ctx context.Context) (heads shard.Heads, err error) {
	f, c := l.fake, l.call(heading, 0)
	read := false
	c.step = func() bool {
		switch {
		case f.chance(20):
			c.err = errLost
			return true
		case read:
			return true
		}
		heads, read = f.heads, true
		if f.options.StaleHeads {
			heads = f.headsAt(f.members[l.member].revision)
		}
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := f.do(ctx, c); err != nil {
		return shard.Heads{}, err
	}
	return heads, nil
}

// headsAt are the heads as of an older revision.
func (f *Fake) headsAt(revision int64) (heads shard.Heads) {
	for _, e := range f.entries {
		if e.Revision <= revision {
			heads[e.Shard] = e.head
		}
	}
	return heads
}

// Page implements [shard.Log].
func (l *memberLog) Page(ctx context.Context, s int, from uint64) (page shard.Page, err error) {
	f, c := l.fake, l.call(paging, s)
	c.ready = func() bool { return true }
	c.step = func() bool {
		page = shard.Page{Revision: f.members[l.member].revision, Last: true}
		for _, e := range f.entries {
			if e.Shard != s || e.Number < from || e.Revision > page.Revision || e.deleted > 0 && e.deleted <= page.Revision {
				continue
			}
			if len(page.Entries) == shard.PageEntries {
				page.Last = false
				break
			}
			page.Entries = append(page.Entries, e.Entry)
		}
		if len(page.Entries) > 0 && page.Entries[0].Number > max(from, 1) {
			c.err = shard.ErrTrimmed
		}
		return true
	}
	if err := f.do(ctx, c); err != nil {
		return shard.Page{}, err
	}
	return page, nil
}

// fakeWatch implements [shard.Watch].
type fakeWatch struct {
	log  *memberLog
	next int64
}

// Watch implements [shard.Log].
func (l *memberLog) Watch(_ context.Context, revision int64) (shard.Watch, error) {
	return &fakeWatch{l, revision}, nil
}

// Next implements [shard.Watch].
func (w *fakeWatch) Next(ctx context.Context) (entries []shard.Entry, err error) {
	f, c := w.log.fake, w.log.call(watching, 0)
	come := func() (entries []shard.Entry) {
		for _, e := range f.entries {
			if e.Revision >= w.next && e.Revision <= f.members[w.log.member].revision {
				entries = append(entries, e.Entry)
			}
		}
		return entries
	}
	compacted := func() bool { return w.next < f.floor && f.members[w.log.member].revision >= f.floor }
	c.ready = func() bool { return compacted() || len(come()) > 0 }
	c.step = func() bool {
		if compacted() || f.chance(30) {
			c.err = shard.ErrCompacted
			return true
		}
		entries = come()
		entries = entries[:1+f.rand.IntN(len(entries))]
		w.next = entries[len(entries)-1].Revision + 1
		return true
	}
	err = f.do(ctx, c)
	return entries, err
}

// Close implements [shard.Watch].
func (w *fakeWatch) Close() {}

// Trim implements [shard.Log].
func (l *memberLog) Trim(ctx context.Context, below shard.Numbers) error {
	f, c := l.fake, l.call(trimming, 0)
	c.step = func() bool {
		f.revision++
		for i, e := range f.entries {
			if e.deleted == 0 && e.Number < min(below[e.Shard], f.heads[e.Shard].Number) {
				f.entries[i].deleted = f.revision
			}
		}
		f.trimParts()
		f.floor = f.revision
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return f.do(ctx, c)
}

// SetFlushed implements [shard.Flushes].
func (l *memberLog) SetFlushed(ctx context.Context, row shard.Flushed) error {
	f := l.fake
	_, err := l.propose(ctx, flushing, 0, func() error {
		i := slices.IndexFunc(f.flushed, func(known shard.Flushed) bool { return known.Node == row.Node })
		if i < 0 {
			i = len(f.flushed)
			f.flushed = append(f.flushed, shard.Flushed{Node: row.Node})
		}
		if f.flushed[i].Revision != row.Revision {
			return shard.ErrStale
		}
		f.revision++
		f.flushed[i] = shard.Flushed{Node: row.Node, Numbers: row.Numbers, Level: row.Level, Keep: row.Keep, Revision: f.revision}
		return nil
	})
	return err
}

// ForgetFlushed implements [shard.Flushes].
func (l *memberLog) ForgetFlushed(ctx context.Context, row shard.Flushed) error {
	f := l.fake
	_, err := l.propose(ctx, flushing, 0, func() error {
		i := slices.IndexFunc(f.flushed, func(known shard.Flushed) bool { return known.Node == row.Node && known.Revision == row.Revision })
		if i < 0 {
			return shard.ErrStale
		}
		f.revision++
		f.flushed = slices.Delete(f.flushed, i, i+1)
		return nil
	})
	return err
}

// Flushed implements [shard.Flushes].
func (l *memberLog) Flushed(ctx context.Context) (rows []shard.Flushed, err error) {
	f, c := l.fake, l.call(heading, 2)
	c.step = func() bool {
		rows = slices.DeleteFunc(slices.Clone(f.flushed), func(row shard.Flushed) bool { return row.Revision == 0 })
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := f.do(ctx, c); err != nil {
		return nil, err
	}
	return rows, nil
}
