package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxStringBytes is the size of the longest string, in UTF-8.
const maxStringBytes = 10 << 20

// A reader turns the parsed body of one request into nodes. It judges the body,
// replaces placeholders, and changes nothing.
type reader struct {
	before    *Tree // what increments add to
	nowMillis int64 // what every timestamp of the request becomes
}

// node returns what v means at path, or nil when v holds no data.
func (r reader) node(path []string, v any) (*node, error) {
	n, err := r.unprunedNode(path, v)
	if err != nil {
		return nil, err
	}
	return prune(n), nil
}

func (r reader) unprunedNode(path []string, v any) (*node, error) {
	switch v := v.(type) {
	case []any:
		return r.array(path, v)
	case map[string]any:
		return r.object(path, v)
	}
	n := newNode()
	var err error
	n.value, err = primitive(v)
	return n, err
}

func (r reader) array(path []string, elements []any) (*node, error) {
	n := newNode()
	for i, v := range elements {
		if err := r.addChild(n, path, strconv.Itoa(i), v); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// object reads an object in one of its three forms: a placeholder, a leaf written
// with .value, or a parent of children.
func (r reader) object(path []string, members map[string]any) (*node, error) {
	n := newNode()
	var err error
	if _, ok := members[".sv"]; ok {
		n.value, err = r.placeholder(members, r.oldValue(path))
		return n, err
	}
	_, hasValue := members[".value"]
	for key, v := range members {
		switch {
		case key == ".priority":
			n.priority, err = r.priority(path, v)
		case key == ".value":
			n.value, err = r.scalar(v, r.oldValue(path))
		case hasValue:
			err = fmt.Errorf("key %q beside .value", key)
		default:
			err = r.addChild(n, path, key, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return n, nil
}

// addChild reads v as the child key of n, which is at path. The key is judged,
// and counts for the depth, whether or not v holds data.
func (r reader) addChild(n *node, path []string, key string, v any) error {
	path = child(path, key)
	if err := CheckPath(path); err != nil {
		return err
	}
	var err error
	n.children[key], err = r.unprunedNode(path, v)
	return err
}

// priority reads the priority of the node at path: nil for none.
func (r reader) priority(path []string, v any) (any, error) {
	p, err := r.scalar(v, r.oldPriority(path))
	if err != nil {
		return nil, err
	}
	if _, isBool := p.(bool); isBool {
		return nil, errors.New("a priority is a string or a number")
	}
	return p, nil
}

// scalar reads a primitive or a placeholder. An increment adds to old.
func (r reader) scalar(v, old any) (any, error) {
	if members, ok := v.(map[string]any); ok {
		return r.placeholder(members, old)
	}
	return primitive(v)
}

// primitive reads null (as nil), a boolean, a string or a number.
func primitive(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		if len(v) > maxStringBytes {
			return nil, fmt.Errorf("string of %d bytes", len(v))
		}
		return v, nil
	case json.Number:
		return parseNumber(string(v))
	}
	return nil, errors.New("not a string, number, boolean or null")
}

// placeholder reads {".sv":"timestamp"} or {".sv":{"increment":n}}.
func (r reader) placeholder(members map[string]any, old any) (any, error) {
	if len(members) != 1 {
		return nil, errors.New(".sv must stand alone")
	}
	switch kind := members[".sv"].(type) {
	case string:
		if kind == "timestamp" {
			return r.nowMillis, nil
		}
	case map[string]any:
		literal, ok := kind["increment"].(json.Number)
		if !ok || len(kind) != 1 {
			break
		}
		n, err := parseNumber(string(literal))
		if err != nil {
			return nil, err
		}
		return add(old, n)
	}
	return nil, errors.New("unknown server value")
}

// oldValue returns the leaf value that was at path, or nil.
func (r reader) oldValue(path []string) any {
	if n := r.before.find(path); n != nil {
		return n.value
	}
	return nil
}

// oldPriority returns the priority that was at path, or nil.
func (r reader) oldPriority(path []string) any {
	if n := r.before.find(path); n != nil {
		return n.priority
	}
	return nil
}

// An assignment is one member of the body of a PATCH: data for the node at path,
// or a priority for it.
type assignment struct {
	path       []string
	toPriority bool
	data       *node // nil deletes
	priority   any   // nil removes
}

// assignments reads the body of a PATCH at path, which must be an object.
func (r reader) assignments(path []string, body any) ([]assignment, error) {
	members, ok := body.(map[string]any)
	if !ok {
		return nil, errors.New("the body of a PATCH is an object or null")
	}
	if err := checkOverlap(members); err != nil {
		return nil, err
	}
	var all []assignment
	for key, v := range members {
		a, err := r.assignment(path, segments(key), v)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// assignment reads v as what a PATCH at path writes at the relative path below it.
func (r reader) assignment(path, below []string, v any) (assignment, error) {
	if len(below) == 0 {
		return assignment{}, errors.New("empty path in a PATCH")
	}
	last := len(below) - 1
	toPriority := below[last] == ".priority"
	if toPriority {
		below = below[:last]
	}
	a := assignment{path: slices.Concat(path, below), toPriority: toPriority}
	if err := CheckPath(a.path); err != nil {
		return assignment{}, err
	}
	var err error
	if toPriority {
		a.priority, err = r.priority(a.path, v)
	} else {
		a.data, err = r.node(a.path, v)
	}
	return a, err
}

// segments splits a key of a PATCH at its slashes; leading, trailing and doubled
// ones do not count.
func segments(key string) []string {
	return strings.FieldsFunc(key, func(r rune) bool { return r == '/' })
}

// checkOverlap refuses two keys of a PATCH of which one leads to, or through, the
// other. A final .priority counts as a segment: "a" overlaps "a/.priority", but
// ".priority" does not overlap "a".
func checkOverlap(members map[string]any) error {
	var paths [][]string
	for key := range members {
		paths = append(paths, segments(key))
	}
	for i, a := range paths {
		for j, b := range paths {
			if i != j && isPrefix(a, b) {
				return fmt.Errorf("path %q overlaps %q", a, b)
			}
		}
	}
	return nil
}

func isPrefix(a, b []string) bool {
	return len(a) <= len(b) && slices.Equal(a, b[:len(a)])
}

// ParseOK reports whether a PUT of body would be accepted at a path of depth keys
// in an empty tree.
func ParseOK(body []byte, depth int) bool {
	path := slices.Repeat([]string{"k"}, depth)
	return New().Put(path, body, 0) == nil
}
