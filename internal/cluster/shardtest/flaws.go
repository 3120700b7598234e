package shardtest

import (
	"context"
	"errors"
	"sync"

	"github.com/livetree/livetree/internal/cluster/shard"
)

// A Flaw makes a log, or what is built on it, wrong in one way.
type Flaw struct {
	Name string
	Wrap func(shard.Log) shard.Log
}

// Flaws are errors that the suite must find in any log. Those that only a fake can have are in [Options].
var Flaws = []Flaw{
	{"the compare left out", func(l shard.Log) shard.Log { return uncompared{l} }},
	{"resent with a new base", func(l shard.Log) shard.Log { return rebased{l} }},
	{"refused taken for never", func(l shard.Log) shard.Log { return &blind{Log: l} }},
	{"watch begun one revision late", func(l shard.Log) shard.Log { return lateWatch{l} }},
	{"assembled whatever became of the parts", func(l shard.Log) shard.Log { return unguarded{l} }},
	{"assembled with a missing part", func(l shard.Log) shard.Log { return forgetful{l} }},
}

// uncompared appends to whatever the head is.
type uncompared struct{ shard.Log }

func (l uncompared) Append(ctx context.Context, s int, _, next shard.Head, encoded []byte) (int64, error) {
	heads, err := l.Heads(ctx)
	if err != nil {
		return 0, errors.Join(shard.ErrUnknown, err)
	}
	return l.Log.Append(ctx, s, heads[s], next, encoded)
}

// rebased sends an append whose outcome is not known again, after whatever the head is then.
type rebased struct{ shard.Log }

func (l rebased) Append(ctx context.Context, s int, base, next shard.Head, encoded []byte) (int64, error) {
	revision, err := l.Log.Append(ctx, s, base, next, encoded)
	if !errors.Is(err, shard.ErrUnknown) {
		return revision, err
	}
	// It may have been unknown because ctx ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	heads, err := l.Heads(ctx)
	if err != nil {
		return 0, errors.Join(shard.ErrUnknown, err)
	}
	next.Number = heads[s].Number + 1
	return l.Log.Append(ctx, s, heads[s], next, encoded)
}

// blind shows another record when the log is looked at after a refusal.
type blind struct {
	shard.Log
	refused sync.Map // place of a refused record
}

type place struct {
	shard  int
	number uint64
}

func (l *blind) Append(ctx context.Context, s int, base, next shard.Head, encoded []byte) (int64, error) {
	revision, err := l.Log.Append(ctx, s, base, next, encoded)
	if errors.Is(err, shard.ErrStale) {
		l.refused.Store(place{s, next.Number}, true)
	}
	return revision, err
}

func (l *blind) Page(ctx context.Context, s int, from uint64) (shard.Page, error) {
	if _, ok := l.refused.LoadAndDelete(place{s, from}); ok {
		return shard.Page{Entries: []shard.Entry{{Shard: s, Number: from}}}, nil
	}
	return l.Log.Page(ctx, s, from)
}

// lateWatch begins each watch one revision late.
type lateWatch struct{ shard.Log }

func (l lateWatch) Watch(ctx context.Context, revision int64) (shard.Watch, error) {
	return l.Log.Watch(ctx, revision+1)
}

// unguarded appends the record of a transfer without a look at the transfer.
type unguarded struct{ shard.Log }

func (l unguarded) Assemble(ctx context.Context, _ shard.Transfer, s int, base, next shard.Head, encoded []byte) (int64, error) {
	return l.Append(ctx, s, base, next, encoded)
}

// forgetful does not put each third part.
type forgetful struct{ shard.Log }

func (l forgetful) PutPart(ctx context.Context, t shard.Transfer, number uint32, part []byte) error {
	if number%3 == 2 {
		return nil
	}
	return l.Log.PutPart(ctx, t, number, part)
}
