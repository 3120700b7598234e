package leave_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/tree"
)

// parse reads a request: "o /x {…}", "om /x {…}" or "oc /x"; the path of the first and
// the last may end in .priority.
func parse(t testing.TB, request string) (action string, w tree.Write) {
	t.Helper()
	action, rest, _ := strings.Cut(request, " ")
	at, body, _ := strings.Cut(rest, " ")
	at, priority := strings.CutSuffix(at, "/.priority")
	p, err := tree.ParsePath(at)
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	var n tree.Node
	switch {
	case action == "oc":
	case action == "om":
		w, err = tree.DecodePatch(strings.NewReader(body), p, tree.DecodeOptions{})
		if err != nil {
			t.Fatalf("%s: %v", request, err)
		}
		return action, w
	case priority:
		n, err = tree.DecodePriority(strings.NewReader(body), tree.DecodeOptions{})
	default:
		n, err = tree.DecodeBytes([]byte(body), tree.DecodeOptions{Depth: p.Depth()})
	}
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	w = tree.Put(p, n)
	w.Assignments[0].Priority = priority
	return action, w
}

// apply returns the list after a request.
func apply(t testing.TB, l *leave.List, request string) (*leave.List, error) {
	t.Helper()
	action, w := parse(t, request)
	if action == "oc" {
		return l.Without(w.At, w.Assignments[0].Priority)
	}
	return l.With(w)
}

// show prints the writes of a list, one on each line.
func show(t testing.TB, l *leave.List) string {
	t.Helper()
	var lines []string
	for _, r := range l.Rows() {
		w, err := r.Write()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, showWrite(w))
	}
	return strings.Join(lines, "\n")
}

func showWrite(w tree.Write) string {
	var parts []string
	for _, a := range w.Assignments {
		name := a.Path.String()
		if a.Priority {
			name = strings.TrimSuffix(name, "/") + "/.priority"
		}
		if !w.Patch {
			return fmt.Sprintf("set %s %s", name, tree.AppendJSON(nil, a.Node, tree.Export))
		}
		parts = append(parts, fmt.Sprintf("%s %s", name, tree.AppendJSON(nil, a.Node, tree.Export)))
	}
	return fmt.Sprintf("patch %s: %s", w.At, strings.Join(parts, ", "))
}

