package layout

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// FuzzFindJSON takes its input as a node, in which every part must be found as
// decoding would find it, and as bytes that no store wrote, which must not hurt.
func FuzzFindJSON(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"b":{"c":"}","d":{"e":true}},"q\"\\":"\",","é😀":-0.5}`,
		`{"a":{"a":{"a":{"a":"\\"}}},"ab":{"a":2},"-":"{\"a\":1}"}`,
		`{"07":{"7":1},"x":{"":1}}`, `"text"`, `5`, `{`, `{"a`, `{"a":`, `{"a":"\`, `{"a":{"b":1}`, `{"a":1}}`, `{,}`, `{"a"1}`,
		`{".value":"text",".priority":1}`, `{".value":-0.5,".priority":"\""}`, `{".value":",\".priority\":2}",".priority":",\".priority\":3}"}`, `{".priority":1,"a":{".value":true,".priority":2}}`, `["a",1]`,
	} {
		f.Add(text, "/a/a")
		f.Add(text, "/b/d/e")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		p, err := tree.ParsePath(path)
		if err != nil {
			return
		}
		if text != "" {
			FindJSON([]byte(text), p)
			row := append([]byte{0}, text...)
			_, _, _ = LookIn(row, p)
			_, _ = ExistsIn(row, p)
			_, _ = KindIn(row, p)
			_, _, _ = LookNumberIn(row, p)
			_, _, _ = LookNumberIn(append([]byte(leafPrefix), text...), p)
			_, _ = KindIn(append([]byte(leafPrefix), text...), p)
		}
		n, err := tree.Decode(strings.NewReader(text), tree.DecodeOptions{})
		if err != nil || n.IsNull() || n.HasPlaceholders() {
			return
		}
		row, fits := AppendChunk(nil, n, MaxChunkBytes, nil)
		if !fits {
			return
		}
		expectSeen(t, row, n, tree.Path{})
		expectSeen(t, row, n, p)
		if row[0] != 0 {
			return
		}
		expectFound(t, row[1:], n, tree.Path{})
		expectFound(t, row[1:], n, p)
	})
}

// expectFound looks for p, and for all that is below it.
func expectFound(t *testing.T, text []byte, n tree.Node, p tree.Path) {
	t.Helper()
	at := n.At(p)
	want := string(tree.AppendJSON(nil, at, tree.Plain))
	if got, ok := FindJSON(text, p); string(got) != want || !ok {
		t.Errorf("%s in %s is %s, %v; want %s", p, text, got, ok, want)
	}
	for key := range at.Children() {
		expectFound(t, text, n, p.Child(key))
	}
}

// expectSeen looks at p, and at all that is below it.
func expectSeen(t *testing.T, row []byte, n tree.Node, p tree.Path) {
	t.Helper()
	at := n.At(p)
	leaf, priority, err := LookIn(row, p)
	if leaf != at.Leaf() || priority != at.Priority() || err != nil {
		t.Errorf("%s in %s is %v, %v, %v; want %v, %v", p, row[1:], leaf, priority, err, at.Leaf(), at.Priority())
	}
	if exists, err := ExistsIn(row, p); exists == at.IsNull() || err != nil {
		t.Errorf("%s in %s exists: %t, %v", p, row[1:], exists, err)
	}
	number, numberPriority, err := LookNumberIn(row, p)
	if number != leaf && (!number.IsNull() || leaf.Kind() != tree.String) || numberPriority != priority || err != nil {
		t.Errorf("%s in %s is the number %v, %v, %v; want %v, %v", p, row[1:], number, numberPriority, err, leaf, priority)
	}
	if kind, err := KindIn(row, p); kind != at.Leaf().Kind() || err != nil {
		t.Errorf("%s in %s is of kind %v, %v; want %v", p, row[1:], kind, err, at.Leaf().Kind())
	}
	for key := range at.Children() {
		expectSeen(t, row, n, p.Child(key))
	}
}
