//go:build unix

package trust_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/livetree/livetree/internal/model"
)

// A choice is a query as the SDKs send it, by what the documentation says of it. It has
// what these tests ask for: an order, numbers as bounds, and a limit.
type choice struct {
	Index string   `json:"i"`
	Start *float64 `json:"sp"`
	End   *float64 `json:"ep"`
	Limit int      `json:"l"`
	From  string   `json:"vf"`
}

func readChoice(query string) choice {
	c := choice{Index: ".priority"}
	if err := json.Unmarshal([]byte(query), &c); err != nil {
		panic(err)
	}
	return c
}

// of returns the children of a node that are chosen, as a tree of their own.
func (c choice) of(whole *model.Tree, path []string) *model.Tree {
	var node map[string]any
	text := whole.Export(path)
	chosen := model.New()
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := decoder.Decode(&node); err != nil {
		return chosen // a leaf has no children
	}
	if _, isLeaf := node[".value"]; isLeaf {
		return chosen
	}
	delete(node, ".priority")
	keys := slices.SortedFunc(maps.Keys(node), func(a, b string) int {
		if c.Index == ".key" {
			return model.CompareKeys(a, b)
		}
		return cmp.Or(compareValues(c.value(node[a]), c.value(node[b])), model.CompareKeys(a, b))
	})
	keys = slices.DeleteFunc(keys, func(key string) bool {
		value := c.value(node[key])
		return c.Start != nil && compareValues(value, *c.Start) < 0 || c.End != nil && compareValues(value, *c.End) > 0
	})
	if c.Limit > 0 && len(keys) > c.Limit {
		if c.From == "l" {
			keys = keys[:c.Limit]
		} else {
			keys = keys[len(keys)-c.Limit:]
		}
	}
	for _, key := range keys {
		_ = chosen.Put([]string{key}, []byte(whole.Export(append(slices.Clone(path), key))), 0) // it was printed by a tree
	}
	return chosen
}

// value returns what a child is ordered by.
func (c choice) value(child any) any {
	switch c.Index {
	case ".priority":
		object, _ := child.(map[string]any)
		return object[".priority"]
	case ".value":
		return leafOf(child)
	}
	object, _ := child.(map[string]any)
	return leafOf(object[c.Index])
}

// leafOf returns the value of a leaf, and anything else as it is.
func leafOf(node any) any {
	if object, ok := node.(map[string]any); ok {
		if value, isLeaf := object[".value"]; isLeaf {
			return value
		}
	}
	return node
}

// compareValues orders nothing before false, true, numbers, strings and objects.
func compareValues(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case float64:
		return cmp.Compare(a, b.(float64))
	case string:
		return model.CompareStrings(a, b.(string))
	}
	return 0
}

func rank(v any) int {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 2
		}
		return 1
	case float64:
		return 3
	case string:
		return 4
	}
	return 5
}

// splitPath returns the keys of a path.
func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
