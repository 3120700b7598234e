package cluster_test

import (
	"context"
	"errors"
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

func TestTrimBelow(t *testing.T) {
	t.Parallel()
	const none = ^uint64(0) // a node that has said nothing
	tests := []struct {
		name     string
		flushed  []uint64 // of nodes 1, 2, …
		live     []record.NodeID
		old, far uint64
		kept     uint64 // by node 2, for one that it sends a copy
		want     uint64
	}{
		{"what all have flushed", []uint64{50, 60, 70}, []record.NodeID{1, 2, 3}, 100, 0, 0, 50},
		{"only what is old", []uint64{50, 60, 70}, []record.NodeID{1, 2, 3}, 30, 0, 0, 30},
		{"a node has said nothing", []uint64{50, none, 70}, []record.NodeID{1, 2, 3}, 100, 0, 0, 0},
		{"a node is away", []uint64{5, 60, 70}, []record.NodeID{2, 3}, 100, 0, 0, 60},
		{"a node is behind, but what is far goes", []uint64{5, 60, 70}, []record.NodeID{1, 2, 3}, 100, 40, 0, 40},
		{"what is far, and most have not flushed", []uint64{5, 20, 70}, []record.NodeID{1, 2, 3}, 100, 40, 0, 20},
		{"most are away, and have not flushed", []uint64{5, 20, 70}, []record.NodeID{3}, 100, 0, 0, 20},
		{"one alone", []uint64{50}, []record.NodeID{1}, 100, 0, 0, 50},
		{"two, of which one is away", []uint64{5, 50}, []record.NodeID{2}, 100, 100, 0, 5},
		{"four", []uint64{5, 20, 30, 40}, []record.NodeID{2, 3, 4}, 100, 100, 0, 20},
		{"no node", nil, nil, 100, 100, 0, 0},
		{"a copy is sent", []uint64{50, 60, 70}, []record.NodeID{1, 2, 3}, 100, 0, 20, 20},
		{"a copy is sent, and has more than all have flushed", []uint64{50, 60, 70}, []record.NodeID{1, 2, 3}, 100, 0, 65, 50},
		{"a copy is sent, but what is far goes", []uint64{50, 60, 70}, []record.NodeID{1, 2, 3}, 100, 40, 20, 40},
		{"a copy was sent by a node that is away", []uint64{50, 60, 70}, []record.NodeID{1, 3}, 100, 0, 20, 50},
	}
	for _, test := range tests {
		var members []record.NodeID
		var rows []shard.Flushed
		for i, number := range test.flushed {
			members = append(members, id(i))
			if number != none {
				row := shard.Flushed{Node: id(i)}
				row.Numbers[3] = number
				if i == 1 {
					row.Keep[3] = test.kept
				}
				rows = append(rows, row)
			}
		}
		var old, far, want shard.Numbers
		old[3], far[3], want[3] = test.old, test.far, test.want
		if got := cluster.TrimBelow(members, test.live, rows, old, far); got != want {
			t.Errorf("%s: trimmed below %d, want %d", test.name, got[3], test.want)
		}
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var w cluster.Window
	if got := w.Before(0, start); got != (shard.Numbers{}) {
		t.Errorf("nothing is known, and %v is old", got)
	}
	// Each minute one record of 2 MiB in shard 1, and a small one in shard 2.
	for i := range 30 {
		at := start.Add(time.Duration(i) * time.Minute)
		w.Add(1, uint64(101+i), 2<<20, at)
		w.Add(2, uint64(201+i), 10, at)
	}
	tests := []struct {
		name  string
		bytes int64
		since time.Duration
		want  uint64 // of shard 1; in shard 2 it is 100 more
	}{
		{"all within bytes and time", 1 << 30, -time.Minute, 0},
		{"older than a time", 1 << 30, 10 * time.Minute, 112},
		{"beyond bytes", 8<<20 + 20, -time.Minute, 127},
		{"both", 8<<20 + 20, 27 * time.Minute, 129},
		{"everything", 0, time.Hour, 131},
	}
	for _, test := range tests {
		got := w.Before(test.bytes, start.Add(test.since))
		if got[1] != test.want || got[2] != test.want && got[2] != test.want+100 {
			t.Errorf("%s: %d and %d are the first that stay, want %d", test.name, got[1], got[2], test.want)
		}
	}
}

// TestWindowIsBounded has more records than marks: what is not known exactly is kept.
func TestWindowIsBounded(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var w cluster.Window
	for i := range 5000 {
		w.Add(1, uint64(1+i), 1<<20, start.Add(time.Duration(i)*time.Second))
	}
	if got := w.Before(1<<40, start.Add(10*time.Second))[1]; got != 0 {
		t.Errorf("%d is the first that stays, want all: the oldest marks are one", got)
	}
	if got := w.Before(1<<40, start.Add(4900*time.Second))[1]; got != 4902 {
		t.Errorf("%d is the first that stays, want 4902", got)
	}
}

// upkeepWorld runs a test with one node that keeps a log small.
func upkeepWorld(t *testing.T, members []record.NodeID, file cluster.File, test func(ctx context.Context, log shard.Log, n *cluster.Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Hour)
		fake := shardtest.New(shardtest.Options{Seed: 1, Members: 1})
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		all.Go(func() { fake.Run(ctx) })
		data := &lists{}
		n := cluster.New(cluster.Options{ID: 1, Log: fake.Log(0), Applier: data, Now: time.Now, Upkeep: cluster.Upkeep{
			Flush: func() (numbers shard.Numbers, err error) {
				data.flush(false)
				for s, kept := range data.kept() {
					numbers[s] = kept.head.Number
				}
				return numbers, nil
			},
			Members: func() []record.NodeID { return members },
			File:    file,
		}})
		all.Go(func() { _ = n.Run(ctx) })
		n.SetUp([]record.NodeID{1})
		wantHome(ctx, t, n, 2, true)
		test(ctx, fake.Log(0), n)
	})
}