func TestList(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		requests []string
		want     []string
	}{
		{"in the order of registration", []string{"o /b 1", "o /a 2"}, []string{"set /b 1", "set /a 2"}},
		{"again is later", []string{"o /b 1", "o /a 2", "o /b 3"}, []string{"set /a 2", "set /b 3"}},
		{"replaces what is below", []string{"o /x/a 1", "o /x/b/c 2", "o /y 3", "o /x null"}, []string{"set /y 3", "set /x null"}},
		{"a sibling with a longer name stays", []string{"o /xy 1", "o /x 2"}, []string{"set /xy 1", "set /x 2"}},
		{"the root replaces all", []string{"o /x/a 1", "om /y {\"b\":1}", "o / 5"}, []string{"set / 5"}},
		{"changes inside a value", []string{`o /x {"a":1}`, "o /y 1", "o /x/b/c 2"}, []string{`set /x {"a":1,"b":{"c":2}}`, "set /y 1"}},
		{"below a leaf", []string{`o /x {".value":1,".priority":2}`, "o /x/a 3"}, []string{`set /x {".priority":2,"a":3}`}},
		{"nothing below a leaf", []string{`o /x 1`, "o /x/a null"}, []string{`set /x 1`}},
		{"below nothing", []string{`o /x null`, "o /x/a 1"}, []string{`set /x {"a":1}`}},
		{"the last child goes", []string{`o /x {"a":1}`, "o /x/a null"}, []string{`set /x null`}},

		{"om is one write", []string{`om /x {"a":1,"b/c":2,"d":null}`}, []string{"patch /x: /x/a 1, /x/b/c 2, /x/d null"}},
		{"om of one path", []string{`om /x {"a":1}`}, []string{"patch /x: /x/a 1"}},
		{"om of nothing", []string{`om /x {}`}, nil},
		{"om of null", []string{`om /x null`}, []string{"set /x null"}},
		{"om replaces what is below", []string{"o /x/a/b 1", "o /x/c 2", `om /x {"a":3}`}, []string{"set /x/c 2", "patch /x: /x/a 3"}},
		{"om changes inside a value", []string{`o /x {"a":1}`, `om / {"x/b":2,"y":3}`}, []string{`set /x {"a":1,"b":2}`, "patch /: /y 3"}},
		{"om loses a path", []string{`om /x {"a":1,"b":2}`, "o /x/a 3"}, []string{"patch /x: /x/b 2", "set /x/a 3"}},
		{"om changes all children of a value", []string{`o /x {"a":1,".priority":2}`, `om /x {"a":null,"b":3}`}, []string{`set /x {".priority":2,"b":3}`}},

		{"cancel", []string{"o /x/a 1", `om / {"x/b":1,"y":2}`, "oc /x"}, []string{"patch /: /y 2"}},
		{"cancel of all", []string{"o /x/a 1", "o /y 2", "oc /"}, nil},
		{"cancel of nothing", []string{"o /x/a 1", "oc /y", "oc /x/a/b"}, []string{"set /x/a 1"}},
		{"cancel inside a value (PYR)", []string{`o /x {"parent":true,"child":1}`, "o /x/child 2", "oc /x/child"}, []string{"set /x/parent true"}},
		{"cancel splits into several", []string{`o /x {"a":1,"b":2,"c":{"d":3,"e":4}}`, "oc /x/c/d"}, []string{"patch /x: /x/a 1, /x/b 2, /x/c/e 4"}},
		{"cancel of what is not in a value", []string{`o /x {"a":1,"b":2}`, "oc /x/c"}, []string{"patch /x: /x/a 1, /x/b 2"}},
		{"cancel below a leaf in a value", []string{`o /x {"a":1}`, "oc /x/a/b"}, []string{"set /x/a 1"}},
		{"cancel inside nothing", []string{`o /x null`, "oc /x/a"}, nil},
		{"a value that was split is set again", []string{`o /x {"a":1,"b":2}`, "oc /x/a", "o /x 3"}, []string{"set /x 3"}},
		{"a split value loses its priority", []string{`o /x {"a":1,"b":2,".priority":3}`, "oc /x/a"}, []string{"set /x/b 2"}},
		{"inside a part of a split value", []string{`o /x {"a":1,"b":{"c":2}}`, "oc /x/a", "o /x/b/d 3", "o /x/a 4"}, []string{`set /x/b {"c":2,"d":3}`, "set /x/a 4"}},

		{"a priority", []string{"o /x/.priority 5"}, []string{"set /x/.priority 5"}},
		{"a priority of the root", []string{`om / {".priority":5}`}, []string{"patch /: /.priority 5"}},
		{"a priority again", []string{"o /x/.priority 5", "o /x/.priority 6"}, []string{"set /x/.priority 6"}},
		{"a value takes the priority away", []string{"o /x/.priority 5", "o /x 6"}, []string{"set /x 6"}},
		{"a priority beside children", []string{"o /x/a 1", "o /x/.priority 5"}, []string{"set /x/a 1", "set /x/.priority 5"}},
		{"a priority inside a value", []string{`o /x {"a":1}`, `om / {"x/.priority":5,"x/a/.priority":6,"x/b/.priority":7}`}, []string{`set /x {".priority":5,"a":{".value":1,".priority":6}}`}},
		{"cancel of a priority", []string{"o /x/.priority 5", "o /x/a 1", "oc /x/.priority"}, []string{"set /x/a 1"}},
		{"cancel of a priority in a value", []string{`o /x {"a":1,"b":2,".priority":5}`, "oc /x/.priority"}, []string{"patch /x: /x/a 1, /x/b 2"}},
		{"cancel of the priority of a leaf", []string{`o /x {".value":1,".priority":5}`, "oc /x/.priority"}, []string{`set /x {".value":1,".priority":5}`}},

		{"server values", []string{`o /x {"t":{".sv":"timestamp"},"n":{".sv":{"increment":1}},"p":{".value":1,".priority":{".sv":"timestamp"}}}`, `o /x/d {".sv":{"increment":-0.5}}`, `o /x/d/.priority {".sv":"timestamp"}`},
			[]string{`set /x {"d":{".value":{".sv":{"increment":-0.5}},".priority":{".sv":"timestamp"}},"n":{".sv":{"increment":1}},"p":{".value":1,".priority":{".sv":"timestamp"}},"t":{".sv":"timestamp"}}`}},
		{"a server value put into a value", []string{`o /x {"a":1}`, `o /x/b {".sv":"timestamp"}`, "o /x/.priority {\".sv\":\"timestamp\"}"},
			[]string{`set /x {".priority":{".sv":"timestamp"},"a":1,"b":{".sv":"timestamp"}}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := leave.New(leave.DefaultLimits())
			for _, request := range test.requests {
				var err error
				if l, err = apply(t, l, request); err != nil {
					t.Fatalf("%s: %v", request, err)
				}
			}
			if got, want := show(t, l), strings.Join(test.want, "\n"); got != want {
				t.Errorf("after %q there is left\n%s\nwant\n%s", test.requests, got, want)
			}
			if l.IsEmpty() != (len(test.want) == 0) {
				t.Errorf("IsEmpty() = %v", l.IsEmpty())
			}
		})
	}
}

// TestServerValuesWait: what is left has its server values resolved when it is made, also
// those that an edit has moved from one value into another.
func TestServerValuesWait(t *testing.T) {
	t.Parallel()
	l := leave.New(leave.DefaultLimits())
	for _, request := range []string{`o /x {"n":{".sv":{"increment":1}}}`, `o /x/t {".sv":"timestamp"}`} {
		var err error
		if l, err = apply(t, l, request); err != nil {
			t.Fatal(err)
		}
	}
	w, err := l.Rows()[0].Write()
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := tree.Resolve(w, 77, seven{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := showWrite(resolved), `set /x {"n":8,"t":77}`; got != want {
		t.Errorf("resolved it is %s, want %s", got, want)
	}
}

// seven is a tree with a 7 everywhere.
type seven struct{}

func (seven) Look(tree.Path) (leaf, priority tree.Leaf, err error) {
	return tree.IntegerLeaf(7), tree.Leaf{}, nil
}

func TestLimits(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 50) + `"`
	for _, test := range []struct {
		name     string
		limits   leave.Limits
		requests []string
		refused  string // the last one, "" if none is
	}{
		{"parts", leave.Limits{MaxParts: 2, MaxBytes: 100}, []string{"o /a 1", "o /b 1", "o /a 2"}, ""},
		{"a part too many", leave.Limits{MaxParts: 2, MaxBytes: 100}, []string{"o /a 1", "o /b 1"}, "o /c 1"},
		{"paths of one om", leave.Limits{MaxParts: 2, MaxBytes: 100}, []string{"o /a 1"}, `om / {"b":1,"c":2}`},
		{"more paths than can be", leave.Limits{MaxParts: 2, MaxBytes: 100}, []string{"o /a {\"b\":1}"}, `om /a {"b":1,"c":2,"d":3}`},
		{"split", leave.Limits{MaxParts: 2, MaxBytes: 100}, []string{`o /a {"b":1,"c":2,"d":3,"e":4}`}, "oc /a/e"},
		{"bytes", leave.Limits{MaxParts: 9, MaxBytes: 120}, []string{"o /a " + long, "o /a " + long, "o /b 1"}, "o /c " + long},
		{"bytes of one", leave.Limits{MaxParts: 9, MaxBytes: 50}, nil, "o /c " + long},
		{"bytes of a change", leave.Limits{MaxParts: 9, MaxBytes: 100}, []string{`o /c {"a":` + long + `}`}, "o /c/b " + long},
		{"no bytes for another", leave.Limits{MaxParts: 9, MaxBytes: 65}, []string{"o /a " + long}, "o /b 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := leave.New(test.limits)
			for _, request := range test.requests {
				var err error
				if l, err = apply(t, l, request); err != nil {
					t.Fatalf("%s: %v", request, err)
				}
			}
			before := show(t, l)
			if test.refused == "" {
				return
			}
			if _, err := apply(t, l, test.refused); fault.KindOf(err) != fault.TooLarge {
				t.Errorf("%s = %v, want too large", test.refused, err)
			}
			if after := show(t, l); after != before {
				t.Errorf("the refused request has changed the list to\n%s", after)
			}
		})
	}
}

// TestBytesAreThoseOfRows: of a large request of which a small part remains, only that is kept.
func TestBytesAreThoseOfRows(t *testing.T) {
	t.Parallel()
	l := leave.New(leave.DefaultLimits())
	var err error
	for _, request := range []string{`om / {"a":1,"b":"` + strings.Repeat("x", 10_000) + `"}`, "oc /b", "o /c 1"} {
		if l, err = apply(t, l, request); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, r := range l.Rows() {
		total += len(r.Encoded)
	}
	if l.Bytes() != total || total > 40 {
		t.Errorf("Bytes() = %d, the rows have %d, want less than 40", l.Bytes(), total)
	}
	if l = l.Done(1); l.Has(1) || !l.Has(2) || l.Bytes() >= total {
		t.Errorf("after Done(1) there is left\n%s", show(t, l))
	}
	if again := l.Done(1); again != l {
		t.Error("Done of a row that is not there makes another list")
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	from := leave.New(leave.DefaultLimits())
	var err error
	for _, request := range []string{"o /a 1", "o /b 1", `o /c {"d":1}`, "o /e 1"} {
		if from, err = apply(t, from, request); err != nil {
			t.Fatal(err)
		}
	}
	to := from
	for _, request := range []string{"oc /a", "o /c/d 2", "o /b 1"} {
		if to, err = apply(t, to, request); err != nil {
			t.Fatal(err)
		}
	}
	stored, deleted := leave.Changes(from, to)
	var numbers []uint64
	for _, r := range stored {
		numbers = append(numbers, r.Number)
	}
	if !slices.Equal(numbers, []uint64{3, 5}) || !slices.Equal(deleted, []uint64{1, 2}) {
		t.Errorf("Changes stores %d and deletes %d, want [3 5] and [1 2]", numbers, deleted)
	}
}
