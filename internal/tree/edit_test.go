package tree_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/tree"
)

func TestEditorSet(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, before, path, node, after string }{
		{"Write over a leaf/the value goes, the priority stays", `{"a":{".value":1,".priority":"p"}}`, "/a/b", `2`,
			`{"a":{".priority":"p","b":2}}`},
		{"Write over a leaf/at the root", `{".value":1,".priority":"p"}`, "/a/b", `2`, `{".priority":"p","a":{"b":2}}`},
		{"Write over a leaf/without priority", `5`, "/a", `1`, `{"a":1}`},
		{"Write over a leaf/null below changes nothing", `{"a":{".value":1,".priority":"p"}}`, "/a/b/c", `null`,
			`{"a":{".value":1,".priority":"p"}}`},
		{"Write over a leaf/null below the root", `"leaf"`, "/a", `{}`, `"leaf"`},
		{"Write over a leaf/a PUT drops the old priority", `{"a":{".value":1,".priority":"p"}}`, "/a", `2`, `{"a":2}`},
		{"Write over a leaf/a PUT brings its own", `{"a":{".value":1,".priority":"p"}}`, "/a", `{".value":1,".priority":"q"}`,
			`{"a":{".value":1,".priority":"q"}}`},
		{"Write over a leaf/a child keeps its parent's", `{".priority":"p","a":1}`, "/b", `2`, `{".priority":"p","a":1,"b":2}`},
		{"No data/the last child takes its ancestors along", `{"a":{"b":{"c":1}},"d":2}`, "/a/b/c", `null`, `{"d":2}`},
		{"No data/and their priorities", `{"a":{".priority":1,"b":{".priority":2,"c":3}},"d":4}`, "/a/b/c", `null`, `{"d":4}`},
		{"No data/up to the root", `{".priority":1,"a":{"b":2}}`, "/a/b", `null`, `null`},
		{"No data/deleting the root", `{"a":1}`, "/", `null`, `null`},
		{"No data/deleting what is not there", `{"a":1}`, "/b/c", `null`, `{"a":1}`},
		{"No data/writing into nothing", `null`, "/a/b", `1`, `{"a":{"b":1}}`},
		{"Order of keys/a new first child", `{"b":1}`, "/a", `2`, `{"a":2,"b":1}`},
		{"Order of keys/a new index", `{"9":1,"a":2}`, "/10", `3`, `{"9":1,"10":3,"a":2}`},
		{"Order of keys/a new string", `{"10":3,"9":1}`, "/-", `2`, `{"9":1,"10":3,"-":2}`},
		{"Arrays, writing/into an array", `[1,2]`, "/1", `"x"`, `{"0":1,"1":"x"}`},
		{"replace a leaf", `{"a":1,"b":"x","c":true}`, "/b", `"longer text"`, `{"a":1,"b":"longer text","c":true}`},
		{"replace an object", `{"a":{"b":{".value":1,".priority":2}}}`, "/a", `{".priority":3,"c":"x"}`, `{"a":{".priority":3,"c":"x"}}`},
		{"replace the root", `{"a":1}`, "/", `{"b":{".value":1,".priority":2}}`, `{"b":{".value":1,".priority":2}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n := decode(t, test.before)
			e := tree.NewEditor(n)
			e.Set(path(t, test.path), decode(t, test.node))
			if got := export(e.Node()); got != test.after {
				t.Errorf("%s with %s at %s is %s, want %s", test.before, test.node, test.path, got, test.after)
			}
			if got := export(n); got != export(decode(t, test.before)) {
				t.Errorf("the editor changed the node it started with from %s to %s", test.before, got)
			}
		})
	}
}

func TestEditorSetPriority(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, before, path, priority, after string }{
		{"of a leaf", `{"a":1}`, "/a", `5`, `{"a":{".value":1,".priority":5}}`},
		{"of a string leaf", `{"a":"text"}`, "/a", `"p"`, `{"a":{".value":"text",".priority":"p"}}`},
		{"of an object", `{"a":{"b":1}}`, "/a", `"p"`, `{"a":{".priority":"p","b":1}}`},
		{"of the root", `{"a":1}`, "/", `0.5`, `{".priority":0.5,"a":1}`},
		{"another of a leaf", `{"a":{".value":1,".priority":5}}`, "/a", `6`, `{"a":{".value":1,".priority":6}}`},
		{"another of an object", `{".priority":5,"a":1,"b":2}`, "/", `"q"`, `{".priority":"q","a":1,"b":2}`},
		{"taken off a leaf", `{"a":{".value":1,".priority":5},"b":2}`, "/a", `null`, `{"a":1,"b":2}`},
		{"taken off an object", `{".priority":5,"a":1,"b":2}`, "/", `null`, `{"a":1,"b":2}`},
		{"none off a leaf", `{"a":1}`, "/a", `null`, `{"a":1}`},
		{"of nothing", `{"a":1}`, "/b/c", `5`, `{"a":1}`},
		{"of nothing below a leaf", `{"a":1}`, "/a/b", `5`, `{"a":1}`},
		{"of an empty tree", `null`, "/", `5`, `null`},
	} {
		t.Run("Priority/"+test.name, func(t *testing.T) {
			t.Parallel()
			e := tree.NewEditor(decode(t, test.before))
			e.SetPriority(path(t, test.path), decode(t, test.priority).Leaf())
			if got := export(e.Node()); got != test.after {
				t.Errorf("%s with the priority %s at %s is %s, want %s", test.before, test.priority, test.path, got, test.after)
			}
		})
	}
}

func TestEditorTakesANodeOfItsOwn(t *testing.T) {
	t.Parallel()
	e := tree.NewEditor(decode(t, `{"a":{"b":{".value":"x",".priority":1}}}`))
	e.Set(path(t, "/c"), e.Node().Child("a"))
	e.Set(path(t, "/a"), e.Node().At(path(t, "/c/b")))
	e.Set(path(t, "/c/d"), e.Node())
	want := `{"a":{".value":"x",".priority":1},"c":{"b":{".value":"x",".priority":1},` +
		`"d":{"a":{".value":"x",".priority":1},"c":{"b":{".value":"x",".priority":1}}}}}`
	if got := export(e.Node()); got != want {
		t.Errorf("the copied node is %s, want %s", got, want)
	}
}

// A request is one step of a history: a method, a path and a body.
type request struct {
	method string // put, priority, patch or delete
	keys   []string
	body   string
}

func (r request) String() string {
	return fmt.Sprintf("%s %q %s", r.method, strings.Join(r.keys, "/"), r.body)
}

// request makes one up.
func (g generator) request() request {
	r := request{keys: g.path()}
	switch n := g.IntN(10); {
	case n < 4:
		r.method, r.body = "put", g.body()
	case n < 6:
		r.method, r.body = "priority", pick(g.Rand, g.leaf(), g.leaf(), g.serverValue(), g.body())
	case n < 8:
		r.method, r.body = "patch", g.patch()
	default:
		r.method = "delete"
	}
	if r.body != "" && g.IntN(20) == 0 {
		r.body = g.damage(r.body)
	}
	return r
}

// A database is the tree under test, as an editor.
type database struct{ *tree.Editor }

// write carries out a request, which may be refused.
func (d database) write(r request) error {
	p, err := tree.ParsePath(strings.Join(r.keys, "/"))
	if err != nil {
		return err
	}
	w, err := decodeWrite(p, r)
	if err != nil {
		return err
	}
	if w, err = tree.Resolve(w, nowMillis, looker{d.Node()}); err != nil {
		return err
	}
	d.apply(w)
	return nil
}

func decodeWrite(p tree.Path, r request) (tree.Write, error) {
	body := strings.NewReader(r.body)
	switch r.method {
	case "put":
		n, err := tree.Decode(body, tree.DecodeOptions{Depth: p.Depth()})
		return tree.Put(p, n), err
	case "priority":
		n, err := tree.DecodePriority(body, tree.DecodeOptions{})
		return tree.PutPriority(p, n), err
	case "patch":
		return tree.DecodePatch(body, p, tree.DecodeOptions{})
	}
	return tree.Put(p, tree.Node{}), nil
}

// apply makes assignments that take effect together into edits, one after the
// other: data first, so that no parent is empty meanwhile, then deletions, then
// priorities, which need data to stand on.
func (d database) apply(w tree.Write) {
	for _, a := range w.Assignments {
		if !a.Priority && !a.Node.IsNull() {
			d.Set(a.Path, a.Node)
		}
	}
	for _, a := range w.Assignments {
		if !a.Priority && a.Node.IsNull() {
			d.Set(a.Path, a.Node)
		}
	}
	for _, a := range w.Assignments {
		if a.Priority {
			d.SetPriority(a.Path, a.Node.Leaf())
		}
	}
}

func writeModel(m *model.Tree, r request) error {
	switch r.method {
	case "put":
		return m.Put(r.keys, []byte(r.body), nowMillis)
	case "priority":
		return m.PutPriority(r.keys, []byte(r.body), nowMillis)
	case "patch":
		return m.Patch(r.keys, []byte(r.body), nowMillis)
	}
	if err := model.CheckPath(r.keys); err != nil {
		return err
	}
	m.Delete(r.keys)
	return nil
}

// run carries out a history in both, and says where they part, or "".
func run(history []request) string {
	d, m := database{tree.NewEditor(tree.Node{})}, model.New()
	var before tree.Node
	beforeText := "null"
	for i, r := range history {
		err, wantErr := d.write(r), writeModel(m, r)
		if (err == nil) != (wantErr == nil) {
			return fmt.Sprintf("request %d: %s\n%v, but the model says %v", i, r, err, wantErr)
		}
		n := d.Node()
		if got, want := export(n), m.Export(nil); got != want {
			return fmt.Sprintf("request %d: %s\nleaves  %s\nmodel:  %s", i, r, got, want)
		}
		if got, want := plain(n), m.Plain(nil); got != want {
			return fmt.Sprintf("request %d: %s\nreads   %s\nmodel:  %s", i, r, got, want)
		}
		if got := export(before); got != beforeText {
			return fmt.Sprintf("request %d: %s\nchanged the node before it from %s\nto %s", i, r, beforeText, got)
		}
		before, beforeText = n, export(n)
	}
	return ""
}

// shortest drops requests from a history that fails, as long as it fails.
func shortest(history []request) []request {
	for i := 0; i < len(history); {
		without := append(history[:i:i], history[i+1:]...)
		if run(without) == "" {
			i++
		} else {
			history, i = without, 0
		}
	}
	return history
}

func TestHistoriesAsTheModel(t *testing.T) {
	t.Parallel()
	g := generator{random(t)}
	for range 400 {
		history := make([]request, 40)
		for i := range history {
			history[i] = g.request()
		}
		if run(history) == "" {
			continue
		}
		history = shortest(history)
		lines := make([]string, len(history))
		for i, r := range history {
			lines[i] = r.String()
		}
		t.Fatalf("the history\n%s\nends in %s", strings.Join(lines, "\n"), run(history))
	}
}

// TestEditorKeepsUnresolvedTimes: nodes with timestamps that are not resolved can be
// edited as others can.
func TestEditorKeepsUnresolvedTimes(t *testing.T) {
	t.Parallel()
	n := decode(t, `{"a":{".value":{".sv":"timestamp"},".priority":{".sv":"timestamp"}}}`)
	editor := tree.NewEditor(tree.Node{})
	editor.Set(path(t, "/b"), n)
	editor.Set(path(t, "/c"), tree.LeafNode(n.Child("a").Leaf()))
	editor.SetPriority(path(t, "/c"), n.Child("a").Priority())
	got := editor.Node()
	for _, at := range []string{"/b/a", "/c"} {
		if kind, want := got.At(path(t, at)).Kind(), n.Child("a").Kind(); kind != want || !got.At(path(t, at)).IsPriorityTime() {
			t.Errorf("at %s is a %v, want a %v with such a priority", at, kind, want)
		}
	}
}

// TestApplyIsOneStep: in whatever order the assignments of a write come, a node that
// loses all its children and gets others keeps its priority, and what gets a priority is
// there before.
func TestApplyIsOneStep(t *testing.T) {
	before := decode(t, `{"a":{".priority":5,"x":1},"b":1}`)
	assignments := []tree.Assignment{
		{Path: path(t, "/top/b/c"), Node: decode(t, "2"), Priority: true},
		{Path: path(t, "/top/a/x")},
		{Path: path(t, "/top/a/y"), Node: decode(t, "1")},
		{Path: path(t, "/top/b/c"), Node: decode(t, "3")},
	}
	for range len(assignments) {
		e := tree.NewEditor(before)
		var leaves []int
		e.ApplyEach(path(t, "/top"), slices.Values(assignments), func(tree.Assignment) { leaves = append(leaves, e.Leaf()) })
		var text strings.Builder
		if err := tree.PrintJSON(&text, e.Node(), tree.Export); err != nil {
			t.Fatal(err)
		}
		if got, want := text.String(), `{"a":{".priority":5,"y":1},"b":{"c":{".value":3,".priority":2}}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if slices.Sort(leaves); !slices.Equal(leaves, []int{0, 0, 0, 1}) {
			t.Errorf("leaves that became objects: %v, want one, right above", leaves)
		}
		assignments = append(assignments[1:], assignments[0])
	}
}
