//go:build !no_cluster

package membership_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/cluster/membership"
	"github.com/livetree/livetree/internal/cluster/peer"
)

// TestWaitingNodeIsNoMajority: a node that waits before it enters is reached by the others, is not ready, and does not count when another is to be removed.
func TestWaitingNodeIsNoMajority(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll(w.nodes...)
	w.wantVoters(w.nodes...)
	waiting, other := w.nodes[2], w.nodes[0]
	waiting.stop()
	front, err := peer.Listen(peer.Options{Addr: waiting.addr, Key: w.key})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = front.Close() }()
	if err := membership.AnswerWaiting(front, waiting.data); err != nil {
		t.Fatal(err)
	}
	w.until("the node is reached and waits", func(context.Context) error {
		for _, m := range other.Members() {
			if m.Addr == waiting.addr && m.Up && !m.Ready && membership.IsWaiting(other.Membership, waiting.addr) {
				return nil
			}
		}
		return errors.New("it is not")
	})
	w.until("the other of two that run may not be removed", func(ctx context.Context) error {
		if _, err := membership.Removable(ctx, other.Membership, w.nodes[1].addr); !saying(err, "1 of 2 nodes would be up") {
			return fmt.Errorf("of it is said: %w", err)
		}
		return nil
	})
	w.until("the node that waits may be removed", func(ctx context.Context) error {
		_, err := membership.Removable(ctx, other.Membership, waiting.addr)
		return err
	})
}
