package tree_test

import (
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestEqual: nodes are equal if and only if they are exported alike.
func TestEqual(t *testing.T) {
	texts := []string{
		`null`, `1`, `1.5`, `"1"`, `true`, `false`, `""`, `{".value":1,".priority":1}`, `{".value":1,".priority":"1"}`,
		`{"a":1}`, `{"b":1}`, `{"a":2}`, `{"a":1,"b":1}`, `{"a":1,".priority":1}`, `{"a":{".value":1,".priority":1}}`,
		`[1,2]`, `[2,1]`, `{"0":1,"1":2}`, `[null,1]`, `{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":2}}}`, `{"a":{"b":{"c":1,"d":1}}}`,
		`9007199254740993`, `9007199254740992`, `1e300`, `1.0`, `{"7":1}`, `{"07":1}`, `{}`, `[]`, `{"a":null}`,
	}
	nodes := make([]tree.Node, len(texts))
	exported := make([]string, len(texts))
	for i, text := range texts {
		n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i], exported[i] = n, string(tree.AppendJSON(nil, n, tree.Export))
	}
	for i, a := range nodes {
		for j, b := range nodes {
			if got, want := tree.Equal(a, b), exported[i] == exported[j]; got != want {
				t.Errorf("Equal(%s, %s) = %v", texts[i], texts[j], got)
			}
		}
	}
	// Nodes within others are compared for themselves.
	whole, err := tree.DecodeBytes([]byte(`{"x":{"a":1,"b":[1,2],".priority":3},"y":{"b":[1,2],"a":1,".priority":3},"z":{"a":1,"b":[1,2]}}`), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(key string) tree.Node { return whole.At(tree.Path{}.Child(key)) }
	if !tree.Equal(at("x"), at("y")) || tree.Equal(at("x"), at("z")) {
		t.Error("children of one node are not compared for themselves")
	}
}
