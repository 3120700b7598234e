package batch

import (
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// TestPileUpIsNotInTheWay: a write does not pass the old versions of rows.
func TestPileUpIsNotInTheWay(t *testing.T) {
	const versions = 20_000
	s := newStand(t, 0)
	s.put("a", children(3))
	key := layout.DataKey(nil, testID, parsePath(t, "a/k000001"))
	for i := range versions {
		if err := s.DB.Set(key, strconv.AppendInt([]byte{0}, int64(i), 10), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	builder := s.newBuilder(s.live(), nil)
	defer func() { _ = builder.writer.rows.Close() }()
	for _, at := range []string{"a/k000001", "a/k000001/below", "a/k0000011", "a/new", "b"} {
		if err := builder.plan.assign(tree.Assignment{Path: parsePath(t, at), Node: tree.LeafNode(tree.IntegerLeaf(1))}); err != nil {
			t.Fatal(err)
		}
	}
	if builder.plan.data.it.Iterator == nil {
		t.Fatal("no assignment needed an iterator: the test tests nothing")
	}
	stats := builder.plan.data.it.Stats()
	if got := stats.ForwardStepCount[pebble.InternalIterCall] + stats.ReverseStepCount[pebble.InternalIterCall]; got > versions/10 {
		t.Errorf("finding where five leaves go took %d steps", got)
	}
	if err := builder.plan.data.it.Close(); err != nil {
		t.Fatal(err)
	}
}
