//go:build !no_cluster

package membership_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/cluster/membership"
)

// TestStepAside: who steps aside is no home while another can be; and when all do, since the disks of all are nearly full, all count alike. If each counted itself
// alone, each would take everything from the others.
func TestStepAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll(w.nodes...)
	w.wantVoters(w.nodes...)
	want := func(what string, count int) {
		t.Helper()
		w.until(what, func(context.Context) error {
			for _, n := range w.nodes {
				n.mu.Lock()
				up := n.up
				n.mu.Unlock()
				if len(up) != count {
					return fmt.Errorf("%s has %d nodes that may be homes, want %d", n.addr, len(up), count)
				}
			}
			return nil
		})
	}
	want("all may be homes", 3)
	membership.StepAside(w.nodes[0].Membership, true)
	want("one steps aside", 2)
	membership.StepAside(w.nodes[1].Membership, true)
	want("another steps aside", 1)
	membership.StepAside(w.nodes[2].Membership, true)
	want("all step aside", 3)
	membership.StepAside(w.nodes[1].Membership, false)
	want("one can be a home again", 1)
}
