package batch

import (
	"fmt"
	"strings"
	"testing"
)

// TestFrontier: a child behind the last one is added without a look at the rows
// from the second on, until something is written that could be in its place.
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
			if outside := s.frontier.Lacks(s.live().Locate(parsePath(t, fmt.Sprintf("a/k%d", i)))); outside != (i > 10) {
				t.Errorf("it is known that nothing is at child %d: %v", i, outside)
			}
			s.put(fmt.Sprintf("a/k%d", i), `{"x":1,"y":2}`)
		}
		c.write(s)
		l := s.live().Locate(parsePath(t, "a/k13"))
		if got := s.frontier.Lacks(l); got != c.want {
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
	if n := len(s.frontier.edges); n != maxEdges || len(s.frontier.at) != n {
		t.Errorf("the frontier knows %d parents by %d keys, want %d", n, len(s.frontier.at), maxEdges)
	}
}

// TestFrontierBetweenChildren: a child is added without a look at the rows also where
// others come after it, as pushes do before keys that begin with a letter.
func TestFrontierBetweenChildren(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(s *stand)
		child string
		want  bool // known that nothing is there
	}{
		{"the next child", func(*stand) {}, "k20", true},
		{"the one after it", func(*stand) {}, "m1", false},
		{"one after that", func(*stand) {}, "m2", false},
		{"one before", func(*stand) {}, "k05", false},
		{"a child in between", func(s *stand) { s.put("a/k15", "1") }, "k15", false},
		{"after a child in between", func(s *stand) { s.put("a/k15", "1") }, "k20", true},
		{"with others after all", func(s *stand) { s.put("a/m5", "1") }, "k20", true},
		{"with others after all, again", func(s *stand) { s.put("a/m5", "1"); s.put("a/m6", "1") }, "k20", false},
		{"without the one after it", func(s *stand) { s.put("a/m1", "null") }, "k20", true},
		{"where the one after it was", func(s *stand) { s.put("a/m1", "null") }, "m1", false},
		{"without the parent", func(s *stand) { s.put("a", "null") }, "k20", false},
	} {
		s := newStand(t, 0)
		s.put("/", `{"a":{"b":1,"m1":{"x":1},"m3":2}}`)
		s.put("a/k10", "1")
		s.put("a/k11", "1") // which is of use
		c.write(s)
		if got := s.frontier.Lacks(s.live().Locate(parsePath(t, "a/"+c.child))); got != c.want {
			t.Errorf("%s: it is known that nothing is at %s: %v, want %v", c.name, c.child, got, c.want)
		}
	}
}

// TestFrontierKeepsWhatIsOfUse: a parent that children are pushed to outlasts many
// that get one.
func TestFrontierKeepsWhatIsOfUse(t *testing.T) {
	s := newStand(t, 0)
	s.frontier.Most = 4
	s.put("room", `{"a":1,"b":2}`)
	for i := range 20 {
		s.put(fmt.Sprintf("room/k%02d", i), `1`)
		s.put(fmt.Sprintf("p%02d", i), `{"a":1,"b":2}`)
		s.put(fmt.Sprintf("p%02d/c", i), `1`)
		if l := s.live().Locate(parsePath(t, "room/z")); !s.frontier.Lacks(l) {
			t.Fatalf("after %d other parents the room is forgotten", i)
		}
	}
}

// TestFrontierForgetsLongKeys: what is remembered does not grow with the keys.
func TestFrontierForgetsLongKeys(t *testing.T) {
	s := newStand(t, 0)
	long := strings.Repeat("x", maxEdgeBytes)
	s.put("/", `{"a":{"k01":1,"k02":2}}`)
	s.put("a/k10", "1")
	s.put("a/k11"+long, "1") // known to be outside, and then too long for the edge
	s.put(long+"/a/b", "1")
	for i := range s.frontier.edges {
		if e := &s.frontier.edges[i]; cap(e.parent)+cap(e.last)+cap(e.until) > 6*maxEdgeBytes {
			t.Errorf("an edge takes %d, %d and %d bytes", cap(e.parent), cap(e.last), cap(e.until))
		}
	}
	if l := s.live().Locate(parsePath(t, "a/k20")); s.frontier.Lacks(l) {
		t.Error("a parent with a long key after its others is still known")
	}
}
