package tree_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// A reading is a text and what it means; either err is nil or export is not looked at.
type reading struct {
	name, text, export string
	err                error
}

func checkReadings(t *testing.T, tests []reading) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n, err := tree.DecodeBytes([]byte(test.text), tree.DecodeOptions{})
			if !errors.Is(err, test.err) || (err != nil && test.err == nil) {
				t.Fatalf("DecodeBytes(%.200s) = %s, %v; want the error %v", test.text, export(n), err, test.err)
			}
			if err == nil && export(n) != test.export {
				t.Errorf("DecodeBytes(%.200s) = %s, want %s", test.text, export(n), test.export)
			}
		})
	}
}

func TestNoData(t *testing.T) {
	t.Parallel()
	checkReadings(t, []reading{
		{"No data/null", `null`, `null`, nil},
		{"No data/an empty object", `{}`, `null`, nil},
		{"No data/an empty array", `[]`, `null`, nil},
		{"No data/an object of nothing", `{"a":null,"b":{},"c":[],"d":{"e":{"f":[null,{}]}}}`, `null`, nil},
		{"No data/empty children vanish", `{"a":{"b":null},"c":1}`, `{"c":1}`, nil},
		{"No data/false, zero and empty string are data", `{"a":false,"b":0,"c":""}`, `{"a":false,"b":0,"c":""}`, nil},
		{"No data/a priority alone", `{".priority":5}`, `null`, nil},
		{"No data/a priority and nothing", `{".priority":5,"a":{}}`, `null`, nil},
		{"No data/a value that is null", `{".value":null}`, `null`, nil},
		{"No data/a null with priority", `{"a":{".value":null,".priority":5},"b":1}`, `{"b":1}`, nil},
	})
}

func TestNoDataReadsNull(t *testing.T) {
	t.Parallel()
	for _, n := range []tree.Node{{}, decode(t, `{"a":{}}`), decode(t, `{"a":1}`).Child("b"), decode(t, `1`).Child("a")} {
		if !n.IsNull() || n.IsObject() || n.Kind() != tree.Null || n.Len() != 0 || n.HasPlaceholders() {
			t.Errorf("no data is a %v with %d children", n.Kind(), n.Len())
		}
		if plain(n) != "null" || export(n) != "null" || !n.Leaf().IsNull() || !n.Priority().IsNull() {
			t.Errorf("no data prints as %s", export(n))
		}
		for key := range n.Children() {
			t.Errorf("no data has the child %q", key)
		}
		if !n.At(path(t, "a/b")).IsNull() {
			t.Error("there is something below no data")
		}
	}
}

func TestArraysWriting(t *testing.T) {
	t.Parallel()
	checkReadings(t, []reading{
		{"Arrays, writing/children 0, 1, …", `["a",true,{"b":2}]`, `{"0":"a","1":true,"2":{"b":2}}`, nil},
		{"Arrays, writing/nulls are absent", `[null,1,null,{},[]]`, `{"1":1}`, nil},
		{"Arrays, writing/nested", `[[1],[[2]]]`, `{"0":{"0":1},"1":{"0":{"0":2}}}`, nil},
		{"Arrays, writing/beyond nine", `[0,1,2,3,4,5,6,7,8,9,10]`,
			`{"0":0,"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"10":10}`, nil},
		{"Arrays, writing/elements with priorities", `[{".value":1,".priority":2}]`, `{"0":{".value":1,".priority":2}}`, nil},
	})
}

