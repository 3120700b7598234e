package store

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
)

// TestPrintedTextIsHashed: what a store prints in export form is what an sdkhash.Writer
// reads, whether a node is in one chunk, part of one, or split.
func TestPrintedTextIsHashed(t *testing.T) {
	atEveryLimit(t, func(s *stand) {
		var wide strings.Builder
		for i := range 300 {
			fmt.Fprintf(&wide, `,"k%03d":{".priority":%d,"a":["x",null,{".value":%d.5,".priority":"p"}],"😀\u2028":"\"\\\n\u0001%d"}`, i, i*7%50, i, i)
		}
		s.put("", `{"leaf":{".value":-1e300,".priority":63.99999999999999},"list":[1,2,3,"",true],`+
			`"long":"`+strings.Repeat(`é\n`, 40_000)+`","wide":{".priority":"top"`+wide.String()+`}}`)
		for _, at := range []string{"", "leaf", "list", "list/3", "long", "wide", "wide/k007", "wide/k007/a", "wide/k007/a/2", "absent"} {
			n, err := tree.DecodeBytes([]byte(s.export(at)), tree.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			view := s.View()
			s.expectHash(at, n, func(w io.Writer) error { return view.Tree(s.id).Print(w, parsePath(s, at), tree.Export) })
			view.Release()
		}
		for _, limit := range []int{1, 20, 1000} {
			s.expectWindowHash("wide", query.Query{Order: query.ByPriority(), Limit: limit})
			s.expectWindowHash("wide", query.Query{Order: query.ByKey(), Limit: limit, Last: true})
			s.expectWindowHash("list", query.Query{Order: query.ByKey(), Limit: limit, Last: true})
			s.expectWindowHash("absent", query.Query{Order: query.ByKey(), Limit: limit})
		}
	})
}

// expectWindowHash compares the hash of what a query selects.
func (s *stand) expectWindowHash(at string, q query.Query) {
	s.Helper()
	view := s.View()
	defer view.Release()
	show := func(w io.Writer) error {
		selection, err := view.Tree(s.id).Select(parsePath(s, at), q, nil, tree.Export)
		if err != nil {
			return err
		}
		defer func() { _ = selection.Close() }()
		return selection.PrintTo(w)
	}
	var text strings.Builder
	if err := show(&text); err != nil {
		s.Fatal(err)
	}
	n, err := tree.DecodeBytes([]byte(text.String()), tree.DecodeOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.expectHash(at, n, show)
}

// expectHash compares the hash of what is printed with that of n.
func (s *stand) expectHash(at string, n tree.Node, show func(io.Writer) error) {
	s.Helper()
	w := sdkhash.NewWriter(16 << 20)
	if err := show(w); err != nil {
		s.Errorf("print %s: %v", at, err)
		return
	}
	right, js, err := w.Sums()
	if err != nil || right != sdkhash.Of(n) || js != jsHash(s, n) {
		s.Errorf("the hashes of %s are %q and %q, %v, want %q and %q", at, right, js, err, sdkhash.Of(n), jsHash(s, n))
	}
}

// jsHash returns the hash of n as the JavaScript SDK has it.
func jsHash(t testing.TB, n tree.Node) string {
	t.Helper()
	text := tree.AppendJSON(nil, n, tree.Export)
	w := sdkhash.NewWriter(int64(len(text)))
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	_, js, err := w.Sums()
	if err != nil {
		t.Fatal(err)
	}
	return js
}
