package watch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// TestHiddenSizeDoesNotShow: what a watch is told of a change does not depend on how large
// something else was that the change replaced, which the client may not be allowed to read, nor
// on how much else the change was.
func TestHiddenSizeDoesNotShow(t *testing.T) {
	t.Parallel()
	const shown = `{"b":1,"c":{"d":"x"},"e":true}`
	large := `"` + strings.Repeat("x", 80<<10) + `"` // more than is read at the turn of a change
	var many strings.Builder
	for i := range 100 { // more than are compared then
		fmt.Fprintf(&many, `"hidden/k%d":%d,`, i, i)
	}
	for _, c := range []struct{ request, want string }{
		{`PUT / {"a":` + shown + `,"hidden":1}`, ``},
		{`PUT / {"a":{"b":2},"hidden":1}`, `put "path":"/","data":{"b":2}`},
		{`PATCH / {"hidden":1,"a":` + shown + `}`, ``},
		{`PATCH / {"hidden":1,"a/b":1,"a/c/d":"x"}`, ``},
		{`PATCH / {"hidden":1,"a/b":1,"a/e":false}`, `patch "path":"/","data":{"e":false}`},
		{`PATCH / {"hidden":1,"a/none":null}`, ``},
		{`PATCH / {` + many.String() + `"a/b":1,"a/e":false}`, `patch "path":"/","data":{"e":false}`},
		{`DELETE /`, `put "path":"/","data":null`},
	} {
		for size, hidden := range map[string]string{"small": `"x"`, "large": large} {
			t.Run(size+" "+c.request[:min(40, len(c.request))], func(t *testing.T) {
				t.Parallel()
				f := open(t, store.Options{})
				f.Do(`PUT / {"a":` + shown + `,"hidden":` + hidden + `}`)
				other := f.Watch(whole(t, "/hidden")) // or it is not read in any case
				plain, none, window := f.Watch(whole(t, "/a")), f.Watch(whole(t, "/a/none")), f.Watch(filtered(t, "/a", `orderBy="$key"&limitToFirst=9`))
				f.Do(c.request)
				if got := eventLines(plain.Events()); got != c.want {
					t.Errorf("a watch is told %q, want %q", got, c.want)
				}
				if got := eventLines(none.Events()); got != "" {
					t.Errorf("a watch where nothing is, and was, is told %q", got)
				}
				if got := eventLines(window.Events()); (got == "") != (c.want == "") {
					t.Errorf("a window is told %q, where the whole is told %q", got, c.want)
				}
				other.Events()
			})
		}
	}
}

// TestUnreadInOneDelivery: several changes are handed on together, and what was there before each
// of them is not known. Each is compared with what those before it came to.
func TestUnreadInOneDelivery(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	large := `"` + strings.Repeat("x", 80<<10) + `"`
	f.Do(`PUT / {"a":{"b":1},"hidden":` + large + `}`)
	req := whole(t, "/a")
	req.Form = tree.Export
	w := f.Watch(req)
	hold, release := f.holdDispatcher()
	hold()
	for _, request := range []string{
		`PUT / {"a":{"b":1},"hidden":` + large + `}`,
		`PUT /a/b 2`,
		`PUT / {"a":{"b":2},"hidden":` + large + `}`,
		`PATCH / {"a/b":{".value":2,".priority":1},"a/c":3}`,
		`PUT / {"a":{"b":{".value":2,".priority":1},"c":3},"hidden":` + large + `}`,
		`PUT / {"a":{"b":{".value":2,".priority":2},"c":3},"hidden":` + large + `}`,
		`PUT /a/b/.priority 3`,
		`PUT / {"a":{"b":{".value":2,".priority":3},"c":3},"hidden":` + large + `}`,
		`DELETE /`,
		`PUT /hidden ` + large,
		`PUT / {"hidden":` + large + `}`,
	} {
		f.Do(request)
	}
	release()
	w.Expect(
		`put {"path":"/b","data":2}`,
		`patch {"path":"/","data":{"b":{".value":2,".priority":1},"c":3}}`,
		`put {"path":"/","data":{"b":{".value":2,".priority":2},"c":3}}`,
		`put {"path":"/b","data":{".value":2,".priority":3}}`,
		`put {"path":"/","data":null}`,
	)
}