func TestStrings(t *testing.T) {
	t.Parallel()
	longest := `"` + strings.Repeat("x", tree.MaxStringBytes) + `"`
	escaped := `"` + strings.Repeat("x", tree.MaxStringBytes-1) + `\n"`
	checkReadings(t, []reading{
		{"Strings/empty", `""`, `""`, nil},
		{"Strings/escapes", `"\"\\\/\b\f\n\r\t\u0041\u00e9\uD83D\uDE00"`, `"\"\\/\b\f\n\r\tAé😀"`, nil},
		{"Strings/NUL and other controls", `"\u0000\u001f\u007f\u2028"`, "\"\\u0000\\u001f\x7f\u2028\"", nil},
		{"Strings/the last of each length", "\"\x7f\u07ff\uffff\U0010ffff\"", "\"\x7f\u07ff\uffff\U0010ffff\"", nil},
		{"Strings/10 MiB", longest, longest, nil},
		{"Strings/10 MiB with an escape", escaped, escaped, nil},
		{"Strings/10 MiB and a byte", `"x` + longest[1:], "", tree.ErrTooLarge},
		{"Strings/10 MiB and an escape", strings.TrimSuffix(longest, `"`) + `\n"`, "", tree.ErrTooLarge},
		{"Strings/invalid UTF-8", "\"\xff\"", "", tree.ErrSyntax},
		{"Strings/half a character", "\"\xe6\x97\"", "", tree.ErrSyntax},
		{"Strings/a surrogate in UTF-8", "\"\xed\xa0\x80\"", "", tree.ErrSyntax},
		{"Strings/an overlong form", "\"\xc0\xaf\"", "", tree.ErrSyntax},
		{"Strings/half a character before an escape", "\"\xe6\x97\\n\"", "", tree.ErrSyntax},
		{"Strings/a lone high surrogate", `"\ud83d"`, "", tree.ErrSyntax},
		{"Strings/a lone low surrogate", `"\ude00"`, "", tree.ErrSyntax},
		{"Strings/surrogates in the wrong order", `"\ude00\ud83d"`, "", tree.ErrSyntax},
		{"Strings/a high surrogate and a letter", `"\ud83dx"`, "", tree.ErrSyntax},
		{"Strings/a high surrogate and an escape", `"\ud83d\n"`, "", tree.ErrSyntax},
		{"Strings/a high surrogate and another character", `"\ud83d\u0041"`, "", tree.ErrSyntax},
	})
}

func TestKeysOfABody(t *testing.T) {
	t.Parallel()
	key768, key769 := strings.Repeat("é", 384), strings.Repeat("é", 384)+"k"
	checkReadings(t, []reading{
		{"Keys/768 bytes", `{"` + key768 + `":1}`, `{"` + key768 + `":1}`, nil},
		{"Keys/769 bytes", `{"` + key769 + `":1}`, "", tree.ErrInvalidKey},
		{"Keys/escapes mean what they spell", `{"\u0061\"\\":1}`, `{"a\"\\":1}`, nil},
		{"Keys/empty", `{"":1}`, "", tree.ErrInvalidKey},
		{"Keys/a slash", `{"a/b":1}`, "", tree.ErrInvalidKey},
		{"Keys/a dot", `{"a.b":1}`, "", tree.ErrInvalidKey},
		{"Keys/a dollar sign", `{"$a":1}`, "", tree.ErrInvalidKey},
		{"Keys/a hash", `{"#":1}`, "", tree.ErrInvalidKey},
		{"Keys/brackets", `{"[0]":1}`, "", tree.ErrInvalidKey},
		{"Keys/a control character", `{"a\u001f":1}`, "", tree.ErrInvalidKey},
		{"Keys/DEL", "{\"\x7f\":1}", "", tree.ErrInvalidKey},
		{"Keys/an escaped dot", `{"\u002e":1}`, "", tree.ErrInvalidKey},
		{"Keys/invalid also without data", `{"a":1,"b/c":null}`, "", tree.ErrInvalidKey},
		{"Order of keys/integers first", `{"b":1,"a":2,"10":3,"9":4,"-1":5,"01":6,"1":7}`,
			`{"-1":5,"1":7,"01":6,"9":4,"10":3,"a":2,"b":1}`, nil},
		{"Order of keys/UTF-16", "{\"\uffff\":1,\"😀\":2,\"z\":3}", "{\"z\":3,\"😀\":2,\"\uffff\":1}", nil},
		{"JSON/a repeated key", `{"a":1,"a":2}`, "", tree.ErrValue},
		{"JSON/a repeated key, apart", `{"b":1,"a":2,"c":3,"b":4}`, "", tree.ErrValue},
		{"JSON/a repeated key without data", `{"a":null,"b":1,"a":null}`, "", tree.ErrValue},
		{"JSON/a repeated key, escaped", `{"a":1,"\u0061":2}`, "", tree.ErrValue},
		{"JSON/a repeated index", `{"1":1,"0":1,"1":2}`, "", tree.ErrValue},
		{"JSON/the same key at two depths", `{"a":{"a":{"a":1}}}`, `{"a":{"a":{"a":1}}}`, nil},
	})
}

