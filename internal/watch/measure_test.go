package watch_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// left is a Done channel of a client that has left.
func left() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// children returns an object of n children in the order of their keys and of a.
func children(n int) string {
	var body strings.Builder
	for i := range n {
		fmt.Fprintf(&body, `,"k%06d":{"a":%d,"text":"child %d"}`, i, i, i)
	}
	return "{" + body.String()[1:] + "}"
}

// TestGrowthWindow: the first watch of a place counts its children, in constant
// memory and while somebody waits; the second one walks over none of them. A read
// over more than a few rows fails once its client has left, so one that succeeds
// then has walked over none.
func TestGrowthWindow(t *testing.T) {
	f := withIndexes(t, store.Options{})
	for _, query := range []string{`orderBy="$key"&limitToFirst=2000000000`, `orderBy="$key"&limitToLast=2000000000`,
		`orderBy="a"&limitToFirst=2000000000`, `orderBy="a"&limitToLast=2000000000`} {
		var first, second []float64
		for _, n := range []int{300, 1200, 4800} {
			f.Do(`PUT /l ` + children(n))
			req := filtered(t, "/l", query)
			req.Wake = func() {}
			open := func() {
				w, _, err := f.Watches().Open(req)
				if err != nil {
					t.Fatal(err)
				}
				w.Close()
			}
			first = append(first, testing.AllocsPerRun(5, open))
			gone := req
			gone.Done = left()
			if _, _, err := f.Watches().Open(gone); !errors.Is(err, state.ErrUnwanted) {
				t.Errorf("%s: the first watch of %d children, whose client left, gives %v, want %v", query, n, err, state.ErrUnwanted)
			}
			w := f.Begin(req)
			second = append(second, testing.AllocsPerRun(5, open))
			if another, _, err := f.Watches().Open(gone); err != nil {
				t.Errorf("%s: the second watch of %d children walks over them: %v", query, n, err)
			} else {
				another.Close()
			}
			w.Close()
		}
		if enginetest.Race {
			continue // which allocates
		}
		if first[2] > 2*first[0] || second[2] > 2*second[0] {
			t.Errorf("%s: at 300, 1,200 and 4,800 children the first watch allocates %v times, the second %v times", query, first, second)
		}
	}
	if watches, places := f.Watches().WatchCounts(); watches != 0 || places != 0 {
		t.Errorf("%d watches at %d places are left", watches, places)
	}
}

// TestLargeWindowIsMeasuredByAWatch: the dispatcher does not count the children of a
// large window. Those who watch read it again, and from then on it moves as before.
func TestLargeWindowIsMeasuredByAWatch(t *testing.T) {
	f := withIndexes(t, store.Options{})
	f.Watches().BoundWindows(1000, 3)
	f.Do(`PUT /l {"a":1,"b":2,"c":3,"d":4,"e":5}`)
	all := filtered(t, "/l", `orderBy="$key"&limitToFirst=6`)
	one, other := f.Watch(all), f.Watch(all)
	for _, w := range []*enginetest.Watcher{one, other} {
		w.Expect()
	}
	f.Do(`PUT /l {"a":1,"b":2,"c":3,"d":4,"x":5}`) // too many to be counted
	const whole = `first {"path":"/","data":{"a":1,"b":2,"c":3,"d":4,"x":5}}`
	one.Expect(whole)
	other.Expect(whole)
	f.Do(`PATCH /l {"e":5,"y":7}`)
	for _, w := range []*enginetest.Watcher{one, other} {
		w.Expect(`patch {"path":"/","data":{"e":5}}`) // y is beyond the limit
	}
	f.Do(`DELETE /l/a`)
	for _, w := range []*enginetest.Watcher{one, other} {
		w.Expect(`patch {"path":"/","data":{"a":null,"y":7}}`)
	}
	if kept := f.Watches().KeptSnapshots(); kept != 0 {
		t.Errorf("%d snapshots are kept when there is nothing to tell", kept)
	}
}

// TestWindowThatBeginsWithinADelivery: a window that is measured while changes wait
// to be handed on is moved from where it was measured. Nobody reads it again.
func TestWindowThatBeginsWithinADelivery(t *testing.T) {
	f := withIndexes(t, store.Options{})
	f.Watches().BoundWindows(1000, 1)
	f.Do(`PUT /l {"a":1,"b":2,"c":3}`)
	held := make(chan struct{})
	reached := make(chan struct{}, 100)
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	blocker := whole(t, "/block")
	blocker.Wake = func() { reached <- struct{}{}; <-held }
	f.Watch(blocker)
	f.Do(`PUT /block 1`)
	<-reached // nothing is handed on from here
	f.Do(`PUT /l/d 4`)
	w := f.Watch(filtered(t, "/l", `orderBy="$key"&limitToLast=3`))
	f.Do(`PUT /l/e 5`)
	release()
	w.Expect(`patch {"path":"/","data":{"b":null,"e":5}}`)
	f.Do(`PUT /l/f 6`)
	w.Expect(`patch {"path":"/","data":{"c":null,"f":6}}`)
	if kept := f.Watches().KeptSnapshots(); kept != 0 {
		t.Errorf("%d snapshots are kept when there is nothing to tell", kept)
	}
}

// TestMeasuringHoldsUpNobody: no deliveries wait while a large window is counted. A watch
// that could only begin while none was taken begins without, and one measures the window
// when there is something to tell.
func TestMeasuringHoldsUpNobody(t *testing.T) {
	f := open(t, store.Options{})
	f.Watches().BoundWindows(1000, 10)
	f.Watches().BeginBetween()
	for i := range 20 {
		f.Do(fmt.Sprintf(`PUT /d/k%02d 1`, i))
	}
	small := f.Watch(filtered(t, "/d", `orderBy="$key"&limitToFirst=2`))
	if n := f.Watches().UnknownWindows(); n != 0 {
		t.Errorf("%d windows of few children are not measured", n)
	}
	large := f.Watch(filtered(t, "/d", `orderBy="$key"&limitToLast=18`))
	if n := f.Watches().UnknownWindows(); n != 1 {
		t.Errorf("%d windows are not measured, want that of 18 children", n)
	}
	f.Do(`PUT /d/k19 2`)
	f.WaitForWatches()
	if events := large.Events(); len(events) != 1 || !strings.HasPrefix(events[0], `first {"path":"/","data":{"k02":1,`) || !strings.HasSuffix(events[0], `"k19":2}}`) {
		t.Errorf("the watch is told %q, want what is there now", events)
	}
	if n := f.Watches().UnknownWindows(); n != 0 {
		t.Errorf("%d windows are not measured after the watch has caught up", n)
	}
	f.Do(`PUT /d/k18 3`)
	f.WaitForWatches()
	large.Expect(`put {"path":"/k18","data":3}`)
	small.Expect()
}
