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

// TestEveryDeleteOfNothingIsMarked: below a leaf, a delete that is not marked would
// seem to remove the leaf, to streams and in the log.
func TestEveryDeleteOfNothingIsMarked(t *testing.T) {
	everyLimit(t, func(t *testing.T, f *fixture) {
		f.Do(`PUT / {"leaf":1,"long":"` + strings.Repeat("x", 70_000) + `","object":{"a":1,"b":{"c":2}},"wide":{"a":"` +
			strings.Repeat("y", 5000) + `","k0007":1}}`)
		var parts []string
		for i := range 1200 {
			for _, parent := range []string{"leaf", "leaf/x/y", "long", "object", "object/b", "wide", "wide/a", "nowhere/at/all"} {
				parts = append(parts, fmt.Sprintf(`"%s/k%04d":null`, parent, i))
			}
		}
		parts = append(parts, `"object/a":null`, `"new/a":1`, `"prepared":{"large":"`+strings.Repeat("z", 70_000)+`"}`)
		w := f.Watch(whole(t, "/leaf"))
		c := f.Do(`PATCH / {` + strings.Join(parts, ",") + `}`)
		w.Expect()
		for _, a := range c.Assignments {
			p := a.Path.String()
			want := a.Node.IsNull() && p != "/object/a" && p != "/wide/k0007"
			if a.Void != want {
				t.Fatalf("the assignment of %s is marked as void: %v, want %v", p, a.Void, want)
			}
		}
	})
}

// TestManyDeletesBelowALeafInTheLog: a watch that resumes is not told of them either.
func TestManyDeletesBelowALeafInTheLog(t *testing.T) {
	everyLimit(t, func(t *testing.T, f *fixture) {
		behind := f.Do(`PUT /a {"leaf":5}`).Position
		var parts []string
		for i := range 1500 {
			parts = append(parts, fmt.Sprintf(`"leaf/k%04d":null`, i))
		}
		f.Do(`PATCH /a {` + strings.Join(parts, ",") + `,"x":1}`)
		req := whole(t, "/a")
		req.Resume, req.Behind = true, behind
		f.Begin(req).Expect(`patch {"path":"/","data":{"x":1}}`)
	})
}

// long is a text above what a write may read at its turn.
var long = strings.Repeat("x", 70_000)

