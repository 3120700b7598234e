package tree_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/tree"
)

// assignments prints a patch as "path = node" lines.
func assignments(w tree.Write) string {
	var lines []string
	for _, a := range w.Assignments {
		target := a.Path.String()
		if a.Priority {
			target = strings.TrimSuffix(target, "/") + "/.priority"
		}
		lines = append(lines, fmt.Sprintf("%s = %s", target, export(a.Node)))
	}
	return strings.Join(lines, "; ")
}

func TestDecodePatch(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("k/", 30)
	for _, test := range []struct {
		name, at, body, want string
		err                  error
	}{
		{"children", "/p", `{"a":1,"b":{"c":2}}`, "/p/a = 1; /p/b = {\"c\":2}", nil},
		{"paths", "/p", `{"a/b":1,"a/c/d":2}`, "/p/a/b = 1; /p/a/c/d = 2", nil},
		{"slashes are trimmed and collapsed", "/", `{"/a//b/":1}`, "/a/b = 1", nil},
		{"null deletes a child", "/p", `{"a":null,"b":{}}`, "/p/a = null; /p/b = null", nil},
		{"order as sent", "/", `{"z":1,"a":2,"10":3,"9":4}`, "/z = 1; /a = 2; /10 = 3; /9 = 4", nil},
		{"arrays as values", "/", `{"a":[1,2]}`, `/a = {"0":1,"1":2}`, nil},
		{"{} changes nothing", "/p", `{}`, "", nil},
		{"null deletes the location", "/p", ` null `, "/p = null", nil},
		{"priority of the location", "/p", `{".priority":5}`, "/p/.priority = 5", nil},
		{"priority with a slash", "/p", `{"/.priority/":5}`, "/p/.priority = 5", nil},
		{"priority at the root", "/", `{".priority":"x"}`, "/.priority = \"x\"", nil},
		{"priority as last segment", "/p", `{"a/b/.priority":null}`, "/p/a/b/.priority = null", nil},
		{"priority of the parent of another key", "/", `{"a/.priority":1,"a/b":2}`, "/a/.priority = 1; /a/b = 2", nil},
		{"priority in the body of a key", "/", `{"a":{".priority":1,"b":2}}`, `/a = {".priority":1,"b":2}`, nil},
		{"neighbours do not overlap", "/", `{"a":1,"ab":2,"a b":3,"b/a":4,"b/ab":5}`,
			"/a = 1; /ab = 2; /a b = 3; /b/a = 4; /b/ab = 5", nil},
		{"spellings of an integer do not overlap", "/", `{"1":1,"01":2,"1a/b":3}`, "/1 = 1; /01 = 2; /1a/b = 3", nil},

		{"nothing", "/", ``, "", tree.ErrNoData},
		{"an array", "/", `[1]`, "", tree.ErrValue},
		{"an empty array", "/", `[]`, "", tree.ErrValue},
		{"a scalar", "/", `5`, "", tree.ErrValue},
		{"a string", "/", `"a"`, "", tree.ErrValue},
		{"nul", "/", `nul`, "", tree.ErrSyntax},
		{"null and more", "/", `null 1`, "", tree.ErrSyntax},
		{"an object and more", "/", `{} {}`, "", tree.ErrSyntax},
		{"a comma too many", "/", `{"a":1,}`, "", tree.ErrSyntax},
		{"unfinished", "/", `{"a":1`, "", tree.ErrSyntax},
		{"a repeated key", "/", `{"a":1,"a":2}`, "", tree.ErrValue},
		{"a repeated path in two spellings", "/", `{"a/b":1,"/a//b":2}`, "", tree.ErrValue},
		{"a path below another", "/", `{"a/b/c":1,"x":0,"a/b":2}`, "", tree.ErrValue},
		{"a path below a deleted one", "/", `{"a":null,"a/b":2}`, "", tree.ErrValue},
		{"a node and its priority", "/", `{"a/.priority":1,"a":2}`, "", tree.ErrValue},
		{"a node and a priority below it", "/", `{"a/b/.priority":1,"a":2}`, "", tree.ErrValue},
		{"a priority twice", "/", `{"a/.priority":1,"/a/.priority":2}`, "", tree.ErrValue},
		{"an empty key", "/", `{"":1}`, "", tree.ErrInvalidKey},
		{"only slashes", "/", `{"//":1}`, "", tree.ErrInvalidKey},
		{"an invalid key", "/", `{"a/b.c":1}`, "", tree.ErrInvalidKey},
		{"priority in the middle", "/", `{"a/.priority/b":1}`, "", tree.ErrInvalidKey},
		{"priority with a prefix", "/", `{"a.priority":1}`, "", tree.ErrInvalidKey},
		{".value as key", "/", `{".value":1}`, "", tree.ErrInvalidKey},
		{".sv as key", "/", `{".sv":"timestamp"}`, "", tree.ErrInvalidKey},
		{"a boolean priority", "/", `{"a/.priority":true}`, "", tree.ErrValue},
		{"an object as priority", "/", `{"a/.priority":{"x":1}}`, "", tree.ErrValue},
		{"a path of 32", "/p", `{"` + deep + `k":1}`, "/p/" + deep + "k = 1", nil},
		{"a path of 33", "/p", `{"` + deep + `k/k":1}`, "", tree.ErrTooDeep},
		{"a path of 33 alone", "/", `{"` + deep + `k/k/k":1}`, "", tree.ErrTooDeep},
		{"a body below a path of 32", "/p", `{"` + deep + `k":{"a":1}}`, "", tree.ErrTooDeep},
		{"the priority of a path of 32", "/p", `{"` + deep + `k/.priority":1}`, "/p/" + deep + "k/.priority = 1", nil},
	} {
		t.Run("PATCH/"+test.name, func(t *testing.T) {
			t.Parallel()
			w, err := tree.DecodePatch(strings.NewReader(test.body), path(t, test.at), tree.DecodeOptions{})
			if !errors.Is(err, test.err) || (err != nil && test.err == nil) {
				t.Fatalf("the patch %s fails with %v, want %v", test.body, err, test.err)
			}
			if err == nil && assignments(w) != test.want {
				t.Errorf("the patch %s is %s, want %s", test.body, assignments(w), test.want)
			}
			if err == nil && w.At != path(t, test.at) {
				t.Errorf("the patch is at %s, want %s", w.At, test.at)
			}
		})
	}
}

