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

func (w *walk) enter(key string) { w.path = append(w.path, key) }

func (w *walk) leave() {
	w.path = w.path[:len(w.path)-1]
	w.shared = min(w.shared, len(w.path))
}

// leaf finds the range of a leaf and visits it.
func (w *walk) leaf(l leafAt) {
	for w.index < len(w.compound.posts) && comparePaths(w.path, w.post) > 0 {
		w.index++
		w.post = w.compound.post(w.post, w.index)
	}
	w.visit(w, l)
	w.shared = len(w.path)
}
