package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/cluster"
	"github.com/livetree/livetree/internal/cluster/record"
	"github.com/livetree/livetree/internal/cluster/shard"
	"github.com/livetree/livetree/internal/cluster/shardtest"
	"github.com/livetree/livetree/internal/pause"
)

// partsWorld is a test with one writer of large groups, which may have another log than the test.
type partsWorld struct {
	ctx    context.Context
	all    *sync.WaitGroup
	log    shard.Log
	writer *cluster.Node
	data   *counts
	tenure uint64
}

// withParts runs a test in which parts are small, with one writer that is home of shard 2.
func withParts(t *testing.T, seed uint64, wrap func(shard.Log) shard.Log, test func(w *partsWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		fake := shardtest.New(shardtest.Options{Seed: seed, Members: 2})
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		all.Go(func() { fake.Run(ctx) })
		w := &partsWorld{ctx: ctx, all: &all, log: fake.Log(1), data: &counts{effects: map[string]int{}}}
		w.writer = w.node(1, wrap(fake.Log(0)), w.data)
		w.writer.SetUp([]record.NodeID{1})
		wantHome(ctx, t, w.writer, 2, true)
		w.tenure, _ = w.writer.Home(2)
		test(w)
	})
}

func unwrapped(l shard.Log) shard.Log { return l }

func (w *partsWorld) node(id record.NodeID, log shard.Log, a cluster.Applier) *cluster.Node {
	n := cluster.New(cluster.Options{ID: id, Log: log, Applier: a, Now: time.Now, PartBytes: 256})
	w.all.Go(func() { _ = n.Run(w.ctx) })
	return n
}

// open returns the open transfers that have parts. There may be others, if the answer to their begin was lost.
func (w *partsWorld) open(t *testing.T) []shard.Transfer {
	for {
		open, err := w.log.OpenTransfers(w.ctx)
		if err == nil {
			return slices.DeleteFunc(open, func(t shard.Transfer) bool { return t.Touched == t.Created })
		}
		if err := pause.For(w.ctx, time.Second); err != nil {
			t.Fatal(err)
		}
	}
}

// groupsOf is data that is all groups in their order, and the kinds of records that came.
type groupsOf struct {
	counts
	groups []record.Group
	kinds  map[record.Kind]int
}

func (g *groupsOf) Apply(s int, r record.Record, after shard.Head) error {
	g.mu.Lock()
	g.groups = append(g.groups, r.Groups...)
	g.kinds[r.Kind]++
	g.mu.Unlock()
	return g.counts.Apply(s, r, after)
}

// TestLargeGroups has several databases write small and large groups at once. Another node that follows, and one that starts later, get
// each of them whole, as a record of the kind Groups, and no transfer stays open.
func TestLargeGroups(t *testing.T) {
	for seed := range uint64(10) {
		withParts(t, seed, unwrapped, func(w *partsWorld) {
			var writers sync.WaitGroup
			for i := range 12 {
				writers.Go(func() {
					g := groupOf(i, i*150)
					g.Base = uint64(i)
					if err := w.writer.AppendGroup(w.ctx, 2, w.tenure, g); err != nil {
						t.Errorf("a group of %d bytes: %v", g.Bytes(), err)
					}
				})
			}
			writers.Wait()
			later := &groupsOf{counts: counts{effects: map[string]int{}}, kinds: map[record.Kind]int{}}
			n := w.node(2, w.log, later)
			if err := n.Barrier(w.ctx, 2); err != nil {
				t.Fatalf("a node that starts later: %v", err)
			}
			if len(later.groups) != 12 || len(later.effects) != 12 || len(w.data.effects) != 12 || later.kinds[record.Assemble] > 0 {
				t.Errorf("%d groups are applied, at the home %d, %d of them not assembled; want 12", len(later.groups), len(w.data.effects), later.kinds[record.Assemble])
			}
			for _, g := range later.groups {
				want := groupOf(int(g.Database), int(g.Database)*150)
				if g.Base != uint64(g.Database) || !bytes.Equal(g.Commits[0].Effect, want.Commits[0].Effect) {
					t.Errorf("the group of database %d is another", g.Database)
				}
			}
			if open := w.open(t); len(open) > 0 {
				t.Errorf("%d transfers are open", len(open))
			}
		})
	}
}

// counting counts how many parts are under way at most.
type counting struct {
	shard.Log
	mu        *sync.Mutex
	now, most *int
}

func (l counting) PutPart(ctx context.Context, t shard.Transfer, number uint32, part []byte) error {
	count := func(by int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		*l.now += by
		*l.most = max(*l.most, *l.now)
	}
	count(1)
	defer count(-1)
	return l.Log.PutPart(ctx, t, number, part)
}

