package pushid_test

import (
	"testing"

	"github.com/livetree/livetree/internal/pushid"
)

// TestNextAllocatesItsKey, and nothing else.
func TestNextAllocatesItsKey(t *testing.T) {
	g := pushid.New(seeded())
	if allocs := testing.AllocsPerRun(100, func() { _, _ = g.Next(today) }); allocs > 1 {
		t.Errorf("a key takes %v allocations, want 1", allocs)
	}
}
