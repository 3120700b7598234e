package watch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// TestEvents: what a watch of /a is told of one request. The tree is the same
// before each of them.
func TestEvents(t *testing.T) {
	const before = `{"a":{"b":{"c":1,"d":2},"leaf":5,"list":[1,2,3],"p":{".value":1,".priority":1}},"other":1}`
	cases := []struct {
		request string
		want    string // one event on each line, without the braces around path and data
	}{
		// Below.
		{`PUT /a/b/c 7`, `put "path":"/b/c","data":7`},
		{`PUT /a/new {"x":{"y":true}}`, `put "path":"/new","data":{"x":{"y":true}}`},
		{`PUT /a/b/c/d/e "deep"`, `put "path":"/b/c","data":{"d":{"e":"deep"}}`},
		{`DELETE /a/b`, `put "path":"/b","data":null`},
		{`PUT /a/b/c null`, `put "path":"/b/c","data":null`},
		{`PATCH /a/b {"c":3,"e":4}`, `patch "path":"/b","data":{"c":3,"e":4}`},
		{`PATCH /a/b {"c":1,"d":3}`, `patch "path":"/b","data":{"d":3}`},
		{`PATCH /a/b {"c":null}`, `patch "path":"/b","data":{"c":null}`},
		{`PATCH /a/b null`, `put "path":"/b","data":null`},
		{`PATCH /a/leaf {"x":1,"y":2}`, `put "path":"/leaf","data":{"x":1,"y":2}`},
		// At the location.
		{`PUT /a "whole"`, `put "path":"/","data":"whole"`},
		{`DELETE /a`, `put "path":"/","data":null`},
		{`PATCH /a {"leaf":6,"b":null}`, `patch "path":"/","data":{"leaf":6,"b":null}`},
		// Above.
		{`PUT / {"a":{"z":1}}`, `put "path":"/","data":{"z":1}`},
		{`DELETE /`, `put "path":"/","data":null`},
		{`PATCH / {"a":{"z":1},"other":2}`, `put "path":"/","data":{"z":1}`},
		{`PATCH / {"a/leaf":6}`, `patch "path":"/","data":{"leaf":6}`},
		// Several paths: one event for each parent, keys without slashes.
		{`PATCH /a {"b/c":8,"leaf":6,"b/d":9,"new/x/y":1}`, `patch "path":"/b","data":{"c":8,"d":9}
			patch "path":"/","data":{"leaf":6}
			patch "path":"/new/x","data":{"y":1}`},
		{`PATCH / {"other":3,"a/b/c":8,"a/leaf/x":1,"a/leaf/y":2}`, `patch "path":"/b","data":{"c":8}
			put "path":"/leaf","data":{"x":1,"y":2}`},
		// Nothing for it.
		{`PUT /other 7`, ``},
		{`PUT /ab 7`, ``},
		{`PATCH / {"other":8,"ab":1}`, ``},
		{`PUT /a/b {"d":2,"c":1}`, ``},
		{`PUT /a/b/c 1`, ``},
		{`PUT /a/b/c 1.0`, ``},
		{`DELETE /a/nothing/here`, ``},
		{`PUT /a/leaf/below null`, ``},
		{`PATCH /a {"b":{"c":1,"d":2},"leaf":5}`, ``},
		{`PATCH /a {}`, ``},
		{`PUT / ` + before, ``},
		{`PUT / ` + strings.Replace(before, `"other":1`, `"other":2`, 1), ``},
		{`PUT /a/p/.priority 1`, ``},
		{`PUT /a/nothing/.priority 1`, ``},
		{`PUT /other/.priority 1`, ``},
		{`PUT /.priority 1`, ``},
		// A priority alone sends the value again.
		{`PUT /a/b/.priority 4`, `put "path":"/b","data":{"c":1,"d":2}`},
		{`DELETE /a/p/.priority null`, `put "path":"/p","data":1`},
		{`PUT /a/.priority 4`, `put "path":"/","data":{"b":{"c":1,"d":2},"leaf":5,"list":[1,2,3],"p":1}`},
		{`PATCH /a {"b/.priority":4}`, `patch "path":"/","data":{"b":{"c":1,"d":2}}`},
		{`PUT /a/p 1`, `put "path":"/p","data":1`},
		// Together with what is below.
		{`PATCH / {"a/b/c":7,"a/b/.priority":3}`, `put "path":"/b","data":{"c":7,"d":2}`},
		{`PATCH / {"a/.priority":3,"a/leaf":6}`, `put "path":"/","data":{"b":{"c":1,"d":2},"leaf":6,"list":[1,2,3],"p":1}`},
		{`PATCH / {"a/new/x":7,"a/new/.priority":3}`, `put "path":"/new","data":{"x":7}`},
		{`PATCH / {"a/leaf/.priority":4,"a/leaf/x":8}`, `put "path":"/leaf","data":{"x":8}`},
		// Arrays.
		{`PUT /a/list/1 9`, `put "path":"/list/1","data":9`},
		{`PUT /a/b ["x",null,{"0":1,"1":2}]`, `put "path":"/b","data":["x",null,[1,2]]`},
		{`PATCH /a {"b":[1,2]}`, `patch "path":"/","data":{"b":[1,2]}`},
		{`PATCH /a/b {"0":"x","1":"y"}`, `patch "path":"/b","data":{"0":"x","1":"y"}`},
		// Server values are told as what they stand for.
		{`PUT /a/leaf {".sv":{"increment":2}}`, `put "path":"/leaf","data":7`},
		{`PUT /a/q"uote/ä "\u0001"`, `put "path":"/q\"uote/ä","data":"\u0001"`},
	}
	for _, limit := range []int{-1, 2048} {
		f := open(t, store.Options{ChunkBytes: limit})
		f.Do(`PUT / ` + before)
		w := f.Watch(whole(t, "/a"))
		for _, c := range cases {
			f.Do(c.request)
			if got, want := eventLines(w.Events()), eventLines(strings.Split(c.want, "\n")); got != want {
				t.Errorf("chunk limit %d: %s\n got %s\nwant %s", limit, c.request, got, want)
			}
			f.Do(`DELETE /`)
			f.Do(`PUT / ` + before)
			w.Events()
		}
	}
}

