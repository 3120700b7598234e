// Package phone is, for tests, a model of what the SDKs for phones do with ranges: how they cut
// and hash the leaves that they hold, and how they apply a merge.
//
// It follows the steps of the SDK for Android, mistakes included, and shares nothing with
// package sdkhash, which is the server's side. A Splitter makes the hashes of ranges that a
// client sends, and Apply does what the server answers.
package phone

import (
	"cmp"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/tree"
)

// A snap is an immutable node: empty, a leaf or children. As in the SDK, two that are
// equal can be told apart by their address.
type snap struct {
	leaf, priority tree.Leaf
	children       map[string]*snap
}

// PriorityKey stands for a priority in the path of a post.
const PriorityKey = ".priority"

func (s *snap) isLeaf() bool  { return !s.leaf.IsNull() }
func (s *snap) isEmpty() bool { return s.leaf.IsNull() && len(s.children) == 0 }

func snapOf(n tree.Node) *snap {
	s := &snap{leaf: n.Leaf(), priority: n.Priority()}
	for key, child := range n.Children() {
		if s.children == nil {
			s.children = map[string]*snap{}
		}
		s.children[key] = snapOf(child)
	}
	return s
}

// text is s in export form.
func (s *snap) text() string {
	if s.isEmpty() {
		return "null"
	}
	priority := string(tree.AppendLeaf(nil, s.priority))
	if s.isLeaf() {
		return fmt.Sprintf(`{".value":%s,".priority":%s}`, tree.AppendLeaf(nil, s.leaf), priority)
	}
	members := []string{`".priority":` + priority}
	for key, child := range s.children {
		members = append(members, string(tree.AppendString(nil, key))+":"+child.text())
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (s *snap) child(key string) *snap {
	if key == PriorityKey {
		return &snap{leaf: s.priority}
	}
	if child, ok := s.children[key]; ok {
		return child
	}
	return &snap{}
}

func (s *snap) withPriority(priority tree.Leaf) *snap {
	if s.isEmpty() {
		return s
	}
	return &snap{leaf: s.leaf, priority: priority, children: s.children}
}

// withChild is the SDK's updateImmediateChild. An object that loses its last child
// loses its priority.
func (s *snap) withChild(key string, child *snap) *snap {
	if key == PriorityKey {
		return s.withPriority(child.leaf)
	}
	if s.isLeaf() {
		if child.isEmpty() {
			return s
		}
		return (&snap{}).withChild(key, child).withPriority(s.priority)
	}
	children := map[string]*snap{}
	for k, c := range s.children {
		if k != key {
			children[k] = c
		}
	}
	if !child.isEmpty() {
		children[key] = child
	}
	if len(children) == 0 {
		return &snap{}
	}
	return &snap{priority: s.priority, children: children}
}

// A Merge is what a server sends for a run of ranges: the client drops what it has behind
// From up to To, and takes Value. No From is the beginning, no To the end.
type Merge struct {
	From, To       string
	HasFrom, HasTo bool
	Value          tree.Node
}

// Apply returns what a client has after merges. It goes through children in a random order.
func Apply(random *rand.Rand, held tree.Node, merges []Merge) (tree.Node, error) {
	s := snapOf(held)
	for _, m := range merges {
		a := applier{Rand: random, hasStart: m.HasFrom, hasEnd: m.HasTo, start: postKeys(m.From), end: postKeys(m.To)}
		s = a.update(nil, s, snapOf(m.Value))
	}
	return tree.DecodeBytes([]byte(s.text()), tree.DecodeOptions{})
}

func postKeys(post string) []string {
	if post = strings.Trim(post, "/"); post == "" {
		return nil
	}
	return strings.Split(post, "/")
}

// An applier applies one merge; see the SDK's RangeMerge.
type applier struct {
	*rand.Rand
	start, end       []string
	hasStart, hasEnd bool
}

func comparePaths(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if c := tree.CompareKeys(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func contains(a, b []string) bool { return len(a) <= len(b) && slices.Equal(a, b[:len(a)]) }

func (a *applier) update(path []string, node, update *snap) *snap {
	start, end := 1, -1
	if a.hasStart {
		start = comparePaths(path, a.start)
	}
	if a.hasEnd {
		end = comparePaths(path, a.end)
	}
	startInNode, endInNode := a.hasStart && contains(path, a.start), a.hasEnd && contains(path, a.end)
	switch {
	case start > 0 && end < 0 && !endInNode:
		return update
	case start > 0 && endInNode && update.isLeaf():
		return update
	case start > 0 && end == 0:
		if node.isLeaf() {
			return &snap{}
		}
		return node
	case startInNode || endInNode:
		return a.updateChildren(path, node, update)
	}
	return node
}

// updateChildren goes through the children in no order, as the SDK does, which has them
// in a set of hashes.
func (a *applier) updateChildren(path []string, node, update *snap) *snap {
	all := map[string]bool{}
	for key := range node.children {
		all[key] = true
	}
	for key := range update.children {
		all[key] = true
	}
	var order []string
	for key := range all {
		order = append(order, key)
	}
	slices.Sort(order)
	a.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if !update.priority.IsNull() || !node.priority.IsNull() {
		order = append(order, PriorityKey)
	}
	updated := node
	for _, key := range order {
		before := node.child(key)
		after := a.update(append(slices.Clip(path), key), before, update.child(key))
		if after != before {
			updated = updated.withChild(key, after)
		}
	}
	return updated
}

// A Splitter cuts the leaves of a client into ranges; see the SDK's CompoundHash.
type Splitter struct {
	// Split reports whether a range ends with the leaf at a path, by the length of its text.
	Split func(length int, path []string) bool
	// Texts are those of the ranges.
	Texts []string

	building bool
	text     strings.Builder
	path     []string
	depth    int
	leafDeep int
	comma    bool

	hashes, posts []string
}

func (s *Splitter) ensure() {
	if s.building {
		return
	}
	s.building, s.comma = true, false
	s.text.Reset()
	s.text.WriteString("(")
	for _, key := range s.path[:s.depth] {
		s.text.WriteString(quoted(key) + ":(")
	}
}

func (s *Splitter) endRange() {
	s.text.WriteString(strings.Repeat(")", s.depth+1))
	s.Texts = append(s.Texts, s.text.String())
	s.hashes = append(s.hashes, sum(s.text.String()))
	post := strings.Join(s.path[:s.leafDeep], "/")
	if post == "" {
		post = "/"
	}
	s.posts = append(s.posts, post)
	s.building = false
}

func (s *Splitter) node(n *snap) {
	if n.isLeaf() {
		s.ensure()
		s.leafDeep = s.depth
		s.text.WriteString(rangeLeaf(n))
		s.comma = true
		if s.Split(s.text.Len(), s.path[:s.depth]) {
			s.endRange()
		}
		return
	}
	var order []string
	for key := range n.children {
		order = append(order, key)
	}
	slices.SortFunc(order, tree.CompareKeys)
	passed := n.priority.IsNull()
	for _, key := range order {
		if !passed && tree.CompareKeys(key, PriorityKey) > 0 {
			passed = true
			s.child(PriorityKey, &snap{leaf: n.priority})
		}
		s.child(key, n.children[key])
	}
}

func (s *Splitter) child(key string, n *snap) {
	s.ensure()
	if s.comma {
		s.text.WriteString(",")
	}
	s.text.WriteString(quoted(key) + ":(")
	s.path = append(s.path[:s.depth:s.depth], key)
	s.depth++
	s.comma = false
	s.node(n)
	s.depth--
	if s.building {
		s.text.WriteString(")")
	}
	s.comma = true
}

// Ranges returns the hashes and posts of what a client holds.
func (s *Splitter) Ranges(held tree.Node) (hashes, posts []string) {
	if n := snapOf(held); !n.isEmpty() {
		s.node(n)
	}
	if s.building {
		s.endRange()
	}
	return append(s.hashes, ""), s.posts
}

func quoted(text string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"`, `\"`) + `"`
}

func rangeLeaf(n *snap) string {
	spell := func(l tree.Leaf) string {
		switch {
		case l.Kind() == tree.Boolean:
			return fmt.Sprintf("boolean:%t", l.Bool())
		case l.IsNumber():
			return fmt.Sprintf("number:%016x", math.Float64bits(l.Float()))
		}
		return "string:" + quoted(l.Text())
	}
	if n.priority.IsNull() {
		return spell(n.leaf)
	}
	return "priority:" + spell(n.priority) + ":" + spell(n.leaf)
}

func sum(text string) string {
	d := sha1.Sum([]byte(text))
	return base64.StdEncoding.EncodeToString(d[:])
}

// Forgets reports whether the client forgets the priority of some object of n when it cuts
// its leaves into ranges: it looks for its place before a key only.
func Forgets(n tree.Node) bool { return snapOf(n).forgets() }

func (s *snap) forgets() bool {
	behind := false
	for key, child := range s.children {
		if child.forgets() {
			return true
		}
		behind = behind || tree.CompareKeys(key, PriorityKey) > 0
	}
	return len(s.children) > 0 && !s.priority.IsNull() && !behind
}