// TestPrioritiesOfLargeNodes: what watches are told when the priority of a node changes
// that is too large to be read at the turn, alone or beside what is below it. LONG
// stands for the long text. The value of a leaf is told again; of an object, its
// priority is told and nothing else. What is around it is never told.
func TestPrioritiesOfLargeNodes(t *testing.T) {
	const before = `{"l":{"a":LEAF,"o":{"big":"LONG","x":1,"leaf":{".value":1,".priority":2},".priority":1},"small":{"k":1}},"rest":1}`
	watched := map[string]watch.Request{
		"/":              whole(t, "/"),
		"/ export":       export(whole(t, "/")),
		"/l":             whole(t, "/l"),
		"/l export":      export(whole(t, "/l")),
		"/l/a":           whole(t, "/l/a"),
		"/l/a export":    export(whole(t, "/l/a")),
		"/l/a/x":         whole(t, "/l/a/x"),
		"/l/o":           whole(t, "/l/o"),
		"/l/o export":    export(whole(t, "/l/o")),
		"/l/o/x":         whole(t, "/l/o/x"),
		"/l by priority": export(filtered(t, "/l", `orderBy="$priority"&startAt=0`)),
		"/l by key":      filtered(t, "/l", `orderBy="$key"&startAt="a"&endAt="o"`),
		"/l/o by key":    filtered(t, "/l/o", `orderBy="$key"&startAt="x"`),
	}
	cases := []struct {
		leaf    string // what is at /l/a
		request string
		want    map[string]string // one event on each line; nothing where it is not named
	}{
		{`"LONG"`, `PATCH /l {"a/.priority":5,"a/x":null}`, map[string]string{
			"/":              `patch {"path":"/l","data":{"a":"LONG"}}`,
			"/ export":       `patch {"path":"/l","data":{"a":{".value":"LONG",".priority":5}}}`,
			"/l":             `patch {"path":"/","data":{"a":"LONG"}}`,
			"/l export":      `patch {"path":"/","data":{"a":{".value":"LONG",".priority":5}}}`,
			"/l/a":           `put {"path":"/","data":"LONG"}`,
			"/l/a export":    `put {"path":"/","data":{".value":"LONG",".priority":5}}`,
			"/l by priority": `patch {"path":"/","data":{"a":{".value":"LONG",".priority":5}}}`,
			"/l by key":      `patch {"path":"/","data":{"a":"LONG"}}`,
		}},
		{`{".value":"LONG",".priority":5}`, `PUT /l/a/.priority null`, map[string]string{
			"/":              `put {"path":"/l/a","data":"LONG"}`,
			"/ export":       `put {"path":"/l/a","data":"LONG"}`,
			"/l":             `put {"path":"/a","data":"LONG"}`,
			"/l export":      `put {"path":"/a","data":"LONG"}`,
			"/l/a":           `put {"path":"/","data":"LONG"}`,
			"/l/a export":    `put {"path":"/","data":"LONG"}`,
			"/l by priority": `patch {"path":"/","data":{"a":null}}`,
			"/l by key":      `put {"path":"/a","data":"LONG"}`,
		}},
		{`{".value":"LONG",".priority":5}`, `PATCH /l {"a/.priority":5,"a/x":null,"a/y/z":null}`, nil},
		{`{".value":"LONG",".priority":5}`, `PATCH /l {"a/x/.priority":5}`, nil},
		{`{".value":"LONG",".priority":5}`, `PATCH /l {"a/.priority":6,"a/x":null,"a/y/z":1}`, map[string]string{
			"/":              `put {"path":"/l/a","data":{"y":{"z":1}}}`,
			"/ export":       `put {"path":"/l/a","data":{".priority":6,"y":{"z":1}}}`,
			"/l":             `put {"path":"/a","data":{"y":{"z":1}}}`,
			"/l export":      `put {"path":"/a","data":{".priority":6,"y":{"z":1}}}`,
			"/l/a":           `put {"path":"/","data":{"y":{"z":1}}}`,
			"/l/a export":    `put {"path":"/","data":{".priority":6,"y":{"z":1}}}`,
			"/l by priority": `put {"path":"/a","data":{".priority":6,"y":{"z":1}}}`,
			"/l by key":      `put {"path":"/a","data":{"y":{"z":1}}}`,
		}},
		{`1`, `PUT /l/o/.priority 7`, map[string]string{
			"/":              `patch {"path":"/l/o","data":{}}`,
			"/ export":       `patch {"path":"/l/o","data":{".priority":7}}`,
			"/l":             `patch {"path":"/o","data":{}}`,
			"/l export":      `patch {"path":"/o","data":{".priority":7}}`,
			"/l/o":           `patch {"path":"/","data":{}}`,
			"/l/o export":    `patch {"path":"/","data":{".priority":7}}`,
			"/l by priority": `patch {"path":"/o","data":{".priority":7}}`,
			"/l by key":      `patch {"path":"/o","data":{}}`,
		}},
		{`1`, `PATCH /l {"o/.priority":null,"o/x":2,"o/none":null}`, map[string]string{
			"/":              "patch {\"path\":\"/l/o\",\"data\":{\"x\":2}}\npatch {\"path\":\"/l/o\",\"data\":{}}",
			"/ export":       "patch {\"path\":\"/l/o\",\"data\":{\"x\":2}}\npatch {\"path\":\"/l/o\",\"data\":{\".priority\":null}}",
			"/l":             "patch {\"path\":\"/o\",\"data\":{\"x\":2}}\npatch {\"path\":\"/o\",\"data\":{}}",
			"/l export":      "patch {\"path\":\"/o\",\"data\":{\"x\":2}}\npatch {\"path\":\"/o\",\"data\":{\".priority\":null}}",
			"/l/o":           "patch {\"path\":\"/\",\"data\":{\"x\":2}}\npatch {\"path\":\"/\",\"data\":{}}",
			"/l/o export":    "patch {\"path\":\"/\",\"data\":{\"x\":2}}\npatch {\"path\":\"/\",\"data\":{\".priority\":null}}",
			"/l/o/x":         `put {"path":"/","data":2}`,
			"/l by priority": `patch {"path":"/","data":{"o":null}}`,
			"/l by key":      "patch {\"path\":\"/o\",\"data\":{\"x\":2}}\npatch {\"path\":\"/o\",\"data\":{}}",
			"/l/o by key":    `patch {"path":"/","data":{"x":2}}`,
		}},
		// The object is gone, and its priority with it.
		{`1`, `PATCH /l {"o/.priority":9,"o/x":null,"o/big":null,"o/leaf":null}`, map[string]string{
			"/":              `patch {"path":"/l/o","data":{"x":null,"big":null,"leaf":null}}`,
			"/ export":       `patch {"path":"/l/o","data":{"x":null,"big":null,"leaf":null}}`,
			"/l":             `patch {"path":"/o","data":{"x":null,"big":null,"leaf":null}}`,
			"/l export":      `patch {"path":"/o","data":{"x":null,"big":null,"leaf":null}}`,
			"/l/o":           `patch {"path":"/","data":{"x":null,"big":null,"leaf":null}}`,
			"/l/o export":    `patch {"path":"/","data":{"x":null,"big":null,"leaf":null}}`,
			"/l/o/x":         `put {"path":"/","data":null}`,
			"/l by priority": `patch {"path":"/","data":{"o":null}}`,
			"/l by key":      `patch {"path":"/","data":{"o":null}}`,
			"/l/o by key":    `patch {"path":"/","data":{"x":null}}`,
		}},
	}
	for _, limit := range []int{-1, 2048} {
		for _, c := range cases {
			t.Run(fmt.Sprintf("chunk limit %d: %s", limit, c.request), func(t *testing.T) {
				f := open(t, store.Options{ChunkBytes: limit})
				f.Do(`PUT / ` + strings.ReplaceAll(strings.Replace(before, "LEAF", c.leaf, 1), "LONG", long))
				watchers := map[string]*enginetest.Watcher{}
				for name, req := range watched {
					watchers[name] = f.Watch(req)
				}
				f.Do(c.request)
				for name, w := range watchers {
					if got := strings.ReplaceAll(strings.Join(w.Events(), "\n"), long, "LONG"); got != c.want[name] {
						t.Errorf("watch of %s\n got %.500s\nwant %s", name, got, c.want[name])
					}
				}
			})
		}
	}
}

