package query

import (
	"strings"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/tree"
)

// An end is a parameter as the bound on one side.
type end struct {
	name      string
	upper     bool
	exclusive bool
}

// The parameters that can bound each side, of which a query has at most one.
var (
	lowerEnds = [3]end{{startAt, false, false}, {startAfter, false, true}, {equalTo, false, false}}
	upperEnds = [3]end{{endAt, true, false}, {endBefore, true, true}, {equalTo, true, false}}
)

// The SDKs send these in place of a key, for a place before or behind all keys:
// their startAfter(5) is startAfter=5,"[MAX_NAME]".
const (
	minName = "[MIN_NAME]"
	maxName = "[MAX_NAME]"
)

// parse reads the bound from a JSON primitive, behind which a comma and a key
// as a JSON string may follow.
func (e end) parse(order Order, text string) (Bound, error) {
	if err := checkLength(e.name, text); err != nil {
		return Bound{}, err
	}
	valueText, keyText, hasKey := cutBound(text)
	value, ok := parsePrimitive(valueText)
	if !ok {
		return Bound{}, fault.New(fault.Invalid, "Constraint index field must be a JSON primitive")
	}
	if err := e.checkKind(order, value); err != nil {
		return Bound{}, err
	}
	b := Bound{Set: true, Value: value, Exclusive: e.exclusive}
	if !hasKey {
		return b, nil
	}
	if order == ByKey() {
		return Bound{}, fault.New(fault.Invalid, `%s takes no second key when orderBy is "$key"`, e.name)
	}
	return e.withKey(b, keyText)
}

// checkKind refuses values to which nothing in the order can be compared.
func (e end) checkKind(order Order, value tree.Leaf) error {
	switch {
	case order == ByKey() && value.Kind() != tree.String:
		return fault.New(fault.Invalid, "Provided key index type is invalid, must be string")
	case order == ByPriority() && value.Kind() == tree.Boolean:
		return fault.New(fault.Invalid, "Provided priority index type is invalid, must be null, number or string")
	}
	return nil
}

// withKey returns b with the key that text, a JSON string, holds.
func (e end) withKey(b Bound, text string) (Bound, error) {
	key, ok := parsePrimitive(text)
	switch {
	case !ok || key.Kind() != tree.String:
		return Bound{}, errKey(nil)
	case key.Text() == minName:
		b.Exclusive = e.upper // between the smaller values and all of this one
		return b, nil
	case key.Text() == maxName:
		b.Exclusive = !e.upper
		return b, nil
	}
	if err := tree.CheckKey(key.Text()); err != nil {
		return Bound{}, errKey(err)
	}
	b.Key = key.Text()
	return b, nil
}

func errKey(cause error) error {
	return fault.Wrap(fault.Invalid, cause, "Constraint key field must be a valid key name")
}

// cutBound splits a bound at the comma behind its value. What is not a value
// may be cut anywhere.
func cutBound(text string) (value, key string, hasKey bool) {
	start := 0
	if trimmed := strings.TrimLeft(text, jsonSpace); strings.HasPrefix(trimmed, `"`) {
		start = len(text) - len(trimmed) + stringLen(trimmed)
	}
	comma := strings.IndexByte(text[start:], ',')
	if comma < 0 {
		return text, "", false
	}
	return text[:start+comma], text[start+comma+1:], true
}

const jsonSpace = " \t\r\n"

// stringLen returns the length of the JSON string with which text begins, with
// its quotes; all of text if the string does not end.
func stringLen(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// parsePrimitive reads a JSON text that is a null, boolean, number or string.
func parsePrimitive(text string) (tree.Leaf, bool) {
	trimmed := strings.TrimLeft(text, jsonSpace)
	if trimmed == "" || trimmed[0] == '{' || trimmed[0] == '[' {
		return tree.Leaf{}, false // also {".value":1} and {}, which are leaves in a body
	}
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		return tree.Leaf{}, false
	}
	return n.Leaf(), true
}
