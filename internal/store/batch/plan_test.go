package batch

import (
	"fmt"
	"strconv"
	"strings"
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

// TestPatchOfManyChunks: the memory for what a patch rewrites grows with that, and with
// nothing else: the old row and the new one of each chunk, once.
func TestPatchOfManyChunks(t *testing.T) {
	const chunks, size = 4_000, 1_900
	s := newStand(t, 2<<10)
	var body, patch strings.Builder
	for i := range chunks {
		fmt.Fprintf(&body, `,"k%06d":{"n":1,"t":"%s"}`, i, strings.Repeat("x", size))
		fmt.Fprintf(&patch, `,"k%06d/n":2`, i)
	}
	s.put("a", "{"+body.String()[1:]+"}")
	if err := s.DB.LogData(nil, pebble.Sync); err != nil { // nothing is written in the background
		t.Fatal(err)
	}
	w := patchWrite(t, "a", "{"+patch.String()[1:]+"}")
	b := s.newBuilder(s.live(), nil)
	defer func() { _ = b.writer.rows.Close() }()
	var err error
	took := allocated(func() { err = b.plan.make(w) })
	if err != nil {
		t.Fatal(err)
	}
	if len(b.plan.homes.list) != chunks {
		t.Fatalf("the patch has %d homes, want %d", len(b.plan.homes.list), chunks)
	}
	if most := 3 * chunks * size; took > most {
		t.Errorf("a patch of %d rows of %d bytes takes %d bytes, want less than %d", chunks, size, took, most)
	}
}

// TestBlock: rows that are kept stay as they are, whatever is kept later.
func TestBlock(t *testing.T) {
	var b block
	var kept [][]byte
	for i := range 5000 {
		kept = append(kept, b.keep(fmt.Appendf(nil, "%0*d", i%97, i)))
	}
	kept = append(kept, b.keep(make([]byte, 2*maxKeptBytes)))
	for i, row := range kept[:5000] {
		if want := fmt.Sprintf("%0*d", i%97, i); string(row) != want || cap(row) != len(row) {
			t.Errorf("row %d is %q, of %d bytes, want %q", i, row, cap(row), want)
		}
	}
}
