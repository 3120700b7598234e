package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// All text is compact JSON, the members of an object in key order.

// Plain returns what a GET of path prints: no priorities, arrays by the array
// rule, null where there is no data.
func (t *Tree) Plain(path []string) string {
	return t.find(path).plain()
}

func (n *node) plain() string {
	if n == nil {
		return "null"
	}
	if n.value != nil {
		return formatScalar(n.value)
	}
	if length, ok := n.arrayLength(); ok {
		var elements []string
		for i := range length {
			elements = append(elements, n.children[strconv.Itoa(i)].plain())
		}
		return "[" + strings.Join(elements, ",") + "]"
	}
	var members []string
	for _, key := range n.keys() {
		members = append(members, quote(key)+":"+n.children[key].plain())
	}
	return "{" + strings.Join(members, ",") + "}"
}

var arrayIndex = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// arrayLength applies the array rule: every key is an index, and the greatest is
// less than twice the number of keys. The array then reaches up to that key.
func (n *node) arrayLength() (length int, ok bool) {
	greatest := 0
	for key := range n.children {
		if !arrayIndex.MatchString(key) {
			return 0, false
		}
		i, err := strconv.Atoi(key)
		if err != nil { // beyond any int, so beyond twice the number of keys
			return 0, false
		}
		greatest = max(greatest, i)
	}
	return greatest + 1, greatest < 2*len(n.children)
}

// Export returns what a GET with format=export prints: with priorities, never
// with arrays.
func (t *Tree) Export(path []string) string {
	return t.find(path).export()
}

func (n *node) export() string {
	if n == nil {
		return "null"
	}
	if n.value != nil && n.priority == nil {
		return formatScalar(n.value)
	}
	var members []string
	if n.value != nil {
		members = append(members, `".value":`+formatScalar(n.value))
	}
	if n.priority != nil {
		members = append(members, `".priority":`+formatScalar(n.priority))
	}
	for _, key := range n.keys() {
		members = append(members, quote(key)+":"+n.children[key].export())
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Shallow returns what a GET with shallow=true prints: a leaf as it is, a parent
// as an object of its keys, each with true. Never an array.
func (t *Tree) Shallow(path []string) string {
	n := t.find(path)
	if n == nil {
		return "null"
	}
	if n.value != nil {
		return formatScalar(n.value)
	}
	var members []string
	for _, key := range n.keys() {
		members = append(members, quote(key)+":true")
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Priority returns what a GET of <path>/.priority.json prints.
func (t *Tree) Priority(path []string) string {
	n := t.find(path)
	if n == nil {
		return "null"
	}
	return formatScalar(n.priority)
}

// keys returns the keys of the children of n, in key order.
func (n *node) keys() []string {
	return slices.SortedFunc(maps.Keys(n.children), CompareKeys)
}

// formatScalar prints a leaf value or a priority.
func formatScalar(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return quote(v)
	}
	return formatNumber(v)
}

// quote prints a string with the escapes that JSON cannot do without; everything
// else stands for itself, also <, &, DEL and U+2028.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"':
			b.WriteString(`\"`)
		case '\\':
			b.WriteString(`\\`)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			if r < 0x20 {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}
