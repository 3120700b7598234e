package batch

import (
	"fmt"
	"testing"
)

// TestFrontier: a child behind the last one is added without a look at the rows
// from the third on, until something is written that could be in its place.
func TestFrontier(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(s *stand)
		want  bool // still known to be outside
	}{
		{"nothing", func(*stand) {}, true},
		{"a child in between", func(s *stand) { s.put("a/k10x", "1") }, true},
		{"a child elsewhere", func(s *stand) { s.put("b/k99", "1") }, true},
		{"a child is deleted", func(s *stand) { s.put("a/k11", "null") }, true},
		{"the last child is deleted", func(s *stand) { s.put("a/k12", "null") }, true},
		{"a leaf in the last child", func(s *stand) { s.put("a/k12/x", "1") }, true},
		{"the child itself", func(s *stand) { s.put("a/k13", "1") }, false},
		{"one behind it", func(s *stand) { s.put("a/k14", "1") }, false},
		{"something in the child", func(s *stand) { s.put("a/k13/x/y", "1") }, false},
		{"a patch of the child", func(s *stand) { s.patch("/", `{"c":1,"a/k13/x":1}`) }, false},
		{"the parent", func(s *stand) { s.put("a", `{"x":1,"y":2}`) }, false},
		{"the root", func(s *stand) { s.put("/", `{"x":1,"y":2}`) }, false},
		{"the parent is deleted", func(s *stand) { s.put("a", "null") }, false},
		{"all children are deleted", func(s *stand) { s.patch("a", `{"k01":null,"k10":null,"k11":null,"k12":null}`) }, false},
		{"all are deleted, another comes", func(s *stand) { s.patch("a", `{"k01":null,"k10":null,"k11":null,"k12":null,"k02":1}`) }, true},
	} {
		s := newStand(t, 0)
		s.put("/", `{"a":{"k01":1},"b":{"k01":1,"k02":2}}`)
		for i := 10; i < 13; i++ {
			s.put(fmt.Sprintf("a/k%d", i), `{"x":1,"y":2}`)
		}
		c.write(s)
		l := s.live().Locate(parsePath(t, "a/k13"))
		if got := s.frontier.isOutside(l); got != c.want {
			t.Errorf("%s: it is known that nothing is at the next child: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestFrontierKeepsFew: new parents push out old ones.
func TestFrontierKeepsFew(t *testing.T) {
	s := newStand(t, 0)
	for i := range 10 * maxEdges {
		s.put(fmt.Sprintf("p%d", i), `{"a":1,"b":2}`)
		s.put(fmt.Sprintf("p%d/c", i), `1`)
	}
	if n := len(s.frontier.edges); n != maxEdges {
		t.Errorf("the frontier knows %d parents, want %d", n, maxEdges)
	}
}
