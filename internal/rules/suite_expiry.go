package rules

import (
	"slices"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// lookAfter is after how many children a dueWalk looks whether anybody waits for it still.
const lookAfter = 1024

// A dueWalk finds the children whose time is over by a clock.
type dueWalk struct {
	now   query.Value
	done  <-chan struct{}
	seen  int
	ended bool
	found []tree.Assignment // that delete them
}

// A swept tree is one of which nothing was over by a clock.
type swept struct {
	data      tree.Node
	nowMillis int64
}

// sweep returns a tree without what is over, which is looked for if the tree or the clock is another now.
func (s *swept) sweep(r *Ruleset, data tree.Node, nowMillis int64, done <-chan struct{}) tree.Node {
	if data != s.data || nowMillis != s.nowMillis {
		*s = swept{r.expired(data, nowMillis, done), nowMillis}
	}
	return s.data
}

// expired returns a tree without the children whose time is over, as a server deletes them. It
// looks at what the path of an .expireOn leads to, and at nothing else.
func (r *Ruleset) expired(data tree.Node, nowMillis int64, done <-chan struct{}) tree.Node {
	w := dueWalk{now: query.LeafValue(tree.IntegerLeaf(nowMillis)), done: done}
	w.walk(&r.root, data, tree.Path{})
	if len(w.found) == 0 {
		return data
	}
	e := tree.NewEditor(data)
	e.Apply(tree.Path{}, slices.Values(w.found))
	return e.Node()
}

// walk looks at the children of a node for which the rules of n are.
func (w *dueWalk) walk(n *node, data tree.Node, at tree.Path) {
	if n == nil || !n.indexed || !data.IsObject() {
		return
	}
	var on tree.Path
	if n.expiry != nil {
		on, _ = tree.ParsePath(n.expiry.on) // the compiler has read it before
	}
	for key, child := range data.Children() {
		if w.over() {
			return
		}
		path := at.Child(key)
		if n.expiry != nil && w.due(child.At(on).Leaf()) {
			w.found = append(w.found, tree.Assignment{Path: path})
			continue
		}
		below, _ := n.child(key)
		w.walk(below, child, path)
	}
}

// over reports whether nobody waits for the walk any more.
func (w *dueWalk) over() bool {
	w.seen++
	if w.seen%lookAfter == 0 {
		select {
		case <-w.done:
			w.ended = true
		default:
		}
	}
	return w.ended
}

// due reports whether a time is over. Only numbers ever are.
func (w *dueWalk) due(time tree.Leaf) bool {
	return time.IsNumber() && query.CompareValues(query.LeafValue(time), w.now) <= 0
}
