package watch_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// withIndexes opens a database where /l can be ordered by a and by value.
func withIndexes(t *testing.T, opts store.Options) *fixture {
	f := open(t, opts)
	f.Rule(`{"rules": {"l": {".read": true, ".indexOn": ["a", ".value"]}}}`)
	if err := enginetest.WaitForIndexes(context.Background(), f.Database); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWindows(t *testing.T) {
	const before = `{"l":{"k1":{"a":1},"k2":{"a":2},"k3":{"a":3},"k4":{"a":4}},"other":1}`
	cases := []struct{ query, request, want string }{
		// With a limit: who enters pushes another out, who leaves lets one in.
		{`orderBy="a"&limitToFirst=2`, `PUT /l/k0 {"a":0}`, `patch "path":"/","data":{"k0":{"a":0},"k2":null}`},
		{`orderBy="a"&limitToFirst=2`, `DELETE /l/k1`, `patch "path":"/","data":{"k1":null,"k3":{"a":3}}`},
		{`orderBy="a"&limitToFirst=2`, `PUT /l/k1/a 9`, `patch "path":"/","data":{"k1":null,"k3":{"a":3}}`},
		{`orderBy="a"&limitToLast=2`, `PUT /l/k1/a 9`, `patch "path":"/","data":{"k1":{"a":9},"k3":null}`},
		{`orderBy="a"&limitToLast=2`, `DELETE /l/k3`, `patch "path":"/","data":{"k2":{"a":2},"k3":null}`},
		{`orderBy="$key"&limitToLast=1`, `PUT /l/k5 {"a":1}`, `patch "path":"/","data":{"k4":null,"k5":{"a":1}}`},
		{`orderBy="$key"&limitToFirst=5`, `PUT /l/k9 7`, `patch "path":"/","data":{"k9":7}`},
		{`orderBy="$priority"&limitToLast=1`, `PUT /l/k1/.priority 5`, `patch "path":"/","data":{"k1":{"a":1},"k4":null}`},
		{`orderBy="$value"&limitToFirst=1`, `PUT /l/k4 false`, `patch "path":"/","data":{"k1":null,"k4":false}`},
		// Who stays has its ordinary events.
		{`orderBy="a"&limitToFirst=2`, `PUT /l/k1/b "x"`, `put "path":"/k1/b","data":"x"`},
		{`orderBy="a"&limitToFirst=2`, `PUT /l/k2/a 1`, `put "path":"/k2/a","data":1`},
		{`orderBy="a"&limitToFirst=2`, `PATCH /l {"k1/b":5,"k4/b":5,"k2":{"a":2,"b":5}}`, `patch "path":"/k1","data":{"b":5}
			patch "path":"/","data":{"k2":{"a":2,"b":5}}`},
		{`orderBy="a"&limitToFirst=2`, `PATCH /l {"k1":null,"k2/b":1}`, `patch "path":"/","data":{"k1":null,"k3":{"a":3}}
			patch "path":"/k2","data":{"b":1}`},
		{`orderBy="a"&limitToFirst=2`, `PUT /l/k1/.priority 7`, `put "path":"/k1","data":{"a":1}`},
		// Who is outside has none.
		{`orderBy="a"&limitToFirst=2`, `PUT /l/k4/b "x"`, ``},
		{`orderBy="a"&limitToFirst=2`, `DELETE /l/k4`, ``},
		{`orderBy="a"&limitToFirst=2`, `PUT /l/k9 {"a":9}`, ``},
		{`orderBy="a"&limitToFirst=2`, `PUT /other 2`, ``},
		{`orderBy="a"&limitToFirst=2`, `PUT /l/k1/a 1`, ``},
		// A range.
		{`orderBy="a"&startAt=2&endAt=3`, `PUT /l/k1/a 2.5`, `patch "path":"/","data":{"k1":{"a":2.5}}`},
		{`orderBy="a"&startAt=2&endAt=3`, `PUT /l/k2/a 7`, `patch "path":"/","data":{"k2":null}`},
		{`orderBy="a"&startAt=2&endAt=3`, `PUT /l/k2/a 3`, `put "path":"/k2/a","data":3`},
		{`orderBy="a"&equalTo=null`, `PUT /l/k2/a null`, ``},
		{`orderBy="a"&equalTo=null`, `PUT /l/k2 "a leaf"`, `patch "path":"/","data":{"k2":"a leaf"}`},
		{`orderBy="$key"&startAt="k3"`, `DELETE /l/k3`, `patch "path":"/","data":{"k3":null}`},
		{`orderBy="a"&startAt=2&limitToFirst=1`, `DELETE /l/k2`, `patch "path":"/","data":{"k2":null,"k3":{"a":3}}`},
		{`orderBy="a"&endAt=2&limitToLast=1`, `PUT /l/k9 {"a":2}`, `patch "path":"/","data":{"k2":null,"k9":{"a":2}}`},
		// At or above: the new window.
		{`orderBy="a"&limitToFirst=1`, `PUT /l {"x":{"a":1},"y":{"a":0}}`, `put "path":"/","data":{"y":{"a":0}}`},
		{`orderBy="a"&limitToFirst=1`, `DELETE /`, `put "path":"/","data":null`},
		{`orderBy="a"&limitToFirst=1`, `PUT /l "leaf"`, `put "path":"/","data":null`},
		{`orderBy="a"&limitToFirst=1`, `PATCH / {"l":{"x":{"a":1}},"other":3}`, `put "path":"/","data":{"x":{"a":1}}`},
		{`orderBy="a"&limitToFirst=1`, `PUT /l/.priority 3`, ``},
		// Several at once.
		{`orderBy="a"&limitToLast=2`, `PATCH /l {"k3":null,"k4":null,"k5":{"a":5},"k1/a":6}`,
			`patch "path":"/","data":{"k1":{"a":6},"k3":null,"k4":null,"k5":{"a":5}}`},
		{`orderBy="a"&limitToFirst=2`, `PATCH /l {"k1/a":5,"k2/a":6,"k3/a":7,"k4/a":8}`, `patch "path":"/k1","data":{"a":5}
			patch "path":"/k2","data":{"a":6}`},
	}
	for _, limit := range []int{-1, 2048} {
		indexed, bare := withIndexes(t, store.Options{ChunkBytes: limit}), open(t, store.Options{ChunkBytes: limit})
		for _, f := range []*fixture{indexed, bare} {
			for _, c := range cases {
				f.Do(`DELETE /`)
				f.Do(`PUT / ` + before)
				req := filtered(t, "/l", c.query)
				req.Scan = f == bare // the same events without an index
				w := f.Watch(req)
				f.Do(c.request)
				if got, want := eventLines(w.Events()), eventLines(splitLines(c.want)); got != want {
					t.Errorf("chunk limit %d, scan %t: %s: %s\n got %s\nwant %s", limit, req.Scan, c.query, c.request, got, want)
				}
				w.Close()
			}
		}
	}
}

func TestWindowNeedsItsIndex(t *testing.T) {
	f := withIndexes(t, store.Options{})
	req := filtered(t, "/l", `orderBy="b"`)
	req.Wake = func() {}
	if _, _, err := f.Watches().Open(req); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a watch without its index gives %v", err)
	}
	w := f.Watch(filtered(t, "/l", `orderBy="a"`))
	f.Rule(`{"rules": {"l": {".read": true}}}`)
	w.Expect("cancel")
	if watches, places := f.Watches().WatchCounts(); watches != 1 || places != 1 {
		t.Errorf("%d watches at %d places, want the one that is to be closed", watches, places)
	}
}

