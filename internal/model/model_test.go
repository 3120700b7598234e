package model_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/model"
)

// nowMillis is the time of every request in these tests.
const nowMillis = 1700000000123

// path splits "/a/b" into its keys.
func path(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '/' })
}

// request sends one line such as `PUT /a {"b":1}` or `PUT /a/.priority 5`.
func request(tree *model.Tree, line string) error {
	method, rest, _ := strings.Cut(line, " ")
	target, body, _ := strings.Cut(rest, " ")
	node, toPriority := strings.CutSuffix(target, "/.priority")
	switch {
	case method == "PUT" && toPriority:
		return tree.PutPriority(path(node), []byte(body), nowMillis)
	case method == "PUT":
		return tree.Put(path(target), []byte(body), nowMillis)
	case method == "PATCH":
		return tree.Patch(path(target), []byte(body), nowMillis)
	case method == "DELETE":
		tree.Delete(path(target))
		return nil
	}
	panic("unknown request " + line)
}

// run sends requests, one per line, to a new tree. A line that begins with "! "
// must be refused and change nothing; all others must be accepted.
func run(t *testing.T, script string) *model.Tree {
	t.Helper()
	tree := model.New()
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		line, refused := strings.CutPrefix(line, "! ")
		if line == "" {
			continue
		}
		before := tree.Export(nil)
		err := request(tree, line)
		if refused != (err != nil) {
			t.Errorf("%s: error = %v, want refused = %v", line, err, refused)
		}
		if after := tree.Export(nil); refused && after != before {
			t.Errorf("%s: refused, but changed %s to %s", line, before, after)
		}
	}
	return tree
}

// A scenario is a script of requests and the whole tree afterwards, exported.
type scenario struct{ script, want string }

func runScenarios(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, s := range scenarios {
		if got := run(t, s.script).Export(nil); got != s.want {
			t.Errorf("after\n%s\ntree = %s\nwant   %s", s.script, got, s.want)
		}
	}
}

func TestNoData(t *testing.T) {
	runScenarios(t, []scenario{
		{`PUT / null`, `null`},
		{`PUT / {}`, `null`},
		{`PUT / []`, `null`},
		{`PUT / {"a":{"b":[null,{},[]]},"c":null}`, `null`},
		{`PUT / {"a":{"b":[null,{},[]]},"c":1}`, `{"c":1}`},
		{`PUT / false`, `false`},
		{`PUT / 0`, `0`},
		{`PUT / ""`, `""`},
		{"PUT /a/b/c 1\nPUT /a/b/c null", `null`},
		{"PUT /a/b/c 1\nPUT /a/b/c {}", `null`},
		{"PUT /a/b/c 1\nDELETE /a/b/c", `null`},
		{"PUT /a/b/c 1\nPUT /a/x 2\nDELETE /a/b/c", `{"a":{"x":2}}`},
		{"PUT /a/b/c 1\nDELETE /a/b/d\nDELETE /x/y", `{"a":{"b":{"c":1}}}`},
		{"PUT /a/b/c 1\nDELETE /", `null`},
		{`DELETE /`, `null`},
	})
	tree := run(t, `PUT /a 1`)
	for name, got := range map[string]string{
		"Plain(/b)":    tree.Plain(path("/b")),
		"Plain(/a/b)":  tree.Plain(path("/a/b")),
		"Export(/b)":   tree.Export(path("/b")),
		"Shallow(/b)":  tree.Shallow(path("/b")),
		"Priority(/b)": tree.Priority(path("/b")),
		"Priority(/a)": tree.Priority(path("/a")),
	} {
		if got != "null" {
			t.Errorf("%s = %s, want null", name, got)
		}
	}
}

func TestWriteArray(t *testing.T) {
	runScenarios(t, []scenario{
		{`PUT / ["a","b"]`, `{"0":"a","1":"b"}`},
		{`PUT / ["a",null,"c"]`, `{"0":"a","2":"c"}`},
		{`PUT / [null,{},[],"d"]`, `{"3":"d"}`},
		{`PUT / [[1,[2]],{"x":[3]}]`, `{"0":{"0":1,"1":{"0":2}},"1":{"x":{"0":3}}}`},
		{`PUT / [0,0,0,0,0,0,0,0,0,0,1]`, `{"0":0,"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"10":1}`},
		{`PUT / [{".value":1,".priority":2}]`, `{"0":{".value":1,".priority":2}}`},
		{"PUT / [1,2,3]\nDELETE /1", `{"0":1,"2":3}`},
	})
}

