//go:build !no_cluster

package membership_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/cluster/etcdlog"
	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/pause"
)

// watchAlarms has nodes act on alarms until the test, or the function that it returns, ends it.
func (w *world) watchAlarms(nodes ...*node) (end func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	for _, n := range nodes {
		alarms := membership.NewAlarms(n.Membership)
		all.Go(func() {
			for pause.For(ctx, 20*time.Millisecond) == nil {
				_ = alarms.Look(ctx) // it is tried again
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// TestCorruptLogJoinsAgain has etcd say of one of three nodes that its log is corrupt. The others remove it and go on. It sets its log aside, once
// within an hour, and joins as another member with the store that it has.
func TestCorruptLogJoinsAgain(t *testing.T) {
	t.Parallel()
	if !*long {
		t.Skip("takes some seconds: -long")
	}
	w := newWorld(t, 3)
	w.startAll(w.nodes...)
	w.wantVoters(w.nodes...)
	victim, other := w.nodes[1], w.nodes[0]
	end := w.watchAlarms(w.nodes...)
	defer func() { end() }()
	w.until("a record is taken", func(ctx context.Context) error { return other.append(ctx, 3) })
	id := victim.Log().ID()
	began := time.Now()
	w.until("an alarm is raised", func(ctx context.Context) error { return etcdlog.Raise(ctx, victim.Log(), etcdlog.Alarm{Member: id}) })
	w.until("the others go on", func(ctx context.Context) error { return other.append(ctx, 3) })
	t.Logf("the others went on after %v", time.Since(began))
	w.until("the node ends", func(context.Context) error {
		victim.mu.Lock()
		defer victim.mu.Unlock()
		if !errors.Is(victim.ran, membership.ErrLogCorrupt) {
			return fmt.Errorf("it ended with %w, want ErrLogCorrupt", victim.ran)
		}
		return nil
	})
	end()
	rows := victim.rows()
	victim.stop()
	if _, err := membership.SetCorruptAside(victim.data); err != nil {
		t.Fatal(err)
	}
	w.startAll(victim)
	w.wantVoters(w.nodes...)
	if victim.Log().ID() == id || victim.Copied() || victim.rows() != rows {
		t.Errorf("the node has the member %x, before it was %x; it has copied: %v", victim.Log().ID(), id, victim.Copied())
	}
	if left := other.Log().Raised(); len(left) > 0 {
		t.Errorf("there still are the alarms %v", left)
	}
	if _, err := membership.SetCorruptAside(victim.data); !saying(err, "for the second time within an hour", "etcd.damaged") {
		t.Errorf("the log is set aside again: %v", err)
	}
}
