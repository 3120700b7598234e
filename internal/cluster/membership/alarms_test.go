//go:build !no_cluster

package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
)

// fakeMembers is what several nodes see of one etcd.
type fakeMembers struct {
	ids     []uint64
	raised  []etcdlog.Alarm
	removed []uint64
	refuse  error // what a removal is answered with
	fails   int   // how many times disarming an alarm fails
}

// seenBy is what one of them sees.
type seenBy struct {
	*fakeMembers
	id uint64
}

func (f seenBy) ID() uint64 { return f.id }

func (f seenBy) Raised() []etcdlog.Alarm { return slices.Clone(f.raised) }

func (f seenBy) Peers(context.Context) (peers []etcdlog.Peer, err error) {
	for _, id := range f.ids {
		peers = append(peers, etcdlog.Peer{ID: id, Voter: true})
	}
	return peers, nil
}

func (f seenBy) Disarm(_ context.Context, a etcdlog.Alarm) error {
	if f.fails > 0 {
		f.fails--
		return errors.New("no leader")
	}
	f.raised = slices.DeleteFunc(f.raised, func(other etcdlog.Alarm) bool { return other == a })
	return nil
}

// alarmsOf returns what node id does, to which some others are up.
func (f *fakeMembers) alarmsOf(id uint64, up ...uint64) *Alarms {
	return &Alarms{
		log: seenBy{f, id}, up: func() []uint64 { return append([]uint64{id}, up...) }, logger: slog.New(slog.DiscardHandler),
		remove: func(_ context.Context, id uint64) error {
			if f.refuse == nil {
				f.removed = append(f.removed, id)
				f.ids = slices.DeleteFunc(f.ids, func(other uint64) bool { return other == id })
			}
			return f.refuse
		},
	}
}

func TestCorruptMemberIsRemovedByOne(t *testing.T) {
	t.Parallel()
	f := &fakeMembers{ids: []uint64{1, 2, 3}, raised: []etcdlog.Alarm{{Member: 1}, {Member: 2, Space: true}}}
	nodes := map[uint64]*Alarms{1: f.alarmsOf(1, 2, 3), 2: f.alarmsOf(2, 1, 3), 3: f.alarmsOf(3, 1, 2)}
	for _, id := range []uint64{1, 3} {
		if err := nodes[id].Look(t.Context()); err != nil || len(f.removed) > 0 {
			t.Fatalf("node %d: Look = %v and %v are removed, want node 2 to act", id, err, f.removed)
		}
	}
	f.refuse = errors.New("no majority")
	if err := nodes[2].Look(t.Context()); !errors.Is(err, f.refuse) || len(f.raised) != 2 {
		t.Errorf("a removal that is refused: Look = %v, and the alarms are %v", err, f.raised)
	}
	problems := strings.Join(nodes[2].Problems(func(id uint64) string { return fmt.Sprint("node-", id) }), "\n")
	if !strings.Contains(problems, "the log of node-1 is corrupt") || !strings.Contains(problems, "(the member with a corrupt log is not removed: no majority)") ||
		!strings.Contains(problems, "the file of the log of node-2 is full") {
		t.Errorf("the problems are %s", problems)
	}
	f.refuse = nil
	if err := nodes[2].Look(t.Context()); err != nil || !slices.Equal(f.removed, []uint64{1}) || !slices.Equal(f.raised, []etcdlog.Alarm{{Member: 2, Space: true}}) {
		t.Errorf("Look = %v, %v are removed, and the alarms are %v", err, f.removed, f.raised)
	}
}

// TestAlarmOfNoMember is disarmed only once one of the members of that time is gone.
func TestAlarmOfNoMember(t *testing.T) {
	t.Parallel()
	f := &fakeMembers{ids: []uint64{1, 2, 3}, raised: []etcdlog.Alarm{{}}}
	a := f.alarmsOf(1, 2, 3)
	for _, ids := range [][]uint64{{1, 2, 3}, {1, 2, 3, 4}} {
		f.ids = ids
		if err := a.Look(t.Context()); err != nil || len(f.raised) != 1 || len(f.removed) > 0 {
			t.Fatalf("with the members %v: Look = %v, the alarms are %v, and %v are removed", ids, err, f.raised, f.removed)
		}
	}
	if problems := a.Problems(func(uint64) string { return "" }); len(problems) != 1 || !strings.Contains(problems[0], "it is not known which is wrong") {
		t.Errorf("the problems are %q", problems)
	}
	f.ids, f.fails = []uint64{1, 2, 4}, 1
	if err := a.Look(t.Context()); err == nil || len(f.raised) != 1 {
		t.Errorf("an alarm that is not disarmed: Look = %v, the alarms are %v", err, f.raised)
	}
	if err := a.Look(t.Context()); err != nil || len(f.raised) > 0 || len(f.removed) > 0 {
		t.Errorf("after one was replaced: Look = %v, the alarms are %v, and %v are removed", err, f.raised, f.removed)
	}
}

// TestAlarmsEnd has nodes look in any order, with any of them down, cut off or slow. Only members that an alarm names are removed, never a majority of them by
// one look, and alarms end as soon as a node that is well and up may act.
func TestAlarmsEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := &fakeMembers{}
		size := 3 + 2*rng.IntN(2)
		for id := range size {
			f.ids = append(f.ids, uint64(id+1))
		}
		corrupt := map[uint64]bool{}
		for len(corrupt) < 1+rng.IntN(size/2) {
			corrupt[uint64(1+rng.IntN(size))] = true
		}
		for id := range corrupt {
			f.raised = append(f.raised, etcdlog.Alarm{Member: id})
		}
		nodes := map[uint64]*Alarms{}
		for id := range uint64(size) {
			nodes[id+1] = f.alarmsOf(id+1, f.ids...)
		}
		for looks := 0; len(f.raised) > 0; looks++ {
			id := uint64(1 + rng.IntN(size))
			if looks > 1000 {
				t.Fatalf("seed %d: the alarms %v do not end", seed, f.raised)
			}
			if !slices.Contains(f.ids, id) || rng.IntN(3) == 0 {
				continue
			}
			if f.refuse = nil; rng.IntN(4) == 0 {
				f.refuse = errors.New("not now")
			}
			_ = nodes[id].Look(t.Context()) // it is tried again
		}
		for _, id := range f.removed {
			if !corrupt[id] {
				t.Errorf("seed %d: member %d is removed, of which there was no alarm", seed, id)
			}
		}
		if len(f.removed) != len(corrupt) || len(f.ids) != size-len(corrupt) {
			t.Errorf("seed %d: %v are removed, want %v", seed, f.removed, corrupt)
		}
	}
}