// TestWindowsOfSeveralCommits: the dispatcher takes several commits at once. What
// a watch that began between them saw is undone, and it is told so.
func TestWindowsOfSeveralCommits(t *testing.T) {
	f := open(t, store.Options{})
	f.Do(`PUT / {"l":{"a":1,"b":2},"p":{".value":1,".priority":1}}`)
	held := make(chan struct{})
	reached := make(chan struct{}, 100)
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	blocker := whole(t, "/block")
	blocker.Wake = func() { reached <- struct{}{}; <-held }
	f.Watch(blocker)
	window := filtered(t, "/l", `orderBy="$key"&startAt="c"`)
	priority := whole(t, "/p")
	priority.Priority = true
	early, earlyPriority := f.Watch(window), f.Watch(priority)
	f.Do(`PUT /block 1`)
	<-reached // nothing is handed on from here
	f.Do(`PUT /l/c 3`)
	f.Do(`PUT /p/.priority 2`)
	late, latePriority := f.Begin(window), f.Begin(priority)
	f.Do(`DELETE /l/c`)
	f.Do(`PUT /p/.priority 1`)
	release()
	early.Expect()
	earlyPriority.Expect()
	late.Expect(`first {"path":"/","data":{"c":3}}`, `first {"path":"/","data":{}}`)
	latePriority.Expect(`first {"path":"/","data":2}`, `first {"path":"/","data":1}`)
}