// eventLines returns events without the braces around their path and data.
func eventLines(events []string) string {
	var lines []string
	for _, e := range events {
		if e = strings.TrimSpace(e); e != "" {
			e = strings.Replace(e, ` {"path"`, ` "path"`, 1)
			if strings.Count(e, "{") < strings.Count(e, "}") {
				e = strings.TrimSuffix(e, "}")
			}
			lines = append(lines, e)
		}
	}
	return strings.Join(lines, "\n     ")
}

func TestEventsInExportForm(t *testing.T) {
	f := open(t, store.Options{})
	f.Do(`PUT / {"a":{"b":{".value":1,".priority":"x"},"list":[1,2],".priority":3}}`)
	req := whole(t, "/a")
	req.Form = tree.Export
	first := f.Begin(req)
	first.Expect(`first {"path":"/","data":{".priority":3,"b":{".value":1,".priority":"x"},"list":{"0":1,"1":2}}}`)
	f.Do(`PUT /a/list/2 3`)
	f.Do(`PUT /a/b/.priority 5`)
	f.Do(`PUT /a/b/c true`)
	f.Do(`PUT /a/list ["x",{".value":1,".priority":2}]`)
	f.Do(`PATCH /a {"b":{".value":2,".priority":1},"list":[7]}`)
	f.Do(`PUT /a/.priority null`)
	first.Expect(
		`put {"path":"/list/2","data":3}`,
		`put {"path":"/b","data":{".value":1,".priority":5}}`,
		`put {"path":"/b","data":{".priority":5,"c":true}}`,
		`put {"path":"/list","data":{"0":"x","1":{".value":1,".priority":2}}}`,
		`patch {"path":"/","data":{"b":{".value":2,".priority":1},"list":{"0":7}}}`,
		`put {"path":"/","data":{"b":{".value":2,".priority":1},"list":{"0":7}}}`)
}

