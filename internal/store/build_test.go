package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestBuildersForget: a builder that is used again knows nothing of the write
// before, however many homes that had.
func TestBuildersForget(t *testing.T) {
	s := newStand(t, Options{ChunkBytes: -1})
	s.put("many", children(24))
	for range 3 {
		var body strings.Builder
		for i := range 16 {
			fmt.Fprintf(&body, `,"k%06d":1`, i)
		}
		s.patch("many", "{"+body.String()[1:]+"}")
		s.patch("few", `{"a":1,"b/c":2,"d":null}`)
		s.put("few/b", `null`)
		s.put("few/a", `{"x":1}`)
		s.expect("few", `{"a":{"x":1}}`)
		s.put("few", `null`)
	}
	s.expect("few", `null`)
}

// TestBuildAllocations holds small writes to the memory that they take.
func TestBuildAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	s := newStand(t, Options{})
	s.put("users", `{"ann":{"name":"Ann","score":5,"tags":{"a":true}},"ben":{"score":6},"text":"`+strings.Repeat("x", DefaultChunkBytes)+`"}`)
	for name, w := range map[string]struct {
		write tree.Write
		most  float64
	}{
		"a leaf":  {putWrite(t, "users/ann/score", `7`), 4},
		"a child": {putWrite(t, "users/ann", `{"name":"Bea","score":8}`), 4},
	} {
		if got := testing.AllocsPerRun(100, func() { s.build(w.write).Close() }); got > w.most {
			t.Errorf("building a write of %s takes %v allocations, want %v at most", name, got, w.most)
		}
	}
}
