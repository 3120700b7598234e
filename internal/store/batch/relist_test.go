package batch

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestRelistings: of which nodes a write changes the keys of children.
func TestRelistings(t *testing.T) {
	for _, c := range []struct{ write, body, want string }{
		{"a/b/k1", `2`, ""},
		{"a/b/k1", `{"x":{"y":1}}`, ""},
		{"a/b/k3", `1`, "/a/b/k3 came last"},
		{"a/b/k1x", `1`, "/a/b/k1x came"},
		{"c", `1`, "/c came"},
		{"a/b/k1", `null`, "/a/b/k1 and below, /a/b/k1 gone"},
		{"d/e/f/g", `null`, "/d and below, /d gone"},
		{"a", `null`, "/a and below, /a gone"},
		{"a/b", `{"k1":1,"k9":2}`, "/a/b and below"},
		{"/", `null`, "anywhere around the root"},
	} {
		s := newStand(t, -1) // each leaf is a row
		s.put("/", `{"a":{"b":{"k1":1,"k2":2},"c":1},"d":{"e":{"f":{"g":1}}},"z":1}`)
		s.frontier = Frontier{} // as after a while without a write
		b, err := s.Build(s.live(), tree.Change{Write: putWrite(s, c.write, c.body), Position: 2, Millis: 1}, nil, nil, &s.frontier)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		b.Relistings(func(r Relisting) {
			at := r.Path.String()
			if r.Path.IsRoot() {
				at = "the root"
			}
			got = append(got, map[Reach]string{Anywhere: "anywhere around "}[r.Reach]+
				at+map[Reach]string{Subtree: " and below", Came: " came", CameLast: " came last", Gone: " gone"}[r.Reach])
		})
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("a put of %s at %s changes the keys of %q, want %q", c.body, c.write, got, c.want)
		}
		b.Close()
	}
}
