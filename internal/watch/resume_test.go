package watch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/proof"
	"github.com/livetree/livetree/internal/state"
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
			f.Rule(rules)
			behind := f.Do(`PUT /a {"x":1}`).Position
			for _, request := range c.meanwhile {
				if request == "rules" {
					f.Rule(rules + " ")
					continue
				}
				f.Do(request)
			}
			req := as(auth.Identity{}, whole(t, "/a"))
			req.Resume, req.Behind = true, behind+c.ahead
			w := f.Begin(req)
			if got, want := eventLines(w.Events()), eventLines(splitLines(c.want)); got != want {
				t.Errorf("\n got %.300s\nwant %.300s", got, want)
			}
			f.Do(`PUT /a/later 1`)
			w.Expect(`put {"path":"/later","data":1}`)
		})
	}
}

func TestResumeOfAWindowBeginsAnew(t *testing.T) {
	f := open(t, store.Options{})
	behind := f.Do(`PUT /a {"x":1}`).Position
	req := filtered(t, "/a", `orderBy="$key"`)
	req.Resume, req.Behind = true, behind
	f.Begin(req).Expect(`first {"path":"/","data":{"x":1}}`)
}

// TestOverflow: a watch that was too far behind gets what it missed from the change
// log. The second time within a minute it is ended.
func TestOverflow(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, hub.NewBudget(1<<20, 1000), clock)
	w := f.Watch(whole(t, "/"))
	n := 0
	write := func(times int) (want []string) {
		for range times {
			n++
			f.Do(fmt.Sprintf(`PUT /n %d`, n))
			want = append(want, fmt.Sprintf(`put {"path":"/n","data":%d}`, n))
		}
		f.WaitForWatches()
		return want
	}
	w.Expect(write(3)...)
	w.Expect(write(20)...)
	clock.advance(61 * time.Second)
	w.Expect(write(20)...)
	clock.advance(59 * time.Second)
	write(20)
	w.Expect("end")
}

// TestOverflowWhenTheClockWasSetBack: the time of commits stands still then, but a
// minute is a minute.
func TestOverflowWhenTheClockWasSetBack(t *testing.T) {
	machine := proof.NewMachineClock()
	f := open(t, store.Options{Now: machine.Now})
	f.reopen(hub.NewBudget(1<<20, 1000), machine.Now)
	machine.Set(time.Hour)
	w := f.Watch(whole(t, "/"))
	n := 0
	overflow := func() []string {
		for range 20 {
			n++
			f.Do(fmt.Sprintf(`PUT /n %d`, n))
			f.WaitForWatches()
		}
		return w.Events()
	}
	overflow()
	machine.Set(-time.Hour)
	for range 3 {
		machine.Pass(61 * time.Second)
		if told := overflow(); len(told) != 20 {
			t.Fatalf("a watch that was too far behind more than a minute ago is told %q, want 20 events", told)
		}
	}
	machine.Pass(30 * time.Second)
	machine.Set(time.Hour)
	if told := overflow(); !slices.Equal(told, []string{"end"}) {
		t.Errorf("a watch that was too far behind half a minute ago is told %q, want its end", told)
	}
}

// TestOverflowOfAWindow: a window cannot be continued from the log.
func TestOverflowOfAWindow(t *testing.T) {
	f := openWith(t, store.Options{}, hub.NewBudget(1<<20, 1000), &handClock{})
	w := f.Watch(filtered(t, "/l", `orderBy="$key"&limitToLast=1`))
	for i := range 20 {
		f.Do(fmt.Sprintf(`PUT /l/k%02d %d`, i, i))
		f.WaitForWatches()
	}
	w.Expect(`first {"path":"/","data":{"k19":19}}`)
	f.Do(`PUT /l/k20 20`)
	w.Expect(`patch {"path":"/","data":{"k19":null,"k20":20}}`)
}

