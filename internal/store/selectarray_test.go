package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// TestSelectedArray: a result prints as an array exactly if a node of the same
// children would.
func TestSelectedArray(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	atEveryLimit(t, func(s *stand) {
		arrays := 0
		for range 20 {
			var members []string
			for key := range 80 {
				if rng.IntN(3) > 0 {
					members = append(members, fmt.Sprintf(`"%d":{".value":%d,".priority":%d}`, key, key, rng.IntN(5)))
				}
			}
			s.put("/l", "{"+strings.Join(members, ",")+"}")
			q := query.Query{Order: query.ByKey(), Limit: rng.IntN(60)}
			if rng.IntN(2) == 0 {
				q.Order = query.ByPriority()
			}
			q.Last = q.Limit > 0 && rng.IntN(2) == 0
			if text := s.selectedArray(q); text[0] == '[' {
				arrays++
			}
		}
		if arrays == 0 {
			t.Error("no result is an array")
		}
	})
}

// selectedArray returns the text of what q selects from /l, and compares it.
func (s *stand) selectedArray(q query.Query) string {
	s.Helper()
	n, err := tree.DecodeBytes([]byte(s.export("/l")), tree.DecodeOptions{})
	if err != nil {
		s.Fatal(err)
	}
	editor := tree.NewEditor(tree.Node{})
	for _, key := range query.Select(n, q) {
		editor.Set(tree.Path{}.Child(key), n.Child(key))
	}
	want := string(tree.AppendJSON(nil, editor.Node(), tree.Plain))
	view := s.View()
	defer view.Release()
	selection, err := view.Tree(s.id).Select(parsePath(s, "/l"), q, nil, tree.Plain)
	if err != nil {
		s.Fatal(err)
	}
	selection.AllowArray()
	var text strings.Builder
	if err := errors.Join(selection.PrintTo(&text), selection.Close()); err != nil {
		s.Fatal(err)
	}
	got := text.String()
	if got[0] == '{' { // in the order in which the children were found
		n, err := tree.DecodeBytes([]byte(got), tree.DecodeOptions{})
		if err != nil {
			s.Fatal(err)
		}
		if again := string(tree.AppendJSON(nil, n, tree.Plain)); again[0] == '[' {
			s.Errorf("%+v prints %.80s, want an array", q, got)
		} else {
			got = again
		}
	}
	if got != want {
		s.Errorf("%+v prints %.80s, want %.80s", q, got, want)
	}
	return got
}
