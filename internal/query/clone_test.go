package query_test

import (
	"testing"
	"unsafe"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// TestClone: a clone is equal, and shares no text with its original.
func TestClone(t *testing.T) {
	path, err := tree.ParsePath("a/b")
	if err != nil {
		t.Fatal(err)
	}
	q := query.Query{
		Order: query.ByChild(path),
		Lower: query.Bound{Set: true, Value: tree.StringLeaf("low"), Key: "k"},
		Upper: query.Bound{Set: true, Value: tree.IntegerLeaf(7), Exclusive: true},
		Limit: 3, Last: true,
	}
	clone, textBytes := q.Clone()
	if clone != q || textBytes != len("a/b")+len("low")+len("k") {
		t.Errorf("Clone() = %+v and %d bytes, want %+v", clone, textBytes, q)
	}
	for _, pair := range [][2]string{
		{q.Lower.Value.Text(), clone.Lower.Value.Text()}, {q.Lower.Key, clone.Lower.Key},
	} {
		if unsafe.StringData(pair[0]) == unsafe.StringData(pair[1]) {
			t.Errorf("the clone shares %q", pair[0])
		}
	}
}