func TestFirstEvent(t *testing.T) {
	f := open(t, store.Options{})
	nothing := f.Begin(whole(t, "/a"))
	nothing.Expect(`first {"path":"/","data":null}`)
	f.Do(`PUT /a [1,2]`)
	nothing.Expect(`put {"path":"/","data":[1,2]}`)
	f.Begin(whole(t, "/a")).Expect(`first {"path":"/","data":[1,2]}`)
	f.Begin(whole(t, "/a/1")).Expect(`first {"path":"/","data":2}`)
	f.Begin(filtered(t, "/a", `orderBy="$key"&limitToLast=1`)).Expect(`first {"path":"/","data":{"1":2}}`)
	f.Begin(filtered(t, "/a", `orderBy="$key"&startAt="7"`)).Expect(`first {"path":"/","data":{}}`)
	f.Begin(filtered(t, "/b", `orderBy="$key"`)).Expect(`first {"path":"/","data":null}`)
}

// TestLeafAboveTheLocation: what is watched is below a leaf, which becomes an
// object.
func TestLeafAboveTheLocation(t *testing.T) {
	f := open(t, store.Options{})
	f.Do(`PUT /a 1`)
	w, beside := f.Watch(whole(t, "/a/b/c")), f.Watch(whole(t, "/a/x"))
	f.Do(`PUT /a/b {"c":2,"d":3}`)
	w.Expect(`put {"path":"/","data":2}`)
	beside.Expect()
	f.Do(`PUT /a 1`)
	w.Expect(`put {"path":"/","data":null}`)
	f.Do(`PATCH / {"a/b/c/d":4,"a/x/y/z":5}`)
	w.Expect(`patch {"path":"/","data":{"d":4}}`)
	beside.Expect(`patch {"path":"/y","data":{"z":5}}`)
}

// TestLeafBelowALargePriority: a leaf with a priority becomes an object, and beside that
// a node above it gets a priority that is too large to be compared.
func TestLeafBelowALargePriority(t *testing.T) {
	f := open(t, store.Options{})
	f.Do(`PUT /a {"b":{".value":1,".priority":5},"large":"` + strings.Repeat("x", 70_000) + `"}`)
	req := whole(t, "/a/b")
	req.Form = tree.Export
	w := f.Watch(req)
	f.Do(`PATCH / {"a/.priority":2,"a/b/c":1}`)
	w.Expect(`put {"path":"/","data":{".priority":5,"c":1}}`)
}

// TestSameBelowAPriority: what is below a node whose priority changes is told if it
// changes itself.
func TestSameBelowAPriority(t *testing.T) {
	f := open(t, store.Options{})
	f.Do(`PUT / {"a":{"x":{"y":1,"z":1},".priority":1}}`)
	w := f.Watch(whole(t, "/a/x"))
	f.Do(`PATCH / {"a/.priority":2,"a/x/y":1}`)
	w.Expect()
	f.Do(`PATCH / {"a/.priority":3,"a/x/y":2,"a/x/z":1}`)
	w.Expect(`patch {"path":"/","data":{"y":2}}`)
}

func TestEventsOfPosts(t *testing.T) {
	f := open(t, store.Options{})
	w := f.Watch(whole(t, "/a"))
	commit := f.Do(`POST /a/list {"x":1}`)
	w.Expect(fmt.Sprintf(`put {"path":"/list/%s","data":{"x":1}}`, commit.Key))
}

