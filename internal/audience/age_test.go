package audience_test

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
)

// TestAnswersThatAreNotTaken: an answer that waits for long becomes a failure, so that it holds
// no view. Those that came later do not, before it is their time.
func TestAnswersThatAreNotTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := enginetest.Open(t, store.Options{})
		f.Rule(open)
		f.Put("/a", "1")
		a := audience.New(f.Database, audience.Options{Wake: func() {}, Now: time.Now})
		defer a.Close()
		at := enginetest.Path(t, "/a")
		expect := func(id int64, good bool) {
			t.Helper()
			synctest.Wait()
			item, _ := a.Next()
			answer := item.Answer
			if answer == nil || answer.ID != id {
				t.Fatalf("the client is told %v, want answer %d", item, id)
			}
			if good != (answer.Err == nil) || good != (answer.Content != nil) {
				t.Fatalf("answer %d has content %v, error %v", id, answer.Content, answer.Err)
			}
			if good {
				if got := content(t, answer.Content); got != " 1" {
					t.Errorf("answer %d is %s", id, got)
				}
			} else if fault.KindOf(answer.Err) != fault.Unavailable {
				t.Errorf("answer %d fails with %v", id, answer.Err)
			}
		}
		wait := func(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time
		for id := range int64(4) {                      // a minute after each other
			a.Get(id, at, nil)
			wait(time.Minute)
		}
		expect(0, false)
		expect(1, false)
		expect(2, false) // it was just given up
		expect(3, true)
		a.Get(4, at, nil)
		wait(time.Minute)
		a.Reply(5, "note", nil)
		a.Get(6, at, nil)
		wait(time.Minute)
		expect(4, false)
		synctest.Wait()
		if item, _ := a.Next(); item.Answer == nil || item.Answer.Err != nil || item.Answer.Note != "note" {
			t.Errorf("an answer without data is %v", item.Answer)
		}
		expect(6, true)
	})
}

// TestFirstEventsThatAreNotTaken: the first data of a listen that waits for long is given up, so that it holds no view. When the
// client takes something again, it is told what is there then, before the answer.
func TestFirstEventsThatAreNotTaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		looked bool // the events were looked at, but not taken
		wait   time.Duration
		want   []string
	}{
		{"soon", false, time.Minute, []string{"first 0 /  0", "answer 0 <nil>", "/a 0 /  1", "answer 1 <nil>", "/a 0 / 2", "answer 2 <nil>"}},
		{"late", false, 5 * time.Minute, []string{"first 0 /  0", "answer 0 <nil>", "/a 0 /  2", "answer 1 <nil>", "answer 2 <nil>"}},
		{"looked at, soon", true, time.Minute, []string{"first 0 /  0", "answer 0 <nil>", "/a 0 /  1", "answer 1 <nil>", "/a 0 / 2", "answer 2 <nil>"}},
		{"looked at, late", true, 5 * time.Minute, []string{"first 0 /  0", "answer 0 <nil>", "/a 0 /  2", "answer 1 <nil>", "answer 2 <nil>"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := enginetest.Open(t, store.Options{})
				f.Rule(open)
				f.Patch("/", `{"x/a":1,"first":0}`)
				a := audience.New(f.Database, audience.Options{Wake: func() {}, Now: time.Now})
				defer a.Close()
				a.Listen(0, audience.ListenRequest{Path: enginetest.Path(t, "/first"), Cookie: "first"})
				a.Listen(1, audience.ListenRequest{Path: enginetest.Path(t, "/x/a"), Cookie: "/a"}) // deeper, and so after the first
				var log []string
				next := func() bool {
					item, ok := a.Next()
					if ok {
						log = append(log, describe(t, item))
					}
					return ok
				}
				if c.looked {
					next()
				}
				f.Put("/x/a", "2")
				time.Sleep(c.wait) //nolint:forbidigo // fake time
				synctest.Wait()
				if c.looked != (len(log) == 1) {
					t.Fatalf("at first it is told %q", log)
				}
				for next() {
				}
				a.Reply(2, nil, nil)
				for next() {
				}
				slices.Sort(log)
				slices.Sort(c.want)
				if !slices.Equal(log, c.want) {
					t.Errorf("it is told\n%q\nwant\n%q", log, c.want)
				}
			})
		})
	}
}