// TestGrowthResume: what is read for a watch that goes on does not grow with what it
// missed. Beyond the bounds it is told what is there.
func TestGrowthResume(t *testing.T) {
	for name, bound := range map[string]struct {
		rows       uint64
		bytes      int64
		told       int
		most       uint64 // rows that may be read
		at, behind string
	}{
		"rows":      {rows: 40, most: 40, at: "/b", behind: "/a"},
		"bytes":     {bytes: 1000, most: 45, at: "/b", behind: "/a"},
		"told":      {told: 30, most: 31, at: "/a", behind: "/a"},
		"all bound": {rows: 40, bytes: 2000, told: 30, most: 40, at: "/a", behind: "/a"},
	} {
		for _, n := range []int{20, 80, 320} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				f := open(t, store.Options{})
				f.Watches().BoundResume(bound.rows, bound.bytes, bound.told, 0)
				behind := f.Do(`PUT / {"a":{"m":0},"b":{"m":0}}`).Position
				var missed []string
				for i := range n {
					f.Do(fmt.Sprintf(`PUT %s/n %d`, bound.behind, i))
					missed = append(missed, fmt.Sprintf(`put {"path":"/n","data":%d}`, i))
				}
				if bound.at != bound.behind {
					missed = nil
				}
				if n > 30 {
					missed = []string{`first {"path":"/","data":{"m":0}}`}
					if bound.at == bound.behind {
						missed[0] = fmt.Sprintf(`first {"path":"/","data":{"m":0,"n":%d}}`, n-1)
					}
				}
				before := f.Store.Stats()
				req := whole(t, bound.at)
				req.Resume, req.Behind = true, behind
				w := f.Begin(req)
				after := f.Store.Stats()
				w.Expect(missed...)
				if rows := after.LogRows - before.LogRows; rows > bound.most {
					t.Errorf("%d rows were read for a watch that missed %d changes, want at most %d", rows, n, bound.most)
				}
				if bytes := after.LogBytes - before.LogBytes; bytes > 40*bound.most+100 {
					t.Errorf("%d bytes were read for a watch that missed %d changes", bytes, n)
				}
				f.Do(`PUT ` + bound.at + `/later 1`)
				w.Expect(`put {"path":"/later","data":1}`)
			})
		}
	}
}

// TestResumeReadsOnce: changes that fit are looked at once, and those that do not
// concern the watch are not decoded.
func TestResumeReadsOnce(t *testing.T) {
	f := open(t, store.Options{})
	behind := f.Do(`PUT /a/n 0`).Position
	for i := range 100 {
		f.Do(fmt.Sprintf(`PUT /b/n%d {"some":"data"}`, i))
		f.Do(fmt.Sprintf(`PATCH / {"b/m%d":{"some":"data"},"a/n":%d}`, i, i))
	}
	before := f.Store.Stats()
	req := whole(t, "/a")
	req.Resume, req.Behind = true, behind
	looked := 0
	f.Watches().WhileLooking(func(bool) { looked++ })
	w := f.Begin(req)
	if got := len(w.Events()); got != 100 {
		t.Errorf("%d events, want 100", got)
	}
	if rows := f.Store.Stats().LogRows - before.LogRows; rows != 200 || looked != 100 {
		t.Errorf("%d rows were read and %d changes looked at, want 200 and 100", rows, looked)
	}
}

// TestResumeInPortions: a watch that keeps one change at a time is told the same as
// one that was there all the time.
func TestResumeInPortions(t *testing.T) {
	f := open(t, store.Options{})
	f.Watches().BoundResume(0, 0, 0, 1)
	behind := f.Do(`PUT / {"a":{"x":0},"b":0}`).Position
	there := f.Watch(whole(t, "/a"))
	for i := range 50 {
		f.Do(fmt.Sprintf(`PUT /b %d`, i))
		f.Do(fmt.Sprintf(`PATCH / {"a/x":%d,"a/y/z":%d,"b":-1}`, i+1, i))
		f.Do(fmt.Sprintf(`PUT /a/y {"z":"%d"}`, i))
	}
	f.Do(`PUT /b "the last is elsewhere"`)
	f.WaitForWatches()
	req := whole(t, "/a")
	req.Resume, req.Behind = true, behind
	if got, want := eventLines(f.Begin(req).Events()), eventLines(there.Events()); got != want || got == "" {
		t.Errorf("\n got %.600s\nwant %.600s", got, want)
	}
}

