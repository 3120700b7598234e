package tree_test

import (
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestPathsDoNotAllocate: a path is its text, and so are its parts.
func TestPathsDoNotAllocate(t *testing.T) {
	text := "/rooms/general/messages/-OHxQ2001234fVtR4mWn/likes"
	if allocs := testing.AllocsPerRun(100, func() {
		p, err := tree.ParsePath(text)
		if err != nil || p.Depth() != 5 {
			t.Fatal(p, err)
		}
		for key := range p.Keys() {
			if tree.CheckKey(key) != nil {
				t.Fatal(key)
			}
		}
		if p.Parent().Depth() != 4 {
			t.Fatal(p)
		}
	}); allocs > 0 {
		t.Errorf("a path allocates %v times, want none", allocs)
	}
}

// TestChildDoesNotAllocate: looking a child up is a search in what is there.
func TestChildDoesNotAllocate(t *testing.T) {
	n := decode(t, record)
	if allocs := testing.AllocsPerRun(100, func() { n.Child("likes") }); allocs > 0 {
		t.Errorf("looking a child up allocates %v times, want none", allocs)
	}
}
