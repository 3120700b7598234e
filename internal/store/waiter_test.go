package store

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

// TestReadThatNobodyWaitsFor: it ends before it has gone through its rows, and is
// not taken for damage. While somebody waits, it is as any other.
func TestReadThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	s := newStand(t, Options{})
	s.memos.Init(0)
	s.put("list", "[1"+strings.Repeat(`,{"a":"an element of a list"}`, 3000)+"]")
	s.put("object", prioritised(3000))
	view := s.View()
	defer view.Release()
	list, object := parsePath(t, "list"), parsePath(t, "object")
	selected := func(q query.Query, at tree.Path, array bool) func(Tree, io.Writer) error {
		return func(live Tree, w io.Writer) error {
			selection, err := live.Select(at, q, nil, tree.Plain)
			if err != nil {
				return err
			}
			if array {
				selection.AllowArray()
			}
			return errors.Join(selection.PrintTo(w), selection.Close())
		}
	}
	measured := func(q query.Query, at tree.Path) func(Tree, io.Writer) error {
		return func(live Tree, w io.Writer) error {
			count, last, err := live.Measure(at, q, nil, 0)
			if err == nil {
				fmt.Fprint(w, count, last)
			}
			return err
		}
	}
	for name, read := range map[string]func(Tree, io.Writer) error{
		"a list":               func(t Tree, w io.Writer) error { return t.Print(w, list, tree.Plain) },
		"an object":            func(t Tree, w io.Writer) error { return t.Print(w, object, tree.Plain) },
		"the last by key":      selected(query.Query{Order: query.ByKey(), Limit: 1000, Last: true}, object, false),
		"all by key":           selected(query.Query{Order: query.ByKey()}, object, false),
		"some by priority":     selected(query.Query{Order: query.ByPriority(), Limit: 1000}, object, false),
		"all by priority":      selected(query.Query{Order: query.ByPriority()}, object, false),
		"a list, if it is one": selected(query.Query{Order: query.ByKey()}, list, true),
		"a page of keys": func(t Tree, w io.Writer) error {
			page, err := t.ShallowPage(object, "k000001", 0)
			if err != nil {
				return err
			}
			return errors.Join(page.PrintTo(w), page.Close())
		},
		"the number of the first by key":      measured(query.Query{Order: query.ByKey(), Limit: 1 << 30}, object),
		"the number of the last by key":       measured(query.Query{Order: query.ByKey(), Limit: 1 << 30, Last: true}, object),
		"the number of the first by priority": measured(query.Query{Order: query.ByPriority(), Limit: 1 << 30}, object),
		"the number of the last by priority":  measured(query.Query{Order: query.ByPriority(), Limit: 1 << 30, Last: true}, object),
		"an explanation of that":              func(t Tree, _ io.Writer) error { _, err := t.Explain(list, nil, nil); return err },
	} {
		done := make(chan struct{})
		var want, got strings.Builder
		if err := errors.Join(read(view.Tree(s.id), &want), read(view.Tree(s.id).Until(done), &got)); err != nil || got.String() != want.String() {
			t.Errorf("%s: %.80s, %v; want %.80s", name, got.String(), err, want.String())
		}
		close(done)
		got.Reset()
		err := read(view.Tree(s.id).Until(done), &got)
		if !errors.Is(err, ErrUnwanted) || errors.Is(err, ErrDamaged) || got.Len() > 0 {
			t.Errorf("%s: %d bytes and %v when nobody waits, want nothing and ErrUnwanted", name, got.Len(), fmt.Sprint(err))
		}
	}
}
