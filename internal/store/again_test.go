package store

import (
	"bytes"
	"errors"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// TestPrintAgain: what is printed again is what was printed before, also if it was
// written to since, whether the node is split or not.
func TestPrintAgain(t *testing.T) {
	for _, chunk := range []int{-1, 0} {
		s := newStand(t, Options{ChunkBytes: chunk})
		s.put("a", `{"b":{"x":1,"y":2},"c":2,".priority":7}`)
		view := s.View()
		p := parsePath(t, "a")
		printer, err := view.Tree(s.id).Printer(p, tree.Export)
		if err != nil {
			t.Fatal(err)
		}
		selection, err := view.Tree(s.id).Select(p, query.Query{Order: query.ByKey(), Limit: 1}, nil, tree.Export)
		if err != nil {
			t.Fatal(err)
		}
		view.Release()
		s.put("a", `{"d":3}`)
		for _, test := range []struct {
			first interface {
				Text
				Again() (Text, error)
			}
			want string
		}{{printer, `{".priority":7,"b":{"x":1,"y":2},"c":2}`}, {selection, `{"b":{"x":1,"y":2}}`}} {
			again, err := test.first.Again()
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []Text{test.first, again} { // the second outlives the first
				var got bytes.Buffer
				if err := errors.Join(text.PrintTo(&got), text.Close()); err != nil || got.String() != test.want {
					t.Errorf("with chunks of %d bytes: printed %s, %v, want %s", chunk, &got, err, test.want)
				}
			}
		}
	}
}
