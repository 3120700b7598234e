package rules_test

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/livetree/livetree/internal/model"
)

// This file is the rules as simply as they can be written: from the language as
// it is documented, over
// plain JSON values, with the states before and after a write both made. The
// differential test compares the package with it.

// errFails is what a rule that fails comes to.
var errFails = errors.New("fails")

// A world is what one rule of the oracle sees. Values are nil, bool, float64,
// string and map[string]any; states are in export form.
type world struct {
	auth          any
	now           float64
	before, after any
	path          []string
	wildcards     map[string]string
}

// A snapshot is a location in a state.
type snapshot struct {
	state any
	path  []string
}

// stateOf returns the tree of a model.
func stateOf(m *model.Tree) (state any) {
	if err := json.Unmarshal([]byte(m.Export(nil)), &state); err != nil {
		panic(err)
	}
	return state
}

// nodeAt walks down a state. A leaf has no children, and dots begin no key.
func nodeAt(state any, path []string) any {
	for _, key := range path {
		object, ok := state.(map[string]any)
		if _, leaf := object[".value"]; !ok || leaf || strings.HasPrefix(key, ".") {
			return nil
		}
		state = object[key]
	}
	return state
}

func (s snapshot) node() any { return nodeAt(s.state, s.path) }

// value returns the leaf; an object is a map.
func (s snapshot) value() any {
	n := s.node()
	if object, ok := n.(map[string]any); ok {
		if value, leaf := object[".value"]; leaf {
			return value
		}
	}
	return n
}

func (s snapshot) priority() any {
	object, _ := s.node().(map[string]any)
	return object[".priority"]
}

func (s snapshot) child(path string) snapshot {
	keys := append([]string{}, s.path...)
	for _, key := range strings.Split(path, "/") {
		if key != "" {
			keys = append(keys, key)
		}
	}
	return snapshot{s.state, keys}
}

// An oracleNode is the rules of one path.
type oracleNode struct {
	read, write, validate *term
	children              map[string]*oracleNode
	wildcard              string // its name, if there is one
	below                 *oracleNode
}

// match returns the rules on the way down a path, as far as there are any, and
// what the wildcards bind at each of them.
func (n *oracleNode) match(path []string) (nodes []*oracleNode, bound []map[string]string) {
	wildcards := map[string]string{}
	nodes, bound = append(nodes, n), append(bound, wildcards)
	for _, key := range path {
		next, ok := n.children[key]
		if !ok {
			next = n.below
			wildcards = copyOf(wildcards)
			wildcards[n.wildcard] = key
		}
		if next == nil {
			return nodes, bound
		}
		n = next
		nodes, bound = append(nodes, n), append(bound, wildcards)
	}
	return nodes, bound
}

func copyOf(m map[string]string) map[string]string {
	c := map[string]string{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// holds evaluates a rule at a location.
func (w world) holds(t *term, path []string, wildcards map[string]string) bool {
	if t == nil {
		return false
	}
	w.path, w.wildcards = path, wildcards
	v, err := t.eval(&w)
	return err == nil && v == true
}

// granted asks .read or .write from the root down.
func (w world) granted(root *oracleNode, path []string, rule func(*oracleNode) *term) bool {
	nodes, bound := root.match(path)
	for i, n := range nodes {
		if w.holds(rule(n), path[:i], bound[i]) {
			return true
		}
	}
	return false
}

// An oracleAssignment is where a write puts something.
type oracleAssignment struct {
	path     []string
	priority bool
}

// allows judges a write of which both states are known.
func (w world) allows(root *oracleNode, assignments []oracleAssignment) bool {
	for _, a := range assignments {
		if !w.granted(root, a.path, func(n *oracleNode) *term { return n.write }) {
			return false
		}
	}
	for _, a := range assignments {
		for i := range a.path { // above
			if !w.valid(root, a.path[:i]) {
				return false
			}
		}
		if !w.valid(root, a.path) || !a.priority && !w.validBelow(root, a.path) {
			return false
		}
	}
	return true
}

// valid asks the .validate of one location, if the write leaves data there.
func (w world) valid(root *oracleNode, path []string) bool {
	nodes, bound := root.match(path)
	i := len(path)
	if len(nodes) <= i || nodes[i].validate == nil || nodeAt(w.after, path) == nil {
		return true
	}
	return w.holds(nodes[i].validate, path, bound[i])
}

// validBelow asks every location below.
func (w world) validBelow(root *oracleNode, path []string) bool {
	object, _ := nodeAt(w.after, path).(map[string]any)
	for key := range object {
		if strings.HasPrefix(key, ".") {
			continue
		}
		child := append(append([]string{}, path...), key)
		if !w.valid(root, child) || !w.validBelow(root, child) {
			return false
		}
	}
	return true
}