// TestOldRecordsAreTrimmed holds that records stay for ten minutes, and the newest one for ever.
func TestOldRecordsAreTrimmed(t *testing.T) {
	upkeepWorld(t, []record.NodeID{1}, nil, func(ctx context.Context, log shard.Log, n *cluster.Node) {
		tenure, _ := n.Home(2)
		for i := range 5 {
			g := record.Group{Database: 1, Base: uint64(i), Commits: []record.Commit{{Effect: []byte("token")}}}
			if err := n.AppendGroup(ctx, 2, tenure, g); err != nil {
				t.Fatal(err)
			}
		}
		head, _ := n.Applied(2)
		_ = pause.For(ctx, 9*time.Minute)
		if page, err := log.Page(ctx, 2, 1); err != nil || len(page.Entries) != int(head.Number) {
			t.Errorf("after nine minutes the log has %d records, %v, want %d", len(page.Entries), err, head.Number)
		}
		_ = pause.For(ctx, 5*time.Minute)
		if _, err := log.Page(ctx, 2, head.Number-1); !errors.Is(err, shard.ErrTrimmed) {
			t.Errorf("after fourteen minutes an old record: %v, want ErrTrimmed", err)
		}
		if page, err := log.Page(ctx, 2, head.Number); err != nil || len(page.Entries) != 1 {
			t.Errorf("the newest record is gone: %v", err)
		}
	})
}

// TestNodesThatAreAway has one of three nodes not flush. Records stay for it until it has been away for ten minutes.
func TestNodesThatAreAway(t *testing.T) {
	upkeepWorld(t, []record.NodeID{1, 2, 3}, nil, func(ctx context.Context, log shard.Log, n *cluster.Node) {
		n.SetUp([]record.NodeID{1, 2, 3})
		tenure, _ := n.Home(2)
		for i := range 5 {
			g := record.Group{Database: 1, Base: uint64(i), Commits: []record.Commit{{Effect: []byte("token")}}}
			if err := n.AppendGroup(ctx, 2, tenure, g); err != nil {
				t.Fatal(err)
			}
		}
		head, _ := n.Applied(2)
		for id, number := range map[record.NodeID]uint64{2: head.Number, 3: 2} {
			if err := shard.Publish(ctx, log, shard.Flushed{Node: id, Numbers: shard.Numbers{2: number}}); err != nil {
				t.Fatal(err)
			}
		}
		first := func() uint64 {
			for number := uint64(1); ; number++ {
				if _, err := log.Page(ctx, 2, number); !errors.Is(err, shard.ErrTrimmed) {
					return number
				}
			}
		}
		_ = pause.For(ctx, 30*time.Minute)
		if got := first(); got != 2 {
			t.Errorf("the first record is %d, want 2: the last that a node which is up has flushed", got)
		}
		n.SetUp([]record.NodeID{1, 2})
		_ = pause.For(ctx, 9*time.Minute)
		if got := first(); got != 2 {
			t.Errorf("the first record is %d after nine minutes, want 2", got)
		}
		_ = pause.For(ctx, 5*time.Minute)
		if got := first(); got != head.Number {
			t.Errorf("the first record is %d after fourteen minutes, want %d", got, head.Number)
		}
	})
}

