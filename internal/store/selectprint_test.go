package store

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// prioritised returns an object of n children, whose order by priority is not that
// of their keys.
func prioritised(n int) string {
	var body strings.Builder
	for i := range n {
		fmt.Fprintf(&body, `,"k%06d":{".priority":%d,"name":"child %d"}`, i, i*7919%n, i)
	}
	return "{" + body.String()[1:] + "}"
}

// TestSelectionAllocations: what a query by index allocates does not grow with what
// it selects.
func TestSelectionAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := newStand(t, Options{})
	s.put("a", prioritised(200))
	view := s.View()
	defer view.Release()
	at := parsePath(t, "a")
	allocations := func(limit int) float64 {
		q := query.Query{Order: query.ByPriority(), Limit: limit, Last: true}
		return testing.AllocsPerRun(50, func() {
			selection, err := view.Tree(s.id).Select(at, q, nil, tree.Export)
			if err != nil {
				t.Fatal(err)
			}
			if err := selection.PrintTo(io.Discard); err != nil {
				t.Fatal(err)
			}
			if err := selection.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	s.memos.Init(0)
	few, many := allocations(10), allocations(100)
	if many > few+2 { // a pool may be emptied meanwhile
		t.Errorf("a query of 100 children allocates %v times, one of 10 %v times", many, few)
	}
}