func export(req watch.Request) watch.Request {
	req.Form = tree.Export
	return req
}

// TestManyPriorities: more than are compared with the tree.
func TestManyPriorities(t *testing.T) {
	f := open(t, store.Options{})
	f.Do(`PUT /rest "` + long + `"`)
	var nodes, parts []string
	for i := range 200 {
		nodes = append(nodes, fmt.Sprintf(`"k%03d":{"n":%d}`, i, i))
		parts = append(parts, fmt.Sprintf(`"list/k%03d/.priority":%d`, i, 200-i))
	}
	f.Do(`PUT /list {` + strings.Join(nodes, ",") + `}`)
	w := f.Watch(export(whole(t, "/")))
	f.Do(`PATCH / {` + strings.Join(parts, ",") + `}`)
	events := w.Events()
	if got, want := events[len(events)-1], `patch {"path":"/list/k199","data":{".priority":1}}`; got != want {
		t.Errorf("the last of %d events is %.200s, want %s", len(events), got, want)
	}
}

// TestWhatComesIsToldBeforeAnythingGoes: a node that loses all its children and gets
// others keeps its priority, also for a client that drops what is empty.
func TestWhatComesIsToldBeforeAnythingGoes(t *testing.T) {
	f := open(t, store.Options{})
	behind := f.Do(`PUT / {"a":{"b":{"x":1,".priority":"p"}}}`).Position
	w := f.Watch(export(whole(t, "/a")))
	f.Do(`PATCH /a {"b/x":null,"b/y/z":2}`)
	want := []string{`patch {"path":"/b/y","data":{"z":2}}`, `patch {"path":"/b","data":{"x":null}}`}
	w.Expect(want...)
	req := export(whole(t, "/a"))
	req.Resume, req.Behind = true, behind
	f.Begin(req).Expect(want...)
}
