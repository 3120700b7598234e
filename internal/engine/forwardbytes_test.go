package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/tree"
)

// A request that is forwarded is the same at the other end, whether or not its head fits into the room that is kept for it, and leaves the
// caller its own room.
func TestForwardedBytes(t *testing.T) {
	for _, assignments := range []int{1, 3, 200} {
		var req engine.Request
		req.At = forwardPath(t, "rooms")
		req.Patch = true
		for i := range assignments {
			node, err := tree.DecodeBytes(fmt.Appendf(nil, `{"n":%d,"text":"ä\"\u0001"}`, i), tree.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			req.Assignments = append(req.Assignments, tree.Assignment{Path: forwardPath(t, fmt.Sprintf("rooms/room-%d", i)), Node: node})
		}
		const before = 28
		b, err := engine.EncodeRequest(req, before)
		if err != nil {
			t.Fatal(err)
		}
		copy(b[:before], strings.Repeat("x", before))
		got, err := engine.DecodeRequest(b[before:])
		if err != nil {
			t.Fatalf("%d assignments: %v", assignments, err)
		}
		if len(got.Assignments) != assignments || got.At.String() != req.At.String() || !got.Patch {
			t.Fatalf("%d assignments came as %+v", assignments, got)
		}
		for i, a := range got.Assignments {
			was := req.Assignments[i]
			if text, want := tree.AppendJSON(nil, a.Node, tree.Export), tree.AppendJSON(nil, was.Node, tree.Export); string(text) != string(want) || a.Path.String() != was.Path.String() {
				t.Errorf("assignment %d of %d = %s %s, want %s %s", i, assignments, a.Path, text, was.Path, want)
			}
		}
	}
}

func forwardPath(t *testing.T, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