// TestFirstEventsHoldNoView: nor does what a scan has found, and two minutes are two minutes.
func TestFirstEventsHoldNoView(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, parameters, told string }{
		{"a node", "", `{"a":{"n":1},"b":{"n":9}}`},
		{"a window with an index", `orderBy="$key"&limitToLast=1`, `{"b":{"n":9}}`},
		{"a window that a scan finds", `orderBy="n"&limitToLast=1`, `{"b":{"n":9}}`},
		{"all children without an index", `orderBy="n"`, `{"a":{"n":1},"b":{"n":9}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := enginetest.Open(t, store.Options{})
				f.Rule(open)
				f.Put("/x", `{"a":{"n":1},"b":{"n":2}}`)
				a := audience.New(f.Database, audience.Options{Wake: func() {}, Now: time.Now})
				defer a.Close()
				before := f.Store.Stats().Views
				a.Listen(0, audience.ListenRequest{Path: enginetest.Path(t, "/first"), Cookie: "first"})
				time.Sleep(time.Minute) //nolint:forbidigo // fake time
				req := audience.ListenRequest{Path: enginetest.Path(t, "/x"), Cookie: "x"}
				if c.parameters != "" {
					req.Query = enginetest.Filtered(t, "/x", c.parameters).Query
				}
				a.Listen(1, req)
				f.Put("/x/b/n", "9")
				synctest.Wait()
				if held := f.Store.Stats().Views - before; held == 0 {
					t.Fatal("the first event holds no view")
				}
				time.Sleep(2*time.Minute + time.Second) //nolint:forbidigo // fake time
				synctest.Wait()
				if held := f.Store.Stats().Views - before; held != 0 {
					t.Errorf("after more than two minutes first events hold %d views", held)
				}
				var log []string
				for item, ok := a.Next(); ok; item, ok = a.Next() {
					log = append(log, describe(t, item))
				}
				want := []string{"first 0 /  null", "x 0 /  " + c.told, "answer 0 <nil>", "answer 1 <nil>"}
				if slices.Sort(log[:min(2, len(log))]); !slices.Equal(log, want) {
					t.Errorf("it is told\n%q\nwant\n%q", log, want)
				}
			})
		})
	}
}

// TestFirstEventsWhileOthersAreLookedAt: a client listens while it is looked which of its listens hold a view for long.
func TestFirstEventsWhileOthersAreLookedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a *audience.Audience
		var isArmed atomic.Bool
		const age = 2 * time.Minute
		f := enginetest.Open(t, store.Options{Now: func() time.Time {
			if isArmed.CompareAndSwap(true, false) { // a listen is judged, and who looks at it next waits
				time.Sleep(time.Millisecond) //nolint:forbidigo // fake time, until that is
				for range 1000 {
					runtime.Gosched()
				}
				a.Listen(1, audience.ListenRequest{Path: enginetest.Path(t, "/b")})
			}
			return time.Now()
		}})
		f.Rule(`{"rules":{".write":true,"a":{".read":"now > 0"},"b":{".read":true}}}`)
		f.Put("/", `{"a":1,"b":2}`)
		a = audience.New(f.Database, audience.Options{Wake: func() {}, Now: time.Now})
		defer a.Close()
		before := f.Store.Stats().Views
		a.Listen(0, audience.ListenRequest{Path: enginetest.Path(t, "/a")})
		for item, ok := a.Next(); ok; item, ok = a.Next() {
			if item.Event != nil {
				content(t, item.Event.Content)
			}
		}
		time.Sleep(age - time.Millisecond) //nolint:forbidigo // fake time
		isArmed.Store(true)
		a.Check()
		f.Put("/b", "3")
		if held := f.Store.Stats().Views - before; isArmed.Load() || held == 0 {
			t.Fatal("the first event holds no view")
		}
		time.Sleep(age + time.Second) //nolint:forbidigo // fake time
		synctest.Wait()
		if held := f.Store.Stats().Views - before; held != 0 {
			t.Errorf("after more than two minutes first events hold %d views", held)
		}
	})
}