// TestFewPartsAreUnderWay holds that several large groups together have no more than four parts under way, and that they do.
func TestFewPartsAreUnderWay(t *testing.T) {
	var now, most int
	wrap := func(l shard.Log) shard.Log { return counting{l, new(sync.Mutex), &now, &most} }
	withParts(t, 1, wrap, func(w *partsWorld) {
		var writers sync.WaitGroup
		for i := range 5 {
			writers.Go(func() {
				if err := w.writer.AppendGroup(w.ctx, 2, w.tenure, groupOf(i, 4000)); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		if now != 0 || most != 4 {
			t.Errorf("%d parts are under way, %d were at most, want 0 and 4", now, most)
		}
	})
}

// unput refuses parts from a number on.
type unput struct {
	shard.Log
	from uint32
	err  error
}

func (l unput) PutPart(ctx context.Context, t shard.Transfer, number uint32, part []byte) error {
	if number >= l.from {
		return l.err
	}
	return l.Log.PutPart(ctx, t, number, part)
}

// unassembled never says what became of a record that assembles parts.
type unassembled struct {
	shard.Log
	err error
}

func (l unassembled) Assemble(context.Context, shard.Transfer, int, shard.Head, shard.Head, []byte) (int64, error) {
	return 0, l.err
}

// TestTransfersThatFail holds what a writer is told, and that it leaves nothing behind.
func TestTransfersThatFail(t *testing.T) {
	odd := errors.New("odd")
	tests := []struct {
		name string
		wrap func(shard.Log) shard.Log
		want error
	}{
		{"a part is refused", func(l shard.Log) shard.Log { return unput{l, 3, odd} }, cluster.ErrNever},
		{"parts are refused for now, for ever", func(l shard.Log) shard.Log { return unput{l, 0, shard.ErrAgain} }, cluster.ErrNever},
		{"whether parts are there is never known", func(l shard.Log) shard.Log { return unput{l, 5, shard.ErrUnknown} }, cluster.ErrNever},
		{"the record is refused for now, for ever", func(l shard.Log) shard.Log { return unassembled{l, shard.ErrAgain} }, cluster.ErrNever},
		{"the transfer is gone", func(l shard.Log) shard.Log { return unassembled{l, shard.ErrGone} }, cluster.ErrNever},
		{"whether the record is there is never known", func(l shard.Log) shard.Log { return unassembled{l, shard.ErrUnknown} }, shard.ErrUnknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			withParts(t, 1, test.wrap, func(w *partsWorld) {
				err := w.writer.AppendGroup(w.ctx, 2, w.tenure, groupOf(1, 3000))
				if !errors.Is(err, test.want) || errors.Is(err, shard.ErrUnknown) == errors.Is(err, cluster.ErrNever) {
					t.Errorf("AppendGroup = %v, want %v", err, test.want)
				}
				if open := w.open(t); len(open) > 0 {
					t.Errorf("%d transfers are open", len(open))
				}
				if w.data.effects["00000001"] > 0 {
					t.Error("the group is applied")
				}
				if _, home := w.writer.Home(2); !home && errors.Is(test.want, cluster.ErrNever) {
					t.Error("the tenure is over")
				}
			})
		})
	}
}

func TestGroupsThatAreTooLarge(t *testing.T) {
	withParts(t, 1, unwrapped, func(w *partsWorld) {
		err := w.writer.AppendGroup(w.ctx, 2, w.tenure, groupOf(1, 256*record.MaxParts))
		if !errors.Is(err, cluster.ErrTooLarge) || errors.Is(err, cluster.ErrNever) {
			t.Errorf("a group of more than all parts: %v, want ErrTooLarge", err)
		}
	})
}

// changedParts gives other parts than there are.
type changedParts struct {
	shard.Log
	change func(number uint32, part []byte) []byte
}

func (l changedParts) Parts(ctx context.Context, id record.TransferID, from uint32) (changed [][]byte, err error) {
	parts, err := l.Log.Parts(ctx, id, from)
	for i, part := range parts {
		if part = l.change(from+uint32(i), bytes.Clone(part)); part == nil {
			return changed, err
		}
		changed = append(changed, part)
	}
	return changed, err
}

// TestOtherPartsBreakAShard has a node read other parts than were sent: it does not apply them.
func TestOtherPartsBreakAShard(t *testing.T) {
	tests := []struct {
		name   string
		change func(number uint32, part []byte) []byte
	}{
		{"none is there", func(uint32, []byte) []byte { return nil }},
		{"the last is missing", func(number uint32, part []byte) []byte {
			if number == 11 {
				return nil
			}
			return part
		}},
		{"one in the middle is missing", func(number uint32, part []byte) []byte {
			if number == 9 {
				return nil
			}
			return part
		}},
		{"a bit is turned", func(number uint32, part []byte) []byte {
			if number == 4 {
				part[17] ^= 4
			}
			return part
		}},
		{"one is longer", func(_ uint32, part []byte) []byte { return append(part, 0) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			withParts(t, 1, unwrapped, func(w *partsWorld) {
				if err := w.writer.AppendGroup(w.ctx, 2, w.tenure, groupOf(1, 2900)); err != nil {
					t.Fatal(err)
				}
				data := &counts{effects: map[string]int{}}
				n := w.node(2, changedParts{w.log, test.change}, data)
				if err := n.Barrier(w.ctx, 2); !errors.Is(err, cluster.ErrBroken) {
					t.Errorf("Barrier = %v, want ErrBroken", err)
				}
				if len(data.effects) > 0 {
					t.Error("the group is applied")
				}
				if err := n.Barrier(w.ctx, 3); err != nil {
					t.Errorf("another shard: %v", err)
				}
			})
		})
	}
}
