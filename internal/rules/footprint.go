package rules

import (
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// maxReads bounds the paths that a decision names.
const maxReads = 64

// A footprint is where data was looked at, unless it is off.
type footprint struct {
	off   bool
	paths []tree.Path // none of them at or below another
}

// add remembers a path. A change at, above or below a remembered path counts as
// a change of what was read, so a path above others stands for them.
func (f *footprint) add(p tree.Path) {
	if f.off {
		return
	}
	if slices.ContainsFunc(f.paths, func(q tree.Path) bool { return q.Contains(p) }) {
		return
	}
	f.paths = append(slices.DeleteFunc(f.paths, func(q tree.Path) bool { return p.Contains(q) }), p)
	for len(f.paths) > maxReads {
		f.collapse()
	}
}

// collapse replaces the deepest paths by their parents.
func (f *footprint) collapse() {
	deepest := 0
	for _, p := range f.paths {
		deepest = max(deepest, p.Depth())
	}
	old := f.paths
	f.paths = nil
	for _, p := range old {
		if p.Depth() == deepest {
			p = p.Parent()
		}
		f.add(p)
	}
}