// TestResumeReadsNoFurther: what was committed after a watch began is not looked at
// in the log, however many portions it is told in.
func TestResumeReadsNoFurther(t *testing.T) {
	f := open(t, store.Options{})
	f.Watches().BoundResume(0, 1000, 0, 1)
	behind := f.Do(`PUT /a/n 0`).Position
	for i := range 10 {
		f.Do(fmt.Sprintf(`PUT /a/n %d`, i+1))
	}
	f.Do(`PUT /b "the last is elsewhere"`)
	req := whole(t, "/a")
	req.Resume, req.Behind = true, behind
	before := f.Store.Stats()
	w := f.Begin(req)
	for i := range 100 {
		f.Do(fmt.Sprintf(`PUT /b %d`, i))
	}
	if got := len(w.Events()); got != 10 {
		t.Errorf("%d events, want 10", got)
	}
	if rows := f.Store.Stats().LogRows - before.LogRows; rows > 40 {
		t.Errorf("%d rows were read, want at most 40: each of 11 when the watch began, and for its portion", rows)
	}
	if _, renewed := f.Watches().WatchTroubles(); renewed > 0 {
		t.Error("the watch was told all again")
	}
}

// TestResumeHoldsUpNobody: deliveries are taken while the log is looked through, also
// for a watch that had to wait for its turn to begin, and one that fell behind.
func TestResumeHoldsUpNobody(t *testing.T) {
	f := openWith(t, store.Options{}, hub.NewBudget(1<<20, 1000), &handClock{})
	f.Watches().BeginBetween()
	looked := 0
	f.Watches().WhileLooking(func(free bool) {
		looked++
		if !free {
			t.Error("deliveries wait while the log is looked through")
		}
	})
	behind := f.Do(`PUT /a 0`).Position
	there := f.Watch(whole(t, "/a"))
	for i := range 20 {
		f.Do(fmt.Sprintf(`PUT /a %d`, i+1))
	}
	f.WaitForWatches()
	req := whole(t, "/a")
	req.Resume, req.Behind = true, behind
	if events := f.Begin(req).Events(); len(events) != 20 || looked != 20 {
		t.Errorf("%d events after %d looks, want 20 and 20", len(events), looked)
	}
	if events := there.Events(); len(events) != 20 || looked != 40 {
		t.Errorf("the watch that fell behind has %d events after %d looks, want 20 and 40", len(events), looked)
	}
}

// TestResumeEndsWhenNobodyWaits: a client that left is not looked for.
func TestResumeEndsWhenNobodyWaits(t *testing.T) {
	f := open(t, store.Options{})
	behind := f.Do(`PUT /a 0`).Position
	for i := range 600 {
		f.Do(fmt.Sprintf(`PUT /a %d`, i+1))
	}
	done := make(chan struct{})
	req := whole(t, "/a")
	req.Resume, req.Behind, req.Done, req.Wake = true, behind, done, func() {}
	looked := 0
	f.Watches().WhileLooking(func(bool) {
		if looked++; looked == 1 {
			close(done)
		}
	})
	if _, _, err := f.Watches().Open(req); !errors.Is(err, state.ErrUnwanted) || looked >= 600 {
		t.Errorf("Watch = %v after %d of 600 changes, want that nobody waits, soon", err, looked)
	}
	if watches, places := f.Watches().WatchCounts(); watches != 0 || places != 0 {
		t.Errorf("%d watches and %d places are left", watches, places)
	}
}