func TestReplace(t *testing.T) {
	runScenarios(t, []scenario{
		{"PUT /a {\"x\":1,\"y\":2}\nPUT /a {\"x\":3}", `{"a":{"x":3}}`},
		{"PUT /a {\"x\":1,\"y\":2}\nPUT /a/x 3", `{"a":{"x":3,"y":2}}`},
		{"PUT /a/x 1\nPUT /a/y 2", `{"a":{"x":1,"y":2}}`},
		{"PUT /a {\"x\":1}\nPUT /a 5", `{"a":5}`},
	})
}

func TestWriteOverLeaf(t *testing.T) {
	const leaf = "PUT /a {\".value\":1,\".priority\":7}\n"
	const parent = "PUT /a {\"b\":1,\".priority\":7}\n"
	runScenarios(t, []scenario{
		// Below a leaf: the value goes, the priority stays.
		{leaf + `PUT /a/b 2`, `{"a":{".priority":7,"b":2}}`},
		{leaf + `PUT /a/b/c 2`, `{"a":{".priority":7,"b":{"c":2}}}`},
		{leaf + `PATCH /a {"b":2}`, `{"a":{".priority":7,"b":2}}`},
		{leaf + `PATCH / {"a/b":2}`, `{"a":{".priority":7,"b":2}}`},
		{"PUT / 1\nPUT /.priority 3\nPUT /a/b 2", `{".priority":3,"a":{"b":2}}`},
		// Nothing written below a leaf leaves it alone.
		{leaf + `PUT /a/b null`, `{"a":{".value":1,".priority":7}}`},
		{leaf + `PUT /a/b {"c":null}`, `{"a":{".value":1,".priority":7}}`},
		{leaf + `PUT /a/b {".priority":1}`, `{"a":{".value":1,".priority":7}}`},
		{leaf + `DELETE /a/b/c`, `{"a":{".value":1,".priority":7}}`},
		{leaf + `PATCH /a {"b":null}`, `{"a":{".value":1,".priority":7}}`},
		{leaf + `PATCH /a {"b":null,"c":2}`, `{"a":{".priority":7,"c":2}}`},
		// PUT drops the old priority, PATCH and a PUT below keep it.
		{leaf + `PUT /a 2`, `{"a":2}`},
		{leaf + `PUT /a {"b":2}`, `{"a":{"b":2}}`},
		{leaf + `PUT /a {".value":2}`, `{"a":2}`},
		{leaf + `PUT /a {".value":2,".priority":8}`, `{"a":{".value":2,".priority":8}}`},
		{parent + `PUT /a 2`, `{"a":2}`},
		{parent + `PUT /a/b 2`, `{"a":{".priority":7,"b":2}}`},
		{parent + `PATCH /a {"b":2,"c":3}`, `{"a":{".priority":7,"b":2,"c":3}}`},
		{parent + `PATCH / {"a":{"b":2}}`, `{"a":{"b":2}}`},
		// Data gone, priority gone; it does not come back.
		{parent + "DELETE /a/b\nPUT /a/b 2", `{"a":{"b":2}}`},
		{parent + "PATCH /a {\"b\":null}\nPUT /a/b 2", `{"a":{"b":2}}`},
		// One PATCH is one step: the node never was empty.
		{parent + `PATCH /a {"b":null,"c":3}`, `{"a":{".priority":7,"c":3}}`},
		{parent + `PATCH / {"a/b":null,"a/c/d":3}`, `{"a":{".priority":7,"c":{"d":3}}}`},
	})
}

