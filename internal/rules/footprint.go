package rules

import (
	"slices"

	"github.com/livetree/livetree/internal/tree"
)

// maxReads bounds the paths that a decision names.
const maxReads = 64

// A footprint is data that remembers where it was looked at, unless it is off.
type footprint struct {
	Data
	off   bool
	paths []tree.Path // none of them at or below another
}

// Look implements Data.
func (f *footprint) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	f.add(p)
	return f.Data.Look(p)
}

// Exists implements Data.
func (f *footprint) Exists(p tree.Path) (bool, error) {
	f.add(p)
	return f.Data.Exists(p)
}

// NextChild implements Data.
func (f *footprint) NextChild(p tree.Path, after string) (string, error) {
	f.add(p)
	return f.Data.NextChild(p, after)
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
