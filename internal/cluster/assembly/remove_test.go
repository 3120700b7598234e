//go:build !no_cluster

package assembly_test

import (
	"testing"

	"github.com/livetree/livetree/internal/cluster/status"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/freeaddr"
)

// TestRefusedRemovalChangesNothing: a node that is asked to remove itself, and must not be removed, serves on.
func TestRefusedRemovalChangesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs etcd")
	}
	key := newKey(t)
	addr := freeaddr.One(t)
	n := start(t, t.TempDir(), addr, key)
	defer n.stop(t)
	if err := n.Remove(t.Context(), addr); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the removal of the last node: %v, want a conflict", err)
	}
	if told := n.Status(t.Context()); n.Condition() != "ok" || told.Nodes[0].State != status.Ready {
		t.Errorf("after a removal that was refused the node is %s, and its condition is %s", told.Nodes[0].State, n.Condition())
	}
}