func TestPatch(t *testing.T) {
	const abc = "PUT / {\"a\":{\"x\":1,\"y\":2},\"b\":3}\n"
	const all = `{"a":{"x":1,"y":2},"b":3}`
	runScenarios(t, []scenario{
		{abc + `PATCH / {}`, all},
		{abc + `PATCH /z {}`, all},
		{abc + `PATCH / null`, `null`},
		{abc + `PATCH /a null`, `{"b":3}`},
		{abc + `PATCH / {"a":{"x":9}}`, `{"a":{"x":9},"b":3}`},
		{abc + `PATCH / {"a/x":9}`, `{"a":{"x":9,"y":2},"b":3}`},
		{abc + `PATCH / {"a/x":9,"a/z/z":8,"b":null}`, `{"a":{"x":9,"y":2,"z":{"z":8}}}`},
		{abc + `PATCH / {"a/x":null,"a/y":[]}`, `{"b":3}`},
		{abc + `PATCH / {"/a//x/":9}`, `{"a":{"x":9,"y":2},"b":3}`},
		{abc + `PATCH /new/deep {"k":[1]}`, `{"a":{"x":1,"y":2},"b":3,"new":{"deep":{"k":{"0":1}}}}`},
		{abc + `PATCH / {"b":{".value":1,".priority":2}}`, `{"a":{"x":1,"y":2},"b":{".value":1,".priority":2}}`},
		// Refused bodies.
		{abc + `! PATCH / []`, all},
		{abc + `! PATCH / [1]`, all},
		{abc + `! PATCH / 1`, all},
		{abc + `! PATCH / "a"`, all},
		{abc + `! PATCH / `, all},
		{abc + `! PATCH / {"":1}`, all},
		{abc + `! PATCH / {"//":1}`, all},
		{abc + `! PATCH / {"a":1,"b.c":2}`, all},
		{abc + `! PATCH / {"a":1,"b/$c":2}`, all},
		{abc + `! PATCH / {"a":1,"b":{"c/d":2}}`, all},
		{abc + `! PATCH / {".value":1}`, all},
		{abc + `! PATCH / {".sv":"timestamp"}`, all},
		{abc + `! PATCH / {"a/.value":1}`, all},
		{abc + `! PATCH /. {"a":1}`, all},
		// Overlapping paths.
		{abc + `! PATCH / {"a":1,"a/x":2}`, all},
		{abc + `! PATCH / {"a":null,"a/x/y":null}`, all},
		{abc + `! PATCH / {"a":1,"/a":2}`, all},
		{abc + `! PATCH / {"a/x":1,"a//x/":2}`, all},
		{abc + `! PATCH / {"a":1,"a/.priority":2}`, all},
		{abc + `! PATCH / {".priority":1,"/.priority":2}`, all},
		{abc + `PATCH / {"a":1,"ab/c":2}`, `{"a":1,"ab":{"c":2},"b":3}`},
	})
}

