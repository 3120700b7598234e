package hook

import (
	"maps"
	"slices"
)

// A node is a place in the tree of patterns: all hooks whose patterns begin with the same
// keys are at it or below it. What $name is called makes no difference.
type node struct {
	keys  map[string]*node
	wild  *node
	hooks []*Hook // whose patterns end here
}

// grow returns the tree of the patterns of hooks, nil for none.
func grow(hooks []*Hook) *node {
	if len(hooks) == 0 {
		return nil
	}
	root := &node{}
	for _, h := range hooks {
		n := root
		for _, key := range h.Pattern.keys {
			n = n.child(key)
		}
		n.hooks = append(n.hooks, h)
	}
	return root
}

// child returns the node below n for a key of a pattern; it is made if there is none.
func (n *node) child(key string) *node {
	if isWild(key) {
		if n.wild == nil {
			n.wild = &node{}
		}
		return n.wild
	}
	if n.keys == nil {
		n.keys = map[string]*node{}
	}
	if n.keys[key] == nil {
		n.keys[key] = &node{}
	}
	return n.keys[key]
}

// isLast reports whether no pattern goes on below n.
func (n *node) isLast() bool { return n.wild == nil && len(n.keys) == 0 }

// sortedKeys returns the keys of the children that have one, in order.
func (n *node) sortedKeys() []string { return slices.Sorted(maps.Keys(n.keys)) }

// eachEnd calls yield with all nodes below n at which patterns end.
func (n *node) eachEnd(yield func(*node)) {
	for _, key := range n.sortedKeys() {
		n.keys[key].eachEndWith(yield)
	}
	if n.wild != nil {
		n.wild.eachEndWith(yield)
	}
}

func (n *node) eachEndWith(yield func(*node)) {
	if len(n.hooks) > 0 {
		yield(n)
	}
	n.eachEnd(yield)
}
