package expr

import (
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// Data is one state of the tree. An error of its ends an evaluation as it is.
type Data interface {
	// Look returns the leaf and the priority at a path, null where there is none.
	Look(tree.Path) (leaf, priority tree.Leaf, err error)
	// Kind returns the kind of the leaf at a path, Null where there is none. It does
	// not read the leaf.
	Kind(tree.Path) (tree.Kind, error)
	// Priority returns the priority at a path, null where there is none. It does not
	// read the leaf.
	Priority(tree.Path) (tree.Leaf, error)
	// Exists reports whether there is data at or below a path.
	Exists(tree.Path) (bool, error)
}

// A ruleSnapshot is what data, newData and root are in a rule: a location in a
// state of the tree, of which nothing is read yet.
type ruleSnapshot struct {
	data Data
	path tree.Path
	// lost counts the keys after the path that no location can have, or that are
	// too deep. Nothing is there, but parent() leads back.
	lost int
}

// child returns the snapshot at a path below s. Empty keys do not count.
func (s ruleSnapshot) child(path string) ruleSnapshot {
	if s.lost == 0 {
		if rel, err := tree.ParsePath(path); err == nil {
			return s.join(rel)
		}
	}
	depth := s.path.Depth()
	for key := range strings.SplitSeq(path, "/") {
		switch {
		case key == "":
		case s.lost > 0 || depth == tree.MaxDepth || tree.CheckKey(key) != nil:
			s.lost++
		default:
			s.path = s.path.Child(key)
			depth++
		}
	}
	return s
}

// join is child for a path that is known to be valid.
func (s ruleSnapshot) join(rel tree.Path) ruleSnapshot {
	if s.lost > 0 {
		s.lost += rel.Depth()
		return s
	}
	s.path = s.path.Join(rel)
	for range s.path.Depth() - tree.MaxDepth {
		s.path = s.path.Parent()
		s.lost++
	}
	return s
}

// parent reports false at the root.
func (s ruleSnapshot) parent() (ruleSnapshot, bool) {
	switch {
	case s.lost > 0:
		s.lost--
	case s.path.IsRoot():
		return s, false
	default:
		s.path = s.path.Parent()
	}
	return s, true
}

func (s ruleSnapshot) exists() (bool, error) {
	if s.lost > 0 {
		return false, nil
	}
	return s.data.Exists(s.path)
}

func (s ruleSnapshot) leaf() (tree.Leaf, error) {
	if s.lost > 0 {
		return tree.Leaf{}, nil
	}
	leaf, _, err := s.data.Look(s.path)
	return leaf, err
}

func (s ruleSnapshot) priority() (tree.Leaf, error) {
	if s.lost > 0 {
		return tree.Leaf{}, nil
	}
	return s.data.Priority(s.path)
}

func (s ruleSnapshot) kind() (tree.Kind, error) {
	if s.lost > 0 {
		return tree.Null, nil
	}
	return s.data.Kind(s.path)
}

// value returns what val() does: the leaf, or that there is an object.
func (s ruleSnapshot) value() (value, error) {
	leaf, err := s.leaf()
	if err != nil || !leaf.IsNull() {
		return value{leaf: leaf}, err
	}
	exists, err := s.exists()
	if exists {
		return value{kind: valueObject}, err
	}
	return value{}, err
}

// hasChildren reports whether there is an object.
func (s ruleSnapshot) hasChildren() (bool, error) {
	kind, err := s.kind()
	if err != nil || kind != tree.Null {
		return false, err
	}
	return s.exists()
}
