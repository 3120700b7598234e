package leave_test

import (
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/tree"
)

// BenchmarkWith leaves a PATCH of some paths where something was left for a thousand, some of
// which are the same.
func BenchmarkWith(b *testing.B) {
	patch := func(paths int) tree.Write {
		w := tree.Write{Patch: true}
		for i := range paths {
			name := fmt.Sprintf("users/of/a/place/that/is/deep/%d/online", i)
			p, err := tree.ParsePath(name)
			if err != nil {
				b.Fatal(err)
			}
			w.Assignments = append(w.Assignments, tree.Assignment{Name: name, Path: p, Node: tree.LeafNode(tree.StringLeaf("no"))})
		}
		return w
	}
	full, err := leave.New(leave.DefaultLimits()).With(patch(1000))
	if err != nil {
		b.Fatal(err)
	}
	for _, paths := range []int{1, 256, 1000} {
		w := patch(paths)
		b.Run(fmt.Sprint(paths), func(b *testing.B) {
			for b.Loop() {
				if _, err := full.With(w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
