package watch_test

import (
	"fmt"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

const mib = 1 << 20

// maxRejudged is 50 ms, in steps of the dispatcher for one delivery.
const maxRejudged = 1_000_000

// TestHeavyRulesDoNotHoldUpDeliveries: many watches whose rule looks at a long string rest
// on data that changes. The dispatcher leaves them to themselves; each is judged before it
// is told anything.
func TestHeavyRulesDoNotHoldUpDeliveries(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("users/eve/name", `"`+strings.Repeat("a", mib)+`"`)
	f.Put("gate", "1")
	f.Put("d", `{"n":1}`)
	f.Rule(`{"rules":{"chat":{".read":true},
		"d":{".read":"root.child('users').child(auth.uid).child('name').val().length > 5 && root.child('gate').val() === 1"}}}`)
	eve := user(t, `{"uid":"eve"}`)
	var heavy []*enginetest.Watcher
	for i := range 20 {
		heavy = append(heavy, f.Watch(as(eve, filtered(t, "/d", fmt.Sprintf(`orderBy="$key"&limitToFirst=%d`, i+1)))))
	}
	chat := f.Watch(as(auth.Identity{}, whole(t, "/chat")))

	f.Do(`PATCH / {"gate":1,"d/n":2,"chat":"hello"}`)
	f.WaitForWatches()
	if steps := f.Watches().RejudgeSteps(); steps > maxRejudged {
		t.Errorf("a delivery took %d steps of rules, want at most %d", steps, maxRejudged)
	}
	chat.Expect(`put {"path":"/","data":"hello"}`)
	for _, w := range heavy {
		w.Expect(`first {"path":"/","data":{"n":2}}`)
	}
	f.Do(`PATCH / {"gate":2,"d/n":3,"chat":"again"}`)
	f.WaitForWatches()
	f.Do(`PUT /d/n 4`)
	f.WaitForWatches()
	chat.Expect(`put {"path":"/","data":"again"}`)
	for _, w := range heavy {
		w.Expect("cancel")
	}
}

// TestLeftUnjudgedRestsOnWhatItReadsNow: a watch that was left to itself was allowed by
// other data than before, and ends when that changes.
func TestLeftUnjudgedRestsOnWhatItReadsNow(t *testing.T) {
	f := open(t, store.Options{})
	f.Watches().BoundRejudging(1, 1, 0, 0)
	f.Do(`PUT / {"a":true,"b":true,"d":1}`)
	f.Rule(`{"rules":{"d":{".read":"root.child('a').val() === true || root.child('b').val() === true"}}}`)
	w := f.Watch(as(user(t, `{"uid":"ann"}`), whole(t, "/d")))
	f.Do(`PUT /a false`)
	f.WaitForWatches()
	w.Expect(`first {"path":"/","data":1}`) // it was judged, by b
	f.Do(`PATCH / {"b":false,"d":2}`)
	f.WaitForWatches()
	f.Do(`PUT /d 3`)
	w.Expect("cancel")
}

// TestManyCheapWatches: watches with ordinary rules are judged in the dispatcher as before,
// beside those of somebody who has taken all the time for expensive ones.
func TestManyCheapWatches(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("users/eve/name", `"`+strings.Repeat("a", 256<<10)+`"`)
	f.Put("gate", "1")
	f.Rule(`{"rules":{"d":{".read":"root.child('users').child(auth.uid).child('name').val() != '' && root.child('gate').exists()"},
		"c":{".read":"root.child('gate').exists()"}}}`)
	for i := range 60 {
		f.Watch(as(user(t, `{"uid":"eve"}`), whole(t, fmt.Sprintf("/d/%d", i))))
	}
	var cheap []*enginetest.Watcher
	for i := range 500 {
		cheap = append(cheap, f.Watch(as(auth.Identity{}, whole(t, fmt.Sprintf("/c/%d", i)))))
	}
	_, before := f.Watches().WatchTroubles()
	f.Do(`PUT /gate 2`)
	f.WaitForWatches()
	if steps := f.Watches().RejudgeSteps(); steps > maxRejudged {
		t.Errorf("a delivery took %d steps of rules, want at most %d", steps, maxRejudged)
	}
	for _, w := range cheap {
		w.Expect()
	}
	if _, after := f.Watches().WatchTroubles(); after != before {
		t.Errorf("%d cheap watches were told again what is there, want none", after-before)
	}
}

// TestHeavyRuleOnABusyDatabase: a watch is not judged at length while deliveries wait.
func TestHeavyRuleOnABusyDatabase(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("long", `"`+strings.Repeat("a", 10*mib)+`"`)
	f.Rule(`{"rules":{"d":{".read":"root.child('long').val().length > 5"}}}`)
	req := as(user(t, `{"uid":"eve"}`), whole(t, "/d"))
	req.Wake = func() {}
	f.Watches().BeginBetween()
	if _, _, err := f.Watches().Open(req); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a watch that must begin while deliveries wait: %v, want unavailable", err)
	}
	if watches, places := f.Watches().WatchCounts(); watches != 0 || places != 0 {
		t.Errorf("%d watches and %d places are left", watches, places)
	}
}

