package tree_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/livetree/livetree/internal/tree"
)

// TestCopies: copies are equal to what they are of, share no text with it, and stay when others
// are made.
func TestCopies(t *testing.T) {
	var copies tree.Copies
	var originals, kept []tree.Path
	for i := range 1000 {
		p := path(t, fmt.Sprintf("rooms/room-%0*d/members", i%300+1, i))
		originals, kept = append(originals, p), append(kept, copies.Of(p))
	}
	for i, p := range originals {
		if kept[i] != p {
			t.Fatalf("the copy of %s is %s", p, kept[i])
		}
		if unsafe.StringData(kept[i].Last()) == unsafe.StringData(p.Last()) {
			t.Fatalf("the copy of %s shares its text", p)
		}
	}
	if got := copies.Of(tree.Path{}); !got.IsRoot() {
		t.Errorf("the copy of the root is %s", got)
	}
	p := path(t, "a/b")
	if n := testing.AllocsPerRun(1000, func() { copies.Of(p) }); n >= 1 {
		t.Errorf("a copy takes %v pieces of memory, want less than one", n)
	}
}
