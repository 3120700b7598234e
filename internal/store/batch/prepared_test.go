package batch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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
		{"a child gets a priority", children(many), func(s *stand) { s.put("a/b/k000001", `{".value":1,".priority":2}`) }, true},
		{"a child comes that goes", children(many), func(s *stand) { s.put("a/b/zzz/zz", `{"x":1,"y":{".value":1,".priority":2}}`) }, true},
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
