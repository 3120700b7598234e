package query_test

import (
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// TestIndexValuesDoNotAllocate: each indexed write encodes two of them.
func TestIndexValuesDoNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 100)
	for _, leaf := range []tree.Leaf{tree.IntegerLeaf(1_700_000_000_000), tree.StringLeaf("-NxK3f0aQ_2bTqLz81cd")} {
		if allocs := testing.AllocsPerRun(100, func() { dst = query.AppendIndexValue(dst[:0], query.LeafValue(leaf)) }); allocs > 0 {
			t.Errorf("the value of %v takes %v allocations, want none", leaf, allocs)
		}
	}
}
