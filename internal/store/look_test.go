package store

import (
	"strings"
	"testing"
)

// TestLookAtALongPriority: rules are charged for the priority of a split node as for that of a leaf, and one that is too long for what they have
// left is not decoded.
func TestLookAtALongPriority(t *testing.T) {
	t.Parallel()
	const long = 1 << 20
	s := newStand(t, Options{ChunkBytes: 8})
	priority := `".priority":"` + strings.Repeat("p", long) + `"`
	s.put("split", `{"a":"some text","b":"some text",`+priority+`}`)
	s.put("leaf", `{".value":5,`+priority+`}`)
	view := s.View()
	defer view.Release()
	for _, at := range []string{"split", "leaf"} {
		for _, most := range []int{4 << 10, 2 * long} {
			var cost Cost
			_, priority, within, err := view.Tree(s.id).Counting(&cost).LookWithin(parsePath(t, at), most)
			if err != nil {
				t.Fatal(err)
			}
			if want := most > long; within != want || (len(priority.Text()) == long) != want {
				t.Errorf("within %d bytes the priority of a %s is found: %t, with %d bytes", most, at, within, len(priority.Text()))
			}
			if cost.Bytes < long {
				t.Errorf("a look at a %s with a priority of %d bytes costs %+v", at, long, cost)
			}
		}
	}
}