func TestClaimsHaveAnyKeys(t *testing.T) {
	t.Parallel()
	text := `{"https://example.org/role":"editor","":0,"a.b":{"$c":[true,{"#":1}]},"\u0001":2,` +
		`".value":3,".priority":{"x":4},".sv":"timestamp","gone":null,"empty":{}}`
	claims, err := tree.DecodeClaims([]byte(text))
	if err != nil {
		t.Fatalf("DecodeClaims(%s) fails: %v", text, err)
	}
	want := `{"":0,"\u0001":2,".priority":{"x":4},".sv":"timestamp",".value":3,"a.b":{"$c":{"0":true,"1":{"#":1}}},` +
		`"https://example.org/role":"editor"}`
	if got := export(claims); got != want {
		t.Errorf("DecodeClaims(%s) = %s, want %s", text, got, want)
	}
	if claims.HasPlaceholders() || !claims.Priority().IsNull() {
		t.Errorf("DecodeClaims gives keys that begin with a dot a meaning")
	}
	if role := claims.Child("https://example.org/role").Leaf().Text(); role != "editor" {
		t.Errorf("the claim https://example.org/role is %q, want editor", role)
	}
	if !claims.Child("").Leaf().IsNumber() {
		t.Error("the claim with an empty name is lost")
	}
}

func TestClaimsAreAsStrictAsData(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		``:                            tree.ErrNoData,
		`{"a":1}x`:                    tree.ErrSyntax,
		`{"a.b":1,"a.b":2}`:           tree.ErrValue,
		`{"":1,"":null}`:              tree.ErrValue,
		`{".sv":1,"\u002esv":1}`:      tree.ErrValue,
		`{"a":{"$b":1,"x":0,"$b":1}}`: tree.ErrValue,
		`{"` + "\xff" + `":1}`:        tree.ErrSyntax,
		`{"\ud800":1}`:                tree.ErrSyntax,
		strings.Repeat(`{"/":`, 33):   tree.ErrTooDeep,
		strings.Repeat(`[`, 100):      tree.ErrTooDeep,
		`{"a":1e999}`:                 tree.ErrValue,
		`{"` + strings.Repeat("/", 769) + `":true}`: tree.ErrInvalidKey,
	} {
		if _, err := tree.DecodeClaims([]byte(text)); !errors.Is(err, want) {
			t.Errorf("DecodeClaims(%.60q) = %v, want %v", text, err, want)
		}
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	const full = tree.MaxDepth
	arrays := func(depth int) string { return strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth) }
	for _, test := range []struct {
		name, text string
		above      int // keys above the body
		ok         bool
	}{
		{"32 keys", nested(full, "1"), 0, true},
		{"33 keys", nested(full+1, "1"), 0, false},
		{"32 elements", arrays(full), 0, true},
		{"33 elements", arrays(full + 1), 0, false},
		{"a leaf at a path of 32", "1", full, true},
		{"a child at a path of 32", `{"a":1}`, full, false},
		{"an element at a path of 32", `[1]`, full, false},
		{"path and body together 32", nested(2, "1"), full - 2, true},
		{"path and body together 33", nested(3, "1"), full - 2, false},
		{"nothing at a path of 32", `{}`, full, true},
		{"no elements at a path of 32", `[]`, full, true},
		{"a key counts also without data", `{"a":null}`, full, false},
		{".value and .priority do not count", nested(full, `{".value":1,".priority":2}`), 0, true},
		{".priority of an object does not count", nested(full-1, `{".priority":2,"k":1}`), 0, true},
		{".sv does not count", nested(full, `{".sv":{"increment":1}}`), 0, true},
		{".sv in a priority does not count", nested(full, `{".value":1,".priority":{".sv":"timestamp"}}`), 0, true},
		{"100,000 brackets", strings.Repeat("[", 100_000), 0, false},
		{"100,000 objects", strings.Repeat(`{"a":`, 100_000), 0, false},
	} {
		t.Run("Depth/"+test.name, func(t *testing.T) {
			t.Parallel()
			_, err := tree.DecodeBytes([]byte(test.text), tree.DecodeOptions{Depth: test.above})
			if test.ok && err != nil {
				t.Errorf("below %d keys, %.60s failed with %v, want it accepted", test.above, test.text, err)
			}
			if !test.ok && !errors.Is(err, tree.ErrTooDeep) {
				t.Errorf("below %d keys, %.60s failed with %v, want too deep", test.above, test.text, err)
			}
		})
	}
}

