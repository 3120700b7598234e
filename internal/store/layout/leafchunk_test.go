package layout

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestLeafChunks: the text of a leaf is found in its chunk, and its priority without it.
func TestLeafChunks(t *testing.T) {
	long := `"` + strings.Repeat(`x\"é\\`, 1000) + `"`
	texts := []string{"1", "-0.5", "1e+300", "true", "false", `""`, `"a"`, `"\",\".priority\":7}"`, `",\".priority\":"`, `"{"`, `"["`, `"\\"`, long}
	priorities := []string{"null", "1", "-2.5", `"p"`, `",\".priority\":3}"`, `"\\"`}
	for _, text := range texts {
		for _, priority := range priorities {
			row := leafRow(t, text, priority)
			head, found, tail, ok := CutLeaf(row)
			if string(found) != text || string(head)+text+string(tail) != string(row) || !ok {
				t.Errorf("CutLeaf(%.40q) = %q, %.40q, %q, %v", row, head, found, tail, ok)
			}
			if n, err := DecodeWithoutLeaf(row); err != nil || n.Leaf() != tree.BooleanLeaf(true) || n.Priority() != chunkNode(t, row).Priority() {
				t.Errorf("DecodeWithoutLeaf(%.40q) = %s, %v", row, tree.AppendJSON(nil, n, tree.Export), err)
			}
			for _, rel := range []string{"/", "/a", "/a/b"} {
				expectPresence(t, row, mustPath(t, rel))
			}
		}
	}
	for _, body := range []string{`{"a":1}`, `{"a":{"b":"x"},"c":2}`, `["a","b"]`, `{"a":["x"],"b":1}`, `{"a":{".value":1,".priority":2}}`, `{".priority":1,"a":2}`, `{".priority":1,"0":{"b":1}}`} {
		n, err := tree.Decode(strings.NewReader(body), tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		row, _ := AppendChunk(nil, n, MaxChunkBytes, nil)
		if _, _, _, ok := CutLeaf(row); ok {
			t.Errorf("CutLeaf takes %q for a leaf", row)
		}
		for _, rel := range []string{"/", "/a", "/a/b", "/0", "/0/b", "/c/x"} {
			expectPresence(t, row, mustPath(t, rel))
		}
	}
}

// leafRow returns the chunk of a leaf.
func leafRow(t *testing.T, text, priority string) []byte {
	t.Helper()
	n, err := tree.Decode(strings.NewReader(`{".value":`+text+`,".priority":`+priority+`}`), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	row, _ := AppendChunk(nil, n, 0, nil)
	return row
}

func chunkNode(t *testing.T, row []byte) tree.Node {
	t.Helper()
	n, err := DecodeChunk(row)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// expectPresence compares what PresenceIn and SummarizeIn say with the node.
func expectPresence(t *testing.T, row []byte, rel tree.Path) {
	t.Helper()
	want := Summarize(chunkNode(t, row).At(rel))
	if got, err := SummarizeIn(row, rel); err != nil || got != want {
		t.Errorf("SummarizeIn(%.40q, %s) = %.80v, %v; want %.80v", row, rel, got, err, want)
	}
	want = Summary{Exists: want.Exists, Priority: want.Priority}
	if got, err := PresenceIn(row, rel); err != nil || got != want {
		t.Errorf("PresenceIn(%.40q, %s) = %v, %v; want %v", row, rel, got, err, want)
	}
}