func TestPriority(t *testing.T) {
	runScenarios(t, []scenario{
		{"PUT /a 1\nPUT /a/.priority 5", `{"a":{".value":1,".priority":5}}`},
		{"PUT /a 1\nPUT /a/.priority 1.50", `{"a":{".value":1,".priority":1.5}}`},
		{"PUT /a 1\nPUT /a/.priority 2.0", `{"a":{".value":1,".priority":2}}`},
		{"PUT /a 1\nPUT /a/.priority \"5\"", `{"a":{".value":1,".priority":"5"}}`},
		{"PUT /a 1\nPUT /a/.priority \"\"", `{"a":{".value":1,".priority":""}}`},
		{"PUT /a {\"b\":1}\nPUT /a/.priority 5", `{"a":{".priority":5,"b":1}}`},
		{"PUT /a 1\nPUT /a/.priority 5\nPUT /a/.priority null", `{"a":1}`},
		{"PUT /a 1\nPUT /a/.priority {\".sv\":\"timestamp\"}", `{"a":{".value":1,".priority":1700000000123}}`},
		{"PUT /b 1\nPUT /b/.priority 0", `{"b":{".value":1,".priority":0}}`},
		// No data, no priority.
		{`PUT /a/.priority 5`, `null`},
		{"PUT /a/.priority 5\nPUT /a 1", `{"a":1}`},
		{"PUT /a 1\nPUT /a/b/.priority 5", `{"a":1}`},
		{`PUT /a {".priority":5}`, `null`},
		{`PUT /a {".priority":5,"b":{}}`, `null`},
		{"PUT /a 1\nPUT /a {\".priority\":5}", `null`},
		{"PUT /a {\"b\":{\"c\":1,\".priority\":2},\".priority\":3}\nDELETE /a/b/c", `null`},
		// With data, at any depth.
		{`PUT / {".priority":1,"a":{".priority":"p","b":{".priority":2,"c":{".value":"v",".priority":3}}}}`,
			`{".priority":1,"a":{".priority":"p","b":{".priority":2,"c":{".value":"v",".priority":3}}}}`},
		{`PUT / {".priority":null,"a":1}`, `{"a":1}`},
		// In a PATCH, as the last segment.
		{"PUT /a/b 1\nPATCH /a {\".priority\":5}", `{"a":{".priority":5,"b":1}}`},
		{"PUT /a/b 1\nPATCH / {\"a/b/.priority\":5}", `{"a":{"b":{".value":1,".priority":5}}}`},
		{`PATCH / {"a/b":1,"a/.priority":5}`, `{"a":{".priority":5,"b":1}}`},
		{`PATCH /a {"b":1,".priority":5}`, `{"a":{".priority":5,"b":1}}`},
		{"PUT /a/b 1\nPATCH /a {\"b\":null,\".priority\":5}", `null`},
		{"PUT /a {\"b\":1,\".priority\":4}\nPATCH /a {\"b\":2,\".priority\":null}", `{"a":{"b":2}}`},
		{`PATCH / {"a/.priority":5}`, `null`},
	})
}

func TestPriorityRefused(t *testing.T) {
	runScenarios(t, []scenario{
		{"PUT /a 1\n! PUT /a/.priority true", `{"a":1}`},
		{"PUT /a 1\n! PUT /a/.priority {}", `{"a":1}`},
		{"PUT /a 1\n! PUT /a/.priority []", `{"a":1}`},
		{"PUT /a 1\n! PUT /a/.priority {\".value\":1}", `{"a":1}`},
		{"PUT /a 1\n! PUT /a/.priority 1e999", `{"a":1}`},
		{"PUT /a 1\n! PUT /a/.priority", `{"a":1}`},
		{`! PUT /a/.priority true`, `null`},
		{`! PUT /.x/.priority 1`, `null`},
		{`! PUT / {".priority":false,"a":1}`, `null`},
		{`! PUT / {".priority":{"a":1},"a":1}`, `null`},
		{`! PUT / {".priority":[1],"a":1}`, `null`},
		{`! PATCH / {"a/.priority/b":1}`, `null`},
		{`! PATCH / {"a/.priority":true}`, `null`},
		{`! PUT /.priority/a 1`, `null`},
	})
}

func TestReadPriority(t *testing.T) {
	tree := run(t, `PUT / {"a":{".value":1,".priority":"p\n"},"b":{"c":2,".priority":-1.5}}`)
	for at, want := range map[string]string{"/": `null`, "/a": `"p\n"`, "/b": `-1.5`, "/b/c": `null`} {
		if got := tree.Priority(path(at)); got != want {
			t.Errorf("Priority(%s) = %s, want %s", at, got, want)
		}
	}
}

func TestClone(t *testing.T) {
	tree := run(t, `PUT / {"a":{"b":1,".priority":2},"c":3}`)
	const want = `{"a":{".priority":2,"b":1},"c":3}`
	clone := tree.Clone()
	for _, line := range []string{`PUT /a/b 9`, `PUT /a/.priority 9`, `DELETE /c`, `PUT /a/x 9`} {
		if err := request(clone, line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if got := tree.Export(nil); got != want {
		t.Errorf("writes to the clone changed the tree to %s, want %s", got, want)
	}
	if got, want := clone.Export(nil), `{"a":{".priority":9,"b":9,"x":9}}`; got != want {
		t.Errorf("clone = %s, want %s", got, want)
	}
	if got := model.New().Clone().Export(nil); got != "null" {
		t.Errorf("clone of an empty tree = %s, want null", got)
	}
}
