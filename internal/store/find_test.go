package store

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
			findJSON([]byte(text), p)
		}
		n, err := tree.Decode(strings.NewReader(text), tree.DecodeOptions{})
		if err != nil || n.IsNull() || n.HasPlaceholders() {
			return
		}
		row, fits := appendRow(nil, n, MaxChunkBytes)
		if !fits || row[0] != 0 {
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
	if got, ok := findJSON(text, p); string(got) != want || !ok {
		t.Errorf("%s in %s is %s, %v; want %s", p, text, got, ok, want)
	}
	for key := range at.Children() {
		expectFound(t, text, n, p.Child(key))
	}
}
