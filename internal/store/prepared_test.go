package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestPrepared: what was prepared on a view replaces whatever is there at its turn,
// and leaves nothing of that.
func TestPrepared(t *testing.T) {
	const many, few = 2 * pointDeletes, 3
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
			s := newStand(t, Options{ChunkBytes: -1})
			s.put("/", `{"a":{"a":1,"c":2}}`)
			s.put("a/b", c.before)
			after := fmt.Sprintf(`{"k000001":{"v":%q},"m":{"x":1,"y":2}}`, strings.Repeat("v", 200))
			w := putWrite(t, "a/b", after)
			view := s.View()
			p, err := view.Tree(s.id).Prepare(w, nil, 100)
			view.Release()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			c.meanwhile(s)
			s.commitPrepared(w, p, c.adopted)
			s.expect("a/b", after)
			if err := s.Live(s.id).Check(); err != nil {
				t.Error(err)
			}
			if err := s.Live(s.id).CheckIndexes(nil, func(uint32) bool { return false }); err != nil {
				t.Error(err)
			}
		})
	}
}

// commitPrepared commits a write whose rows are prepared, and holds whether they
// were taken as they are against what is wanted.
func (s *stand) commitPrepared(w tree.Write, p *Prepared, adopted bool) {
	s.Helper()
	change := tree.Change{Write: w, Position: s.position + 1, Millis: s.opts.Now().UnixMilli()}
	batch, err := s.Build(s.id, change, s.indexes, p, &s.frontier)
	if err != nil {
		s.Fatal(err)
	}
	if got := p.nodes[0].rows == nil; got != adopted {
		s.Errorf("the prepared rows are the batch: %v, want %v", got, adopted)
	}
	done := make(visible)
	if err := s.Commit(batch, done); err != nil {
		s.Fatal(err)
	}
	s.position++
	<-done
}