// TestLeftUnjudgedWhenTimeHasPassed: by now the permission rests on other data, which the
// change log cannot know.
func TestLeftUnjudgedWhenTimeHasPassed(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, nil, clock)
	f.Watches().BoundRejudging(1, 1, 0, 0)
	f.Do(`PUT / {"a":true,"b":true,"d":1}`)
	f.Rule(fmt.Sprintf(`{"rules":{"d":{".read":"root.child(now < %d ? 'a' : 'b').val() === true"}}}`, clock.start.UnixMilli()+60_000))
	w := f.Watch(as(user(t, `{"uid":"ann"}`), whole(t, "/d")))
	clock.advance(time.Hour)
	f.Do(`PUT /a false`)
	f.WaitForWatches()
	w.Expect(`first {"path":"/","data":1}`) // it was judged, by b
	f.Do(`PATCH / {"b":false,"d":2}`)
	f.WaitForWatches()
	w.Expect("cancel")
}

// TestWatchesAlikeAreJudgedOnce: for all watches of a user at a place, in a delivery.
func TestWatchesAlikeAreJudgedOnce(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("long", `"`+strings.Repeat("a", 100<<10)+`"`)
	f.Rule(`{"rules":{"d":{".read":"root.child('long').val().length > 5 && root.child('gate').val() !== 'shut'"}}}`)
	var all []*enginetest.Watcher
	for _, who := range []auth.Identity{user(t, `{"uid":"ann"}`), user(t, `{"uid":"ben"}`)} {
		for range 50 {
			all = append(all, f.Watch(as(who, whole(t, "/d"))))
		}
	}
	f.Do(`PUT /gate "open"`)
	f.WaitForWatches()
	if steps := f.Watches().RejudgeSteps(); steps > 40_000 {
		t.Errorf("100 watches of two users took %d steps, want those of two", steps)
	}
	f.Do(`PUT /gate "shut"`)
	for _, w := range all {
		w.Expect("cancel")
	}
}

// TestWatchesAlikeAreJudgedOnceAside: also those that the dispatcher left unjudged.
func TestWatchesAlikeAreJudgedOnceAside(t *testing.T) {
	synctest.Test(t, watchesAlike) // a watch waits for some seconds, which a busy machine may need
}

func watchesAlike(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("long", `"`+strings.Repeat("a", mib)+`"`)
	f.Rule(`{"rules":{"d":{".read":"root.child('long').val().length > 5 && root.child('gate').val() !== 'shut'"}}}`)
	var all []*enginetest.Watcher
	for range 10 {
		all = append(all, f.Watch(as(auth.Identity{}, whole(t, "/d"))))
	}
	f.Do(`PUT /gate "shut"`)
	f.WaitForWatches()
	waiting, release := f.Watches().HoldAside(auth.Identity{})
	before := f.Watches().DeniedReads()
	var told sync.WaitGroup
	for _, w := range all {
		told.Go(func() { w.Expect("cancel") })
	}
	synctest.Wait()
	if n := waiting(); n != len(all) {
		t.Errorf("%d watches of %d wait to be judged", n, len(all))
	}
	release()
	told.Wait()
	if denied := f.Watches().DeniedReads() - before; denied != 1 {
		t.Errorf("%d watches of one user that waited were judged %d times, want once", len(all), denied)
	}
}

