package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// An untilWriter counts what is called before the first write.
type untilWriter struct {
	calls, before int
	text          strings.Builder
}

func (w *untilWriter) call() error {
	w.calls++
	return nil
}

func (w *untilWriter) Write(p []byte) (int, error) {
	if w.text.Len() == 0 {
		w.before = w.calls
	}
	return w.text.Write(p)
}

// TestSelectionsArePaced: while a selection goes through rows and has nothing to write,
// it calls what Between was given, once for some hundred rows, and ends if that fails.
// A short one calls nothing.
func TestSelectionsArePaced(t *testing.T) {
	t.Parallel()
	const children = 3000
	s := newStand(t, Options{})
	s.memos.Init(0)
	s.bounds.sorted = 1000
	s.put("list", "[1"+strings.Repeat(`,{"a":"an element of a list"}`, children)+"]")
	s.put("object", prioritised(children))
	view := s.View()
	defer view.Release()
	object := parsePath(t, "object")
	for _, test := range []struct {
		name  string
		q     query.Query
		at    tree.Path
		array bool
		rows  int // that are gone through before the first is written
	}{
		{"the last by key", query.Query{Order: query.ByKey(), Limit: 2000, Last: true}, object, false, 2000},
		{"some by priority, sorted", query.Query{Order: query.ByPriority(), Limit: 1000}, object, false, 1000},
		{"many by priority, twice", query.Query{Order: query.ByPriority(), Limit: 2000}, object, false, 2000},
		{"a list, if it is one", query.Query{Order: query.ByKey()}, parsePath(t, "list"), true, 2 * children},
		{"a few", query.Query{Order: query.ByPriority(), Limit: 200, Last: true}, object, false, 0},
	} {
		printTo := func(w *untilWriter, f func() error) error {
			selection, err := view.Tree(s.id).Select(test.at, test.q, nil, tree.Plain)
			if err != nil {
				t.Fatal(err)
			}
			if test.array {
				selection.AllowArray()
			}
			selection.Between(f)
			return errors.Join(selection.PrintTo(w), selection.Close())
		}
		var w untilWriter
		if err := printTo(&w, w.call); err != nil {
			t.Fatal(err)
		}
		if least := test.rows/seek.RowsBetween - 2; w.before < least || test.rows == 0 && w.calls > 0 {
			t.Errorf("%s: %d calls before the first write and %d in all, want about %d before", test.name, w.before, w.calls, test.rows/seek.RowsBetween)
		}
		var cut untilWriter
		unwanted := errors.New("no turn")
		if err := printTo(&cut, func() error { return unwanted }); test.rows > 0 && (!errors.Is(err, unwanted) || cut.text.Len() > 0) {
			t.Errorf("%s: %d bytes and %v after a call failed, want none and its error", test.name, cut.text.Len(), err)
		}
	}
}
