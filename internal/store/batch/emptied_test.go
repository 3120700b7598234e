package batch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// TestPatchThatEmptiesANode: a patch that deletes all children of an indexed node
// deletes the node's index rows once, not once for each child.
func TestPatchThatEmptiesANode(t *testing.T) {
	for _, n := range []int{3, 2 * PointDeletes} {
		s := newStand(t, 0)
		s.indexes = &layout.Indexes{Here: []layout.Index{{Number: 1, Order: query.ByValue()}}}
		s.indexes.Wildcard = s.indexes
		var body, patch strings.Builder
		for i := range n {
			fmt.Fprintf(&body, `,"k%06d":%d`, i, i)
			fmt.Fprintf(&patch, `,"k%06d":null`, i)
		}
		s.put("a/q", "{"+body.String()[1:]+"}")
		w, err := tree.DecodePatch(strings.NewReader("{"+patch.String()[1:]+"}"), parsePath(t, "a/q"), tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Build(s.live(), tree.Change{Write: w, Position: 2, Millis: 1}, s.indexes, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]int{} // how often each is deleted
		for reader := b.Rows.Reader(); ; {
			kind, key, _, ok, err := reader.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if kind == pebble.InternalKeyKindDelete || kind == pebble.InternalKeyKindRangeDelete {
				rows[string(key)]++
			}
		}
		for row, times := range rows {
			if times > 1 {
				t.Errorf("a patch that deletes %d children deletes a row of %s %d times", n, layout.DescribeKey([]byte(row)), times)
			}
		}
		if len(rows) < n {
			t.Errorf("a patch that deletes %d children deletes %d rows", n, len(rows))
		}
		if err := s.DB.Apply(b.Rows, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		b.Close()
		if left := s.dataRows(); len(left) > 0 {
			t.Errorf("the patch leaves %q", left)
		}
		s.check()
	}
}

// TestPatchThatEmptiesADeepNode: what a patch deletes is passed once, not once for each node above it that loses its last child.
func TestPatchThatEmptiesADeepNode(t *testing.T) {
	const n = 300
	steps := map[int]uint64{}
	for _, depth := range []int{2, 20} {
		s := newStand(t, 0)
		at := strings.Repeat("d/", depth)
		var body, patch strings.Builder
		for i := range n {
			fmt.Fprintf(&body, `,"k%06d":%d`, i, i)
			fmt.Fprintf(&patch, `,"k%06d":null`, i)
		}
		s.put(at, "{"+body.String()[1:]+"}")
		before := s.shared.Steps.Load()
		s.patch(at, "{"+patch.String()[1:]+"}")
		steps[depth] = s.shared.Steps.Load() - before
		if left := s.dataRows(); len(left) > 0 {
			t.Errorf("the patch leaves %q", left)
		}
		s.check()
	}
	if steps[20] > 2*steps[2] {
		t.Errorf("a patch takes %d steps below 2 nodes, and %d below 20", steps[2], steps[20])
	}
}
