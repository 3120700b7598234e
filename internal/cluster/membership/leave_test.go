//go:build !no_cluster

package membership_test

import (
	"context"
	"errors"
	"testing"

	"github.com/livetree/livetree/internal/cluster/membership"
)

// TestLeave: a node leaves, and its directory knows; the last one, and one without which there is no majority, may not.
func TestLeave(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := newWorld(t, 3)
	w.startAll(w.nodes...)
	w.wantVoters(w.nodes...)
	gone, stays := w.nodes[0], w.nodes[1:]
	w.until("a node leaves", func(ctx context.Context) error { return membership.Leave(ctx, gone.Membership) })
	w.wantVoters(stays...)
	gone.stop()
	if err := membership.CheckLeft(gone.data); !errors.Is(err, membership.ErrRefused) || !saying(err, "which has left the cluster", "start with an empty one") {
		t.Errorf("the directory of a node that has left: %v", err)
	}
	if err := gone.start(); !saying(err, "which has left the cluster") {
		t.Errorf("a node that has left starts again: %v", err)
	}
	gone.stop()
	if err := membership.CheckLeft(stays[0].data); err != nil {
		t.Errorf("the directory of a node that stays: %v", err)
	}

	stays[1].stop()
	w.wantUp(stays[0], 1)
	if _, err := membership.Removable(t.Context(), stays[0].Membership, stays[0].addr); !saying(err, "no majority of the nodes is reached", "start those that are down") {
		t.Errorf("of a node that is to leave without a majority that knows of it is said: %v", err)
	}
}
