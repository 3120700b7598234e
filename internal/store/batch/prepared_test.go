package batch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/livetree/livetree/internal/store/layout"
)

// TestPrepared: what was prepared on a view replaces whatever is there at its turn,
// and leaves nothing of that.
func TestPrepared(t *testing.T) {
	const many, few = 2 * PointDeletes, 3
	for _, c := range []struct {
		name      string
		before    string
		meanwhile func(s *stand)
		adopted   bool // the prepared rows are not copied
	}{
		{"many rows", children(many), func(*stand) {}, true},
		{"few rows", children(few), func(*stand) {}, false},
		{"nothing", "null", func(*stand) {}, true},
		{"a leaf", "1", func(*stand) {}, true},
		{"many rows are deleted", children(many), func(s *stand) { s.put("a/b", "null") }, true},
		{"all is deleted", children(many), func(s *stand) { s.put("/", "null") }, true},
		{"many rows become a leaf", children(many), func(s *stand) { s.put("a/b", "1") }, true},
		{"the parent becomes a leaf", children(many), func(s *stand) { s.put("a", "1") }, true},
		{"many rows become few", children(many), func(s *stand) { s.put("a/b", children(few)) }, true},
		{"few rows become many", children(few), func(s *stand) { s.put("a/b", children(many)) }, false},
		{"nothing becomes many rows", "null", func(s *stand) { s.put("a/b", children(many)) }, false},
		{"a child gets a priority", children(many), func(s *stand) { s.put("a/b/k000001", `{".value":1,".priority":2}`) }, false},
		{"a child has a priority, and gets another", withPriority(many), func(s *stand) { s.put("a/b/k000001", `{".value":1,".priority":2}`) }, true},
		{"a child comes that goes", children(many), func(s *stand) { s.put("a/b/zzz/zz", `{"x":1,"y":2}`) }, true},
		{"a child comes that goes, with an index row", children(many), func(s *stand) { s.put("a/b/zzz/zz", `{"x":1,"y":{".value":1,".priority":2}}`) }, false},
		{"an index row goes before it", withPriority(many), func(s *stand) { s.put("a/b/zzz", "null") }, true},
		{"many rows, and index rows", withPriority(many), func(*stand) {}, true},
		{"index rows of others", children(many), func(s *stand) { s.put("a", `{"bb":`+withPriority(2)+`,"b":`+children(many)+`}`) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			after := fmt.Sprintf(`{"k000001":{"v":%q},"m":{"x":1,"y":2}}`, strings.Repeat("v", 200))
			w := putWrite(t, "a/b", after)
			fill := func(s *stand) {
				s.put("/", `{"a":{"a":1,"c":2}}`)
				s.put("a/b", c.before)
			}
			s, plain := newStand(t, 0), newStand(t, 0)
			fill(s)
			p := s.prepare(w, 100)
			defer p.Close()
			c.meanwhile(s)
			s.apply(w, p)
			if got := p.nodes[0].rows == nil; got != c.adopted {
				t.Errorf("the prepared rows are the batch: %v, want %v", got, c.adopted)
			}
			fill(plain)
			c.meanwhile(plain)
			plain.apply(w, nil)
			if got, want := s.dataRows(), plain.dataRows(); !slices.Equal(got, want) {
				t.Errorf("the rows are\n%q\nwant those of the write without preparing\n%q", got, want)
			}
			s.check()
		})
	}
}

// withPriority returns so many children, and one below another that has a priority, and so an index row.
func withPriority(n int) string {
	return strings.TrimSuffix(children(n), "}") + `,"zzz":{"zz":{"x":1,"y":{".value":1,".priority":2}}}}`
}

// TestPreparedRowsDeleteNoRangeForNothing: a range of index rows is deleted only if there are some.
func TestPreparedRowsDeleteNoRangeForNothing(t *testing.T) {
	for _, c := range []struct {
		before string
		want   []byte // the spaces in which ranges are deleted
	}{
		{children(2 * PointDeletes), []byte{layout.SpaceData}},
		{withPriority(2 * PointDeletes), []byte{layout.SpaceData, layout.SpaceIndex}},
	} {
		s := newStand(t, 0)
		s.put("a/b", c.before)
		p := s.prepare(putWrite(t, "a/b", children(3)), 1)
		defer p.Close()
		var got []byte
		for r := p.nodes[0].rows.Reader(); ; {
			kind, key, _, ok, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if kind == pebble.InternalKeyKindRangeDelete {
				got = append(got, key[0])
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("ranges are deleted in the spaces %x, want %x", got, c.want)
		}
	}
}