// TestTheLogStaysForACopy has a node be sent a copy by one of two others: it is none of those that are up, and its copy takes longer than records stay. What comes
// after the copy was begun stays until it was sent, and for ten minutes after that.
func TestTheLogStaysForACopy(t *testing.T) {
	upkeepWorld(t, []record.NodeID{1, 2, 3}, nil, func(ctx context.Context, log shard.Log, n *cluster.Node) {
		n.SetUp([]record.NodeID{1, 2})
		_ = pause.For(ctx, 20*time.Minute)
		tenure, _ := n.Home(2)
		write := func(count int) uint64 {
			for range count {
				head, _ := n.Applied(2)
				g := record.Group{Database: 1, Base: head.Number, Commits: []record.Commit{{Effect: []byte("token")}}}
				if err := n.AppendGroup(ctx, 2, tenure, g); err != nil {
					t.Fatal(err)
				}
			}
			head, _ := n.Applied(2)
			return head.Number
		}
		copied := write(5)
		broken, end := cluster.KeepLog(n), cluster.KeepLog(n)
		last := write(5)
		broken(false)
		if err := shard.Publish(ctx, log, shard.Flushed{Node: 2, Numbers: shard.Numbers{2: last}}); err != nil {
			t.Fatal(err)
		}
		first := func() uint64 {
			for number := uint64(1); ; number++ {
				if _, err := log.Page(ctx, 2, number); !errors.Is(err, shard.ErrTrimmed) {
					return number
				}
			}
		}
		_ = pause.For(ctx, time.Hour)
		if got := first(); got != copied {
			t.Errorf("the first record is %d an hour after a copy was begun, want %d: the last that the copy has", got, copied)
		}
		end(true)
		_ = pause.For(ctx, 9*time.Minute)
		if got := first(); got != copied {
			t.Errorf("the first record is %d nine minutes after the copy was sent, want %d", got, copied)
		}
		_ = pause.For(ctx, 5*time.Minute)
		if got := first(); got != last {
			t.Errorf("the first record is %d fourteen minutes after the copy was sent, want %d", got, last)
		}
		cluster.KeepLog(n)(false)
		last = write(5)
		if err := shard.Publish(ctx, log, shard.Flushed{Node: 2, Numbers: shard.Numbers{2: last}}); err != nil {
			t.Fatal(err)
		}
		_ = pause.For(ctx, 14*time.Minute)
		if got := first(); got != last {
			t.Errorf("the first record is %d fourteen minutes after a copy was broken off, want %d", got, last)
		}
	})
}

// TestStandingTransfersAreAbandoned holds that a transfer is abandoned ten minutes after its last part, and that its record is refused then.
func TestStandingTransfersAreAbandoned(t *testing.T) {
	upkeepWorld(t, []record.NodeID{1}, nil, func(ctx context.Context, log shard.Log, n *cluster.Node) {
		transfer := shard.Transfer{}
		for err := errors.New("not begun"); err != nil; {
			transfer, err = log.Begin(ctx, record.TransferID{byte(time.Now().Nanosecond()), 7})
			_ = pause.For(ctx, time.Nanosecond)
		}
		put := func(number uint32) error {
			return shard.Repeat(ctx, func(ctx context.Context) error { return log.PutPart(ctx, transfer, number, []byte("part")) })
		}
		for i := range uint32(3) {
			if err := put(i); err != nil {
				t.Fatalf("part %d: %v", i, err)
			}
			_ = pause.For(ctx, 9*time.Minute)
		}
		if err := put(3); err != nil {
			t.Fatalf("a transfer with a part every nine minutes: %v", err)
		}
		_ = pause.For(ctx, 13*time.Minute)
		if err := put(4); !errors.Is(err, shard.ErrGone) {
			t.Errorf("a part after thirteen minutes: %v, want ErrGone", err)
		}
		if open, err := log.OpenTransfers(ctx); err != nil || len(open) > 0 {
			t.Errorf("%d transfers are open, %v", len(open), err)
		}
	})
}
