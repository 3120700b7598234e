package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/store"
)

// TestResume: what a watch is told that comes back behind a position, after
// something happened.
func TestResume(t *testing.T) {
	const rules = `{"rules": {"a": {".read": "root.child('key').val() !== 'lost'"}}}`
	large := `"` + strings.Repeat("x", 70_000) + `"`
	for name, c := range map[string]struct {
		meanwhile []string
		ahead     uint64
		want      string
	}{
		"nothing":           {nil, 0, ``},
		"elsewhere":         {[]string{`PUT /b 1`}, 0, ``},
		"changes":           {[]string{`PUT /a/x 2`, `PATCH / {"a/y":1,"a/z/q":2,"b":3}`, `DELETE /a/x`}, 0, "put \"path\":\"/x\",\"data\":2\npatch \"path\":\"/\",\"data\":{\"y\":1}\npatch \"path\":\"/z\",\"data\":{\"q\":2}\nput \"path\":\"/x\",\"data\":null"},
		"ahead":             {nil, 100, `first "path":"/","data":{"x":1}`},
		"too large":         {[]string{`PUT /a/x ` + large}, 0, `first "path":"/","data":{"x":` + large + `}`},
		"large beside":      {[]string{`PUT /b ` + large, `PUT /a/x 2`}, 0, `put "path":"/x","data":2`},
		"a priority":        {[]string{`PUT /a/x/.priority 2`}, 0, `first "path":"/","data":{"x":1}`},
		"a priority beside": {[]string{`PUT /b 1`, `PUT /b/.priority 2`, `PUT /a/x 2`}, 0, `put "path":"/x","data":2`},
		"a dependency":      {[]string{`PUT /key "lost"`, `PUT /a/x "hidden"`, `PUT /a/x 3`, `PUT /key "found"`}, 0, `first "path":"/","data":{"x":3}`},
		"settings":          {[]string{`rules`, `PUT /a/x 2`}, 0, `first "path":"/","data":{"x":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, store.Options{})
			f.rules(rules)
			behind := f.do(`PUT /a {"x":1}`).Position
			for _, request := range c.meanwhile {
				if request == "rules" {
					f.rules(rules + " ")
					continue
				}
				f.do(request)
			}
			req := as(auth.Identity{}, whole(t, "/a"))
			req.Resume, req.Behind = true, behind+c.ahead
			w := f.begin(req)
			if got, want := eventLines(w.events()), eventLines(splitLines(c.want)); got != want {
				t.Errorf("\n got %.300s\nwant %.300s", got, want)
			}
			f.do(`PUT /a/later 1`)
			w.expect(`put {"path":"/later","data":1}`)
		})
	}
}

func TestResumeOfAWindowBeginsAnew(t *testing.T) {
	f := open(t, store.Options{})
	behind := f.do(`PUT /a {"x":1}`).Position
	req := filtered(t, "/a", `orderBy="$key"`)
	req.Resume, req.Behind = true, behind
	f.begin(req).expect(`first {"path":"/","data":{"x":1}}`)
}

// TestOverflow: a watch that was too far behind gets what it missed from the change
// log. The second time within a minute it is ended.
func TestOverflow(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, hub.NewBudget(1<<20, 1000), clock)
	w := f.watch(whole(t, "/"))
	n := 0
	write := func(times int) (want []string) {
		for range times {
			n++
			f.do(fmt.Sprintf(`PUT /n %d`, n))
			want = append(want, fmt.Sprintf(`put {"path":"/n","data":%d}`, n))
		}
		f.WaitForWatches()
		return want
	}
	w.expect(write(3)...)
	w.expect(write(20)...)
	clock.advance(61 * time.Second)
	w.expect(write(20)...)
	clock.advance(59 * time.Second)
	write(20)
	w.expect("end")
}

// TestOverflowOfAWindow: a window cannot be continued from the log.
func TestOverflowOfAWindow(t *testing.T) {
	f := openWith(t, store.Options{}, hub.NewBudget(1<<20, 1000), &handClock{})
	w := f.watch(filtered(t, "/l", `orderBy="$key"&limitToLast=1`))
	for i := range 20 {
		f.do(fmt.Sprintf(`PUT /l/k%02d %d`, i, i))
		f.WaitForWatches()
	}
	w.expect(`first {"path":"/","data":{"k19":19}}`)
	f.do(`PUT /l/k20 20`)
	w.expect(`patch {"path":"/","data":{"k19":null,"k20":20}}`)
}