// TestLargeEvents: what is too large to be compared counts as changed.
func TestLargeEvents(t *testing.T) {
	f := open(t, store.Options{})
	large := `"` + strings.Repeat("x", 100_000) + `"`
	f.Do(`PUT /a/b ` + large)
	w := f.Watch(whole(t, "/a"))
	f.Do(`PUT /a/b ` + large)
	w.Expect(`put {"path":"/b","data":` + large + `}`)
	f.Do(`PUT /a/b/.priority 1`)
	w.Expect(`put {"path":"/b","data":` + large + `}`)
	f.Do(`PUT /a/b/c 1`)
	f.Do(`DELETE /a/b`)
	var c cache
	for _, e := range w.Events() {
		kind, text, _ := strings.Cut(e, " ")
		if err := c.apply(kind == "patch", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if c.value != nil {
		t.Errorf("%s is left", &c)
	}
}

// TestManyPathsInOnePatch: more than are compared, one of them below a leaf.
func TestManyPathsInOnePatch(t *testing.T) {
	f := open(t, store.Options{})
	f.Do(`PUT /a {"leaf":1}`)
	w := f.Watch(whole(t, "/a"))
	var parts []string
	for i := range 200 {
		parts = append(parts, fmt.Sprintf(`"k%03d/x":%d`, i, i))
	}
	f.Do(`PATCH /a {` + strings.Join(parts, ",") + `,"leaf/x":1}`)
	if got := w.Events(); len(got) != 201 || got[200] != `put {"path":"/leaf","data":{"x":1}}` {
		t.Errorf("%d events, the last %s", len(got), got[len(got)-1])
	}
}

func TestWatchOfAPriority(t *testing.T) {
	f := open(t, store.Options{})
	req := whole(t, "/a/b")
	req.Priority = true
	w := f.Begin(req)
	w.Expect(`first {"path":"/","data":null}`)
	for _, c := range []struct{ request, want string }{
		{`PUT /a/b 1`, ``},
		{`PUT /a/b/.priority 7`, `7`},
		{`PUT /a/b/.priority 7`, ``},
		{`PUT /a/b/c 1`, ``},
		{`PATCH /a {"b/.priority":"x"}`, `"x"`},
		{`PUT /a/b {"c":1,".priority":9}`, `9`},
		{`PATCH /a/b {"c":2}`, ``},
		{`PUT /a/.priority 3`, ``},
		{`PUT /a/b 5`, `null`},
		{`PUT / {"a":{"b":{".value":1,".priority":2}}}`, `2`},
		{`DELETE /`, `null`},
	} {
		f.Do(c.request)
		var want []string
		if c.want != "" {
			want = []string{`put {"path":"/","data":` + c.want + `}`}
		}
		if got := w.Events(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %v, want %v", c.request, got, want)
		}
	}
}

// TestWindowOfAPriority: a priority is a leaf, of which a query selects nothing.
func TestWindowOfAPriority(t *testing.T) {
	f := open(t, store.Options{})
	f.Do(`PUT /a {".value":1,".priority":1}`)
	req := filtered(t, "/a", `orderBy="$key"`)
	req.Priority = true
	w := f.Begin(req)
	w.Expect(`first {"path":"/","data":null}`)
	f.Do(`PUT /a/.priority 2`)
	f.Do(`PUT /a {"b":1,".priority":3}`)
	w.Expect()
}

// TestPositions: the events of a commit carry its position, and the last of them
// says so.
func TestPositions(t *testing.T) {
	f := open(t, store.Options{})
	w := f.Begin(whole(t, "/"))
	if e, _ := w.Next(); e.Position != 0 || !e.Last || e.Content.Close() != nil {
		t.Errorf("the first event is of %d", e.Position)
	}
	one := f.Do(`PATCH / {"a/b":1,"c/d":2}`)
	two := f.Do(`PUT /x 1`)
	f.WaitForWatches()
	for i, want := range []uint64{one.Position, one.Position, two.Position} {
		if e, ok := w.Next(); !ok || e.Position != want || e.Last != (i > 0) {
			t.Errorf("event %d is of %d, the last of it: %v; want %d, %v", i, e.Position, e.Last, want, i > 0)
		}
	}
}

func TestFramesAreShared(t *testing.T) {
	f := open(t, store.Options{})
	a, b := f.Watch(whole(t, "/")), f.Watch(whole(t, "/"))
	f.Do(`PUT /x 1`)
	f.WaitForWatches()
	calls := 0
	encode := func(e *watch.Event) []byte { calls++; return enginetest.Text(e) }
	first, _ := a.Next()
	second, _ := b.Next()
	if first != second || &first.Frame(encode)[0] != &second.Frame(encode)[0] || calls != 1 {
		t.Errorf("an event of two watches was encoded %d times", calls)
	}
}