// TestRecheckOfAHeavyRule: when it must be made while deliveries wait, it does not take long.
func TestRecheckOfAHeavyRule(t *testing.T) {
	f := open(t, store.Options{})
	var hook atomic.Pointer[func()] // is called when somebody asks for the time
	f.reopen(nil, func() time.Time {
		if f := hook.Swap(nil); f != nil {
			(*f)()
		}
		return time.Now()
	})
	f.Put("long", `"`+strings.Repeat("a", 10*mib)+`"`)
	f.Rule(`{"rules":{"d":{".read":"now > 0 && root.child('long').val().length > 5"}}}`)
	w := f.Watch(as(user(t, `{"uid":"eve"}`), whole(t, "/d")))
	w.Recheck()
	w.Expect() // it was judged aside
	disturbed := 0
	var disturb func()
	disturb = func() { // whenever it is judged, but while deliveries wait, the state is too old then
		stack := string(debug.Stack())
		if strings.Contains(stack, "Set).between") {
			return
		}
		if strings.Contains(stack, "Watch).tryRecheck") {
			disturbed++
			f.Put("elsewhere", fmt.Sprint(disturbed))
			f.WaitForWatches()
		}
		hook.Store(&disturb)
	}
	hook.Store(&disturb)
	w.Recheck()
	hook.Store(nil)
	if w.Expect("end"); disturbed < 4 {
		t.Errorf("it was disturbed %d times, want at least 4", disturbed)
	}
}

// TestJudgedAside: one watch of each user at a time, and none waits for ever.
func TestJudgedAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enter, end := watch.Aside(t.Context().Done())
		ann, ben := user(t, `{"uid":"ann"}`), user(t, `{"uid":"ben"}`)
		home := netip.MustParseAddr("192.0.2.1")
		leaveAnn, err := enter(ann, home)
		if err != nil {
			t.Fatal(err)
		}
		if leave, err := enter(ben, home); err != nil {
			t.Errorf("another user waits: %v", err)
		} else {
			leave()
		}
		if _, err := enter(ann, home); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a second watch of a user, which waits for long: %v, want unavailable", err)
		}
		entered := make(chan error)
		go func() {
			leave, err := enter(ann, home)
			if err == nil {
				leave()
			}
			entered <- err
		}()
		synctest.Wait()
		leaveAnn()
		if err := <-entered; err != nil {
			t.Errorf("a second watch of a user, after the first: %v", err)
		}
		if leaveAnn, err = enter(ann, home); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		go end()
		if _, err := enter(ann, home); fault.KindOf(err) != fault.Unavailable || time.Since(began) > 0 {
			t.Errorf("a watch that waits when the database is closed: %v after %v, want unavailable at once", err, time.Since(began))
		}
		leaveAnn()
	})
}

// TestNobodiesAreJudgedAside: those without a uid do not wait for each other if they come
// from different addresses, but not too many are judged at a time.
func TestNobodiesAreJudgedAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enter, _ := watch.Aside(t.Context().Done())
		var mu sync.Mutex
		entered := 0
		try := func(i int) {
			if _, err := enter(auth.Identity{}, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})); err == nil {
				mu.Lock()
				defer mu.Unlock()
				entered++
			}
		}
		for i := range 200 {
			go try(i)
			go try(i)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if entered < 2 || entered > watch.Nobodies {
			t.Errorf("%d of 200 addresses are judged at a time, want several, and at most %d", entered, watch.Nobodies)
		}
	})
}