// TestTooManyPending: more changes than are kept for the dispatcher.
func TestTooManyPending(t *testing.T) {
	f := open(t, store.Options{})
	held := make(chan struct{})
	reached := make(chan struct{}, 1)
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	blocker := whole(t, "/block")
	blocker.Wake = sync.OnceFunc(func() { reached <- struct{}{}; <-held })
	f.Watch(blocker)
	w := f.Watch(whole(t, "/n"))
	window := f.Watch(filtered(t, "/l", `orderBy="$key"&limitToLast=2`))
	f.Do(`PUT /block 1`)
	<-reached
	var writers sync.WaitGroup
	for range 50 {
		writers.Go(func() {
			for range 100 {
				req, err := enginetest.ParseRequest(`POST /l 1`)
				if err != nil {
					t.Error(err)
				}
				req.Who = admin
				if _, err := f.Write(context.Background(), req); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	f.Do(`PUT /n 5`)
	release()
	w.Expect(`put {"path":"/","data":5}`)
	if got := window.Events(); len(got) != 1 || got[0][:5] != "first" {
		t.Errorf("events of the window: %v", got)
	}
	f.Do(`PUT /l/z 1`)
	if got := window.Events(); len(got) != 1 || got[0][:5] != "patch" {
		t.Errorf("events of the window: %v", got)
	}
}

// TestWindowBegunBesideOthersThatStay: as above, and there is something to tell of a
// child that stayed, which the one that began later has seen. What was undone
// afterwards it is told nevertheless.
func TestWindowBegunBesideOthersThatStay(t *testing.T) {
	f := open(t, store.Options{})
	f.Do(`PUT /l {"a":1,"b":2}`)
	held := make(chan struct{})
	reached := make(chan struct{}, 100)
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	blocker := whole(t, "/block")
	blocker.Wake = func() { reached <- struct{}{}; <-held }
	f.Watch(blocker)
	window := filtered(t, "/l", `orderBy="$key"&limitToLast=2`)
	early := f.Watch(window)
	f.Do(`PUT /block 1`)
	<-reached // nothing is handed on from here
	f.Do(`PUT /l/b 5`)
	f.Do(`PUT /l/c 3`)
	late := f.Begin(window)
	f.Do(`DELETE /l/c`)
	release()
	early.Expect(`put {"path":"/b","data":5}`)
	late.Expect(`first {"path":"/","data":{"b":5,"c":3}}`, `first {"path":"/","data":{"a":1,"b":5}}`)
}

// TestWhatIsAboveIsNotTold: whoever watches a location is told of a write to it in the same way,
// whatever is above it, which they may not be allowed to know.
func TestWhatIsAboveIsNotTold(t *testing.T) {
	above := []string{
		`{"other":1}`, `null`, `1`, `{".value":1,".priority":2}`, `{"other":1,".priority":"p"}`,
		`"` + strings.Repeat("x", 200_000) + `"`, `{"other":"` + strings.Repeat("x", 200_000) + `"}`,
	}
	for _, request := range []string{
		`PUT /p/s/x 1`, `PUT /p/s/x/y {"a":1}`, `PATCH /p/s {"x/y":1,"z":2}`, `PATCH /p {"s/x":{"a":1},"t":2}`, `PATCH / {"p/s/x":1,"p/s/y":2,"q":1}`,
	} {
		for _, query := range []string{"", `orderBy="$key"&limitToFirst=2`, `orderBy="a"&limitToLast=1`, `orderBy="$value"&startAt=1`} {
			for _, together := range []bool{false, true} {
				var want string
				for i, hidden := range above {
					f := open(t, store.Options{})
					f.Do(`PUT /p ` + hidden)
					req := whole(t, "/p/s")
					if query != "" {
						req = filtered(t, "/p/s", query)
						req.Scan = true
					}
					req.Form, req.Whole = tree.Export, together
					w := f.Watch(req)
					f.Do(request)
					got := eventLines(w.Events())
					if i == 0 {
						want = got
					}
					if got != want {
						t.Errorf("%s, %q, whole %t: with %.40s above\n got %s\nwant %s", request, query, together, hidden, got, want)
					}
					w.Close()
				}
			}
		}
	}
}
