package batch

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
)

// TestDropIndexOfManyParents: the rows of an index are deleted as a range where a parent has many, and one by one where it has few: of
// very many small ranges each read would sort all. No step deletes many rows either way.
func TestDropIndexOfManyParents(t *testing.T) {
	const parents = 1500
	s := newStand(t, 0)
	index := &layout.Indexes{Here: []layout.Index{{Number: 1, Order: query.ByValue()}}}
	other := &layout.Indexes{Here: []layout.Index{{Number: 2, Order: query.ByValue()}}}
	both := &layout.Indexes{Here: append(index.Here, other.Here...)}
	s.indexes = &layout.Indexes{Wildcard: &layout.Indexes{Wildcard: both}}
	for i := range parents {
		s.put(fmt.Sprintf("rooms/r%04d", i), children(3))
	}
	s.put("rooms/large", children(PointDeletes+1))
	s.indexes = &layout.Indexes{Wildcard: &layout.Indexes{Wildcard: other}}
	ranges, steps := 0, 0
	for cursor := []byte(nil); cursor != nil || steps == 0; steps++ {
		step, err := s.DropIndex(s.live(), 1, cursor)
		if err != nil {
			t.Fatal(err)
		}
		cursor = step.Cursor
		if count := step.rows.Count(); count > stepSeeks+PointDeletes {
			t.Errorf("a step deletes %d rows", count)
		}
		ranges += rangesIn(t, step.rows)
		if err := s.DB.Apply(step.rows, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		step.Close()
	}
	if ranges != 1 {
		t.Errorf("%d ranges are deleted, want that of the one large parent", ranges)
	}
	s.check()
}

// rangesIn returns how many ranges a batch deletes.
func rangesIn(t *testing.T, rows *pebble.Batch) (ranges int) {
	t.Helper()
	for r := rows.Reader(); ; {
		kind, _, _, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return ranges
		}
		if kind == pebble.InternalKeyKindRangeDelete {
			ranges++
		}
	}
}
