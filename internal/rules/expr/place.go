package expr

import (
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// Data is one state of the tree. An error of its ends an evaluation as it is.
type Data interface {
	// Look returns the leaf and the priority at a path, null where there is none.
	Look(tree.Path) (leaf, priority tree.Leaf, err error)
	// Exists reports whether there is data at or below a path.
	Exists(tree.Path) (bool, error)
}

// A place is a snapshot: a location in a state of the tree, of which nothing is
// read yet.
type place struct {
	data Data
	path tree.Path
	// lost counts the keys behind the path that no location can have, or that are
	// too deep. Nothing is there, but parent() leads back.
	lost int
}

// child returns the place at a path below p. Empty keys do not count.
func (p place) child(path string) place {
	if p.lost == 0 {
		if rel, err := tree.ParsePath(path); err == nil {
			return p.join(rel)
		}
	}
	depth := p.path.Depth()
	for key := range strings.SplitSeq(path, "/") {
		switch {
		case key == "":
		case p.lost > 0 || depth == tree.MaxDepth || tree.CheckKey(key) != nil:
			p.lost++
		default:
			p.path = p.path.Child(key)
			depth++
		}
	}
	return p
}

// join is child for a path that is known to be valid.
func (p place) join(rel tree.Path) place {
	if p.lost > 0 {
		p.lost += rel.Depth()
		return p
	}
	p.path = p.path.Join(rel)
	for range p.path.Depth() - tree.MaxDepth {
		p.path = p.path.Parent()
		p.lost++
	}
	return p
}

// parent reports false at the root.
func (p place) parent() (place, bool) {
	switch {
	case p.lost > 0:
		p.lost--
	case p.path.IsRoot():
		return p, false
	default:
		p.path = p.path.Parent()
	}
	return p, true
}

func (p place) exists() (bool, error) {
	if p.lost > 0 {
		return false, nil
	}
	return p.data.Exists(p.path)
}

func (p place) look() (leaf, priority tree.Leaf, err error) {
	if p.lost > 0 {
		return leaf, priority, nil
	}
	return p.data.Look(p.path)
}

// value returns what val() does: the leaf, or that there is an object.
func (p place) value() (value, error) {
	leaf, _, err := p.look()
	if err != nil || !leaf.IsNull() {
		return value{leaf: leaf}, err
	}
	exists, err := p.exists()
	if exists {
		return value{kind: valueObject}, err
	}
	return value{}, err
}

// hasChildren reports whether there is an object.
func (p place) hasChildren() (bool, error) {
	v, err := p.value()
	return v.kind == valueObject, err
}