func TestDecodePatchRemembersNames(t *testing.T) {
	t.Parallel()
	w, err := tree.DecodePatch(strings.NewReader(`{"/a//b/":1,"c/.priority":2}`), path(t, "/p"), tree.DecodeOptions{})
	if err != nil || !w.Patch || len(w.Assignments) != 2 {
		t.Fatalf("DecodePatch = %+v, %v; want two assignments of a patch", w, err)
	}
	for i, want := range []string{"/a//b/", "c/.priority"} {
		if got := w.Assignments[i].Name; got != want {
			t.Errorf("the key was %q, want it as sent, %q", got, want)
		}
	}
	w, err = tree.DecodePatch(strings.NewReader(`null`), path(t, "/p"), tree.DecodeOptions{})
	if err != nil || w.Patch || !w.OnlyDeletes() {
		t.Errorf("the patch null is %+v, %v; want a deletion", w, err)
	}
}

func TestBytesCountsWhatAPatchSharesOnce(t *testing.T) {
	t.Parallel()
	w, err := tree.DecodePatch(strings.NewReader(`{"a":"`+strings.Repeat("x", 1000)+`","b":2,"c":null,"d":3,"e":null,"f":4}`), tree.Path{}, tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Bytes(); got < 1000 || got > 1200 {
		t.Errorf("a patch of some 1000 bytes has %d", got)
	}
}

func TestOnlyDeletes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{}`: true, `{"a":null,"b/.priority":null}`: true, `{"a":null,"b":1}`: false, `{"a/.priority":1}`: false,
	} {
		w, err := tree.DecodePatch(strings.NewReader(body), tree.Path{}, tree.DecodeOptions{})
		if err != nil || w.OnlyDeletes() != want {
			t.Errorf("the patch %s only deletes: %v, %v; want %v", body, w.OnlyDeletes(), err, want)
		}
	}
}

func TestDecodePriority(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{"5": "5", " null ": "null", `"x"`: `"x"`, "1.0": "1", "-0.5": "-0.5"} {
		if got := outcome(tree.DecodePriority(strings.NewReader(body), tree.DecodeOptions{})); got != want {
			t.Errorf("the priority %s is %s, want %s", body, got, want)
		}
	}
	for _, body := range []string{"", "true", "{}", "[]", `{"a":1}`, `{".value":1}`, "1 2", "1e999", `"\ud800"`, "nul", `{".sv":"now"}`} {
		if n, err := tree.DecodePriority(strings.NewReader(body), tree.DecodeOptions{}); err == nil {
			t.Errorf("the priority %s is %s, want it refused", body, export(n))
		}
	}
	n, err := tree.DecodePriority(strings.NewReader(`{".sv":"timestamp"}`), tree.DecodeOptions{})
	if err != nil || !n.HasPlaceholders() {
		t.Errorf("the priority timestamp is %v, %v; want a server value", n.Kind(), err)
	}
}

// checkPatch wants a patch to be accepted exactly when the model does, and its
// assignments not to overlap.
func checkPatch(t *testing.T, at tree.Path, body string) {
	t.Helper()
	w, err := tree.DecodePatch(strings.NewReader(body), at, tree.DecodeOptions{})
	wantErr := model.New().Patch(keysOf(at), []byte(body), 0)
	if (err == nil) != (wantErr == nil) && !strings.Contains(fmt.Sprint(err), "longer than") {
		t.Fatalf("the patch %q at %s: %v, but the model says %v", body, at, err, wantErr)
	}
	if err != nil {
		return
	}
	for i, a := range w.Assignments {
		if !at.Contains(a.Path) || a.Path.Depth() > tree.MaxDepth {
			t.Errorf("the patch %q at %s assigns %s", body, at, a.Path)
		}
		for _, b := range w.Assignments[i+1:] {
			below := a.Path.Contains(b.Path) && !a.Priority || b.Path.Contains(a.Path) && !b.Priority
			if below || a.Path == b.Path && a.Priority == b.Priority {
				t.Errorf("the patch %q assigns both %q and %q", body, a.Name, b.Name)
			}
		}
	}
}

func TestPatchAsTheModel(t *testing.T) {
	t.Parallel()
	g := generator{random(t)}
	for range 5000 {
		at, err := tree.ParsePath(strings.Join(g.path(), "/"))
		if err != nil {
			continue
		}
		body := g.patch()
		checkPatch(t, at, body)
		checkPatch(t, at, g.damage(body))
	}
}

func FuzzPatch(f *testing.F) {
	for _, body := range []string{
		`{}`, `null`, `[]`, `1`, ``, `{"a":1,"a/b":2}`, `{"a/.priority":1,"a":2}`, `{"a/.priority":1,"a/b":2}`, `{"/a//b/":null}`,
		`{".priority":1}`, `{"a":{".sv":{"increment":1}}}`, `{"a.b":1}`, `{"":1}`, `{"a/1":1,"a/01":2,"a/1/x":3}`, `{"a":1} x`,
	} {
		f.Add("/p/q", body)
	}
	f.Fuzz(func(t *testing.T, at, body string) {
		if p, err := tree.ParsePath(at); err == nil {
			checkPatch(t, p, body)
		}
	})
}