func TestPriorityOfABody(t *testing.T) {
	t.Parallel()
	checkReadings(t, []reading{
		{"Priority/string", `{".priority":"p","a":1}`, `{".priority":"p","a":1}`, nil},
		{"Priority/number", `{"a":1,".priority":1.0,"b":2}`, `{".priority":1,"a":1,"b":2}`, nil},
		{"Priority/double", `{"a":1,".priority":0.5}`, `{".priority":0.5,"a":1}`, nil},
		{"Priority/null is none", `{".priority":null,"a":1}`, `{"a":1}`, nil},
		{"Priority/of a leaf", `{".priority":"p",".value":"v"}`, `{".value":"v",".priority":"p"}`, nil},
		{"Priority/of a leaf, null", `{".priority":null,".value":"v"}`, `"v"`, nil},
		{"Priority/at every level", `{".priority":1,"a":{".priority":2,"b":{".value":3,".priority":4}}}`,
			`{".priority":1,"a":{".priority":2,"b":{".value":3,".priority":4}}}`, nil},
		{"Priority/boolean", `{".priority":true,"a":1}`, "", tree.ErrValue},
		{"Priority/object", `{".priority":{"a":1},"a":1}`, "", tree.ErrValue},
		{"Priority/empty object", `{".priority":{},"a":1}`, "", tree.ErrValue},
		{"Priority/array", `{".priority":[],"a":1}`, "", tree.ErrValue},
		{"Priority/wrapped in .value", `{".priority":{".value":1},"a":1}`, "", tree.ErrValue},
		{"Priority/out of range", `{".priority":1e999,"a":1}`, "", tree.ErrValue},
		{"Priority/repeated", `{".priority":1,"a":1,".priority":1}`, "", tree.ErrValue},
		{"Priority/judged also without data", `{".priority":true}`, "", tree.ErrValue},
	})
}

func TestValueOfABody(t *testing.T) {
	t.Parallel()
	checkReadings(t, []reading{
		{".value/alone", `{".value":1}`, `1`, nil},
		{".value/as a child", `{"a":{".value":"x"}}`, `{"a":"x"}`, nil},
		{".value/beside a key", `{".value":1,"a":2}`, "", tree.ErrValue},
		{".value/behind a key", `{"a":2,".value":1}`, "", tree.ErrValue},
		{".value/beside a key without data", `{".value":1,"a":null}`, "", tree.ErrValue},
		{".value/null beside a key", `{".value":null,"a":1}`, "", tree.ErrValue},
		{".value/object", `{".value":{"a":1}}`, "", tree.ErrValue},
		{".value/array", `{".value":[1]}`, "", tree.ErrValue},
		{".value/in .value", `{".value":{".value":1}}`, "", tree.ErrValue},
		{".value/repeated", `{".value":1,".value":1}`, "", tree.ErrValue},
		{".value/another dotted key", `{".foo":1}`, "", tree.ErrInvalidKey},
		{".value/only a dot", `{".":1}`, "", tree.ErrInvalidKey},
		{".value/another letter case", `{".Value":1}`, "", tree.ErrInvalidKey},
		{".value/spelled with an escape", `{"\u002evalue":1}`, `1`, nil},
	})
}

func TestObjectsHaveNoLeaf(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"a":"x"}`, `{".priority":5,"a":"x"}`} {
		if n := decode(t, text); !n.Leaf().IsNull() || !n.IsObject() || n.Len() != 1 {
			t.Errorf("the object %s has the leaf %s, want null", text, leafText(n.Leaf()))
		}
	}
	n := decode(t, `{".priority":5,"a":"x","b":{".value":7,".priority":"p"}}`)
	for key, want := range map[string]string{"a": "x null", "b": `7 "p"`, "c": "null null"} {
		child := n.At(path(t, key))
		got := strings.Trim(leafText(child.Leaf()), `"`) + " " + leafText(child.Priority())
		if got != want {
			t.Errorf("the child %s is %s, want %s", key, got, want)
		}
	}
	if got := leafText(n.Priority()); got != "5" {
		t.Errorf("the priority is %s, want 5", got)
	}
}

func TestChildrenCanBeLeftEarly(t *testing.T) {
	t.Parallel()
	for key, child := range decode(t, `{".priority":1,"a":"first","b":"second"}`).Children() {
		if key != "a" || child.Leaf().Text() != "first" {
			t.Errorf("the first child is %s = %s, want a = first", key, plain(child))
		}
		break
	}
}
