package rules_test

import (
	"fmt"
	"testing"

	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// TestReadAll: many nodes are read as one request, in which each rule above them is asked once, and
// which has the steps of one.
func TestReadAll(t *testing.T) {
	t.Parallel()
	r := compile(t, `{"a": {".read": "root.child('open').val() === true", "$k": {".read": "$k === 'mine'"}}, "b": {"$k": {".read": "root.child($k).exists()"}}}`)
	open, shut := rules.InNode(decode(t, `{"open": true, "k0": 1, "k1": 1}`)), rules.InNode(decode(t, `{"open": false}`))
	many := func(form string, n int) (paths []tree.Path) {
		for i := range n {
			paths = append(paths, path(t, fmt.Sprintf(form, i)))
		}
		return paths
	}
	for _, c := range []struct {
		data  rules.Data
		paths []tree.Path
		steps int
		want  bool
		over  bool
		asked int
	}{
		{open, many("/a/k%d", 1000), 0, true, false, 1},
		{shut, many("/a/k%d", 1000), 0, false, false, 2},
		{shut, []tree.Path{path(t, "/a/mine"), path(t, "/a/mine/x"), path(t, "/a/mine/y")}, 0, true, false, 2},
		{shut, []tree.Path{path(t, "/a/mine"), path(t, "/a")}, 0, false, false, 2},
		{open, many("/b/k%d", 2), 0, true, false, 2},
		{open, many("/b/k%d", 3), 0, false, false, 3},
		{open, many("/c/k%d", 3), 0, false, false, 0},
		{open, many("/b/k%d", 2), 10, false, true, 1},
		{open, nil, 0, true, false, 0},
	} {
		asked := 0
		req := rules.Request{Observe: func(rules.Asked) { asked++ }}.WithSteps(c.steps)
		d, err := r.ReadAll(req, c.data, c.paths)
		if err != nil || d.Allowed != c.want || d.OverBudget != c.over || asked != c.asked {
			t.Errorf("%d paths from %v: %v, over budget %v, %d rules were asked, %v; want %v, %v, %d",
				len(c.paths), c.paths[:min(1, len(c.paths))], d.Allowed, d.OverBudget, asked, err, c.want, c.over, c.asked)
		}
	}
}
