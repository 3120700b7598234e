package tree_test

import (
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestTally counts what nodes share once, however many there are.
func TestTally(t *testing.T) {
	t.Parallel()
	total := func(nodes ...tree.Node) int {
		var tally tree.Tally
		for _, n := range nodes {
			tally.Add(n)
		}
		return tally.Bytes()
	}
	a, b := decode(t, `{"x":{"y":"a long text, a long text, a long text"},"z":1}`), decode(t, `{"x":1}`)
	if got := total(a, a.At(path(t, "/x")), a.At(path(t, "/x/y"))); got != total(a) {
		t.Errorf("a node and what is below it take %d bytes, want the %d of the node", got, total(a))
	}
	if got, want := total(a, b, a), total(a)+total(b); got != want {
		t.Errorf("two nodes take %d bytes, want %d", got, want)
	}
	if got := total(tree.Node{}); got != 0 {
		t.Errorf("no data takes %d bytes, want none", got)
	}
	editor := tree.NewEditor(a)
	editor.SetPriority(tree.Path{}, tree.IntegerLeaf(1))
	if got, most := total(a, editor.Node()), 2*total(a)+100; got <= total(a) || got > most {
		t.Errorf("a node and its copy with a priority take %d bytes, want more than %d and at most %d", got, total(a), most)
	}
	var many []tree.Node
	want := 0
	for i := range 50 {
		n := decode(t, fmt.Sprintf(`{"key":"text %d"}`, i))
		many = append(many, n, n)
		want += total(n)
	}
	if got := total(many...); got != want {
		t.Errorf("fifty nodes, each twice, take %d bytes, want %d", got, want)
	}
}
