package sdkhash

import "github.com/livetree/livetree/internal/tree"

// A walk visits the leaves of a node in the order of their paths, and says in which range
// of a Compound each one is. The priority of an object is a leaf called .priority among
// its keys, that of a leaf is part of it.
type walk struct {
	compound Compound
	visit    func(w *walk, l leafAt)

	path   []string // of the current leaf
	shared int      // how many of its keys it has in common with the leaf before
	index  int      // the range that it is in
	post   []string // the keys of that range's post
	common int      // how many keys the path and the post have in common
	// hidden says that some object has a priority that is in no range.
	hidden bool
}

// A leafAt is a leaf of a walk.
type leafAt struct {
	leaf, priority tree.Leaf
	// own says that the leaf is the priority of the object that it is in.
	own bool
}

// run visits all leaves of n.
func (w *walk) run(n tree.Node) {
	w.post = w.compound.post(nil, 0)
	w.node(n)
}

// node visits the leaves of n, which is at the path. It recurses as deep as n is, which
// is at most tree.MaxDepth.
func (w *walk) node(n tree.Node) {
	if !n.IsObject() {
		w.leaf(leafAt{leaf: n.Leaf(), priority: n.Priority()})
		return
	}
	priority := n.Priority()
	waits := !priority.IsNull() // for its place among the keys
	for key, child := range n.Children() {
		if waits && tree.CompareKeys(key, priorityKey) > 0 {
			waits = false
			w.enter(priorityKey)
			w.leaf(leafAt{leaf: priority, own: true})
			w.leave()
		}
		w.enter(key)
		w.node(child)
		w.leave()
	}
	// The SDKs look for the place of .priority only before a key. If all sort before
	// it, as indexes and push keys do, they forget it.
	w.hidden = w.hidden || waits
}

func (w *walk) enter(key string) {
	w.path = append(w.path, key)
	if n := len(w.path); w.common == n-1 && n <= len(w.post) && w.post[n-1] == key {
		w.common = n
	}
}

func (w *walk) leave() {
	w.path = w.path[:len(w.path)-1]
	w.shared = min(w.shared, len(w.path))
	w.common = min(w.common, len(w.path))
}

// leaf finds the range of a leaf and visits it.
func (w *walk) leaf(l leafAt) {
	for w.index < len(w.compound.posts) && w.isBehindPost() {
		w.index++
		w.post = w.compound.post(w.post, w.index)
		w.common = 0
		for w.common < min(len(w.path), len(w.post)) && w.path[w.common] == w.post[w.common] {
			w.common++
		}
	}
	w.visit(w, l)
	w.shared = len(w.path)
}

// isBehindPost reports whether the path is behind the post. It does not compare the keys
// that they have in common again for every leaf: these may be long.
func (w *walk) isBehindPost() bool {
	switch w.common {
	case len(w.path):
		return false // at the post, or above it
	case len(w.post):
		return true // below it
	}
	return tree.CompareKeys(w.path[w.common], w.post[w.common]) > 0
}

// isAtPost reports whether the current leaf is the one that the post names.
func (w *walk) isAtPost() bool {
	return w.index < len(w.compound.posts) && w.common == len(w.path) && w.common == len(w.post)
}
