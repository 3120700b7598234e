package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// This file is about writes that meet: what each is judged on, who is told what
// and when, and that none is lost.

// number returns the integer at a path, 0 for no data.
func (f *fixture) number(at string) int {
	f.T.Helper()
	text := f.Export(at)
	if text == "null" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		f.T.Fatalf("%s is %s, want an integer", at, text)
	}
	return n
}

// request returns the PUT of a body.
func request(t testing.TB, at, body string) engine.Request {
	t.Helper()
	w, err := put(path(t, at), body)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Request{Write: w, Who: admin}
}

const increment = `{".sv":{"increment":1}}`

// padding is more than a write may bring to its turn.
var padding = `"` + strings.Repeat("x", 100<<10) + `"`

// together runs f in n goroutines, with the number of each, and waits for them.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// scale is how much the tests of this file do.
func scale(n int) int {
	if testing.Short() || enginetest.Race {
		return n / 5
	}
	return n
}

func TestConditionalWritesCount(t *testing.T) {
	for beside, each := range map[string]int{"1": 50, padding: 10} {
		t.Run(fmt.Sprintf("beside %.5s", beside), func(t *testing.T) {
			f := open(t, store.Options{})
			f.Put("counter", `{"n":0,"beside":`+beside+`}`)
			var done, refused, unavailable atomic.Int64
			together(16, func(int) {
				for range scale(each) {
					s := f.View()
					tag, err := s.ETag(path(t, "counter"))
					if err != nil {
						t.Error(err)
					}
					n := numberIn(t, s, "counter/n")
					s.Close()
					req := request(t, "counter", fmt.Sprintf(`{"n":%d,"beside":%s}`, n+1, beside))
					req.IfMatch = tag
					switch _, err := f.Write(t.Context(), req); fault.KindOf(err) {
					case fault.Precondition:
						refused.Add(1)
					case fault.Unavailable:
						unavailable.Add(1)
					default:
						if err != nil {
							t.Errorf("a conditional write failed: %v", err)
						}
						done.Add(1)
					}
				}
			})
			if got := f.number("counter/n"); int64(got) != done.Load() || got == 0 {
				t.Errorf("the counter is at %d after %d writes (%d refused, %d given up)", got, done.Load(), refused.Load(), unavailable.Load())
			}
		})
	}
}

func numberIn(t testing.TB, s *state.View, at string) int {
	t.Helper()
	printer, err := s.Printer(path(t, at), tree.Plain)
	if err != nil {
		t.Fatal(err)
	}
	defer printer.Close()
	var text strings.Builder
	if err := printer.PrintTo(&text); err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestIncrementsAddUp(t *testing.T) {
	f := open(t, store.Options{})
	each := scale(25)
	together(64, func(i int) {
		for range each {
			req := request(t, "sums/"+strconv.Itoa(i%4), increment)
			if i%2 == 0 {
				w, err := tree.DecodePatch(strings.NewReader(`{"all":`+increment+`,"`+strconv.Itoa(i%4)+`":`+increment+`}`), path(t, "sums"), tree.DecodeOptions{})
				if err != nil {
					t.Error(err)
				}
				req.Write = w
			}
			if _, err := f.Write(t.Context(), req); err != nil {
				t.Errorf("an increment failed: %v", err)
			}
		}
	})
	if got, want := f.number("sums/all"), 32*each; got != want {
		t.Errorf("%d increments add up to %d", want, got)
	}
	for i := range 4 {
		if got, want := f.number("sums/"+strconv.Itoa(i)), 16*each; got != want {
			t.Errorf("%d increments add up to %d", want, got)
		}
	}
}

// TestPushKeysAreInTheOrderOfCommits also between clients, as long as the nodes
// are small enough to be done at their turn.
func TestPushKeysAreInTheOrderOfCommits(t *testing.T) {
	f := open(t, store.Options{})
	var mu sync.Mutex
	var commits []engine.Commit
	together(32, func(i int) {
		for range scale(25) {
			req := request(t, "messages", strconv.Itoa(i))
			req.Push = true
			commit, err := f.Write(t.Context(), req)
			if err != nil {
				t.Errorf("a POST failed: %v", err)
			}
			mu.Lock()
			commits = append(commits, commit)
			mu.Unlock()
		}
	})
	slices.SortFunc(commits, func(a, b engine.Commit) int { return int(a.Position) - int(b.Position) })
	for i := range commits[1:] {
		if commits[i].Position == commits[i+1].Position || commits[i].Key >= commits[i+1].Key {
			t.Fatalf("commit %d has the key %s, commit %d %s", commits[i].Position, commits[i].Key, commits[i+1].Position, commits[i+1].Key)
		}
	}
}

// TestLargePushes: their keys are made before their turn, so that they may be
// out of order with those of others, but never with the client's own.
func TestLargePushes(t *testing.T) {
	f := open(t, store.Options{})
	var mu sync.Mutex
	keys := map[string]bool{}
	together(8, func(i int) {
		last := ""
		for range scale(20) {
			req := request(t, "messages", []string{`1`, padding}[i%2])
			req.Push = true
			commit, err := f.Write(t.Context(), req)
			if err != nil || commit.Key <= last {
				t.Errorf("a POST after %q gave %q, %v", last, commit.Key, err)
			}
			last = commit.Key
			mu.Lock()
			if keys[last] {
				t.Errorf("the key %s was given twice", last)
			}
			keys[last] = true
			mu.Unlock()
		}
	})
}

// TestHeavyWritesLoseNothing: what is worked out before a write's turn is
// thrown away when the data changed meanwhile.
func TestHeavyWritesLoseNothing(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("a", `{"n":0}`)
	var done, givenUp atomic.Int64
	together(8, func(i int) {
		for range scale(25) {
			req := request(t, "a/n", increment)
			if i%2 == 0 {
				w, err := tree.DecodePatch(strings.NewReader(`{"n":`+increment+`,"pad":`+padding+`}`), path(t, "a"), tree.DecodeOptions{})
				if err != nil {
					t.Error(err)
				}
				req.Write = w
			}
			switch _, err := f.Write(t.Context(), req); {
			case err == nil:
				done.Add(1)
			case fault.KindOf(err) == fault.Unavailable && i%2 == 0:
				givenUp.Add(1)
			default:
				t.Errorf("an increment failed: %v", err)
			}
		}
	})
	if got := f.number("a/n"); int64(got) != done.Load() {
		t.Errorf("%d increments add up to %d (%d were given up)", done.Load(), got, givenUp.Load())
	}
}

// A hookedClock is asked for the time whenever a write is judged, and can be
// told to do something first. (The time stands still.)
type hookedClock struct{ hook atomic.Pointer[func()] }

func (c *hookedClock) now() time.Time {
	if hook := c.hook.Swap(nil); hook != nil {
		(*hook)()
	}
	return time.UnixMilli(1_700_000_000_000)
}

// next sets what is done when the next write is judged.
func (c *hookedClock) next(hook func()) { c.hook.Store(&hook) }

// openHooked returns a database whose judgements can be interrupted.
func openHooked(t testing.TB, opts store.Options) (*fixture, *hookedClock) {
	t.Helper()
	f, clock := open(t, opts), &hookedClock{}
	id, _, err := f.Store.Find("db")
	if err != nil {
		t.Fatal(err)
	}
	f.Clock = state.NewClock(clock.now, zeros{}, 0)
	if f.Database, err = enginetest.OpenDatabase(f.Store, id, engine.Options{Clock: f.Clock}); err != nil {
		t.Fatal(err)
	}
	return f, clock
}

// zeros is as random as these tests need.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// An answer is what a write came to, once it has.
type answer struct {
	engine.Commit
	err  error
	done atomic.Bool
}

// start makes a write in another goroutine.
func (f *fixture) start(ctx context.Context, req engine.Request) *answer {
	a := &answer{}
	go func() {
		a.Commit, a.err = f.Write(ctx, req)
		a.done.Store(true)
	}()
	return a
}

func TestHeavyWriteGivesUpWhenTheDataKeepsChanging(t *testing.T) {
	f, clock := openHooked(t, store.Options{})
	rounds := 0
	var disturb func()
	disturb = func() {
		rounds++
		f.Put("a/n", `{".sv":{"increment":100}}`)
		clock.next(disturb)
	}
	clock.next(disturb)
	_, err := f.Write(t.Context(), request(t, "a", `{"n":`+increment+`,"pad":`+padding+`}`))
	clock.hook.Store(nil)
	if fault.KindOf(err) != fault.Unavailable {
		t.Errorf("the write that was always too late: %v, want unavailable", err)
	}
	if got := f.Export("a"); got != fmt.Sprintf(`{"n":%d}`, rounds*100) || rounds < 2 {
		t.Errorf("after %d rounds /a is %.60s, want only what the others wrote", rounds, got)
	}
}

// TestHeavyWriteIsJudgedByTheRulesOfItsTurn: it was allowed when it was
// prepared, but is not any more.
func TestHeavyWriteIsJudgedByTheRulesOfItsTurn(t *testing.T) {
	f, clock := openHooked(t, store.Options{})
	if _, err := f.SetRules(t.Context(), state.OpenRules); err != nil {
		t.Fatal(err)
	}
	clock.next(func() {
		if _, err := f.SetRules(t.Context(), state.ClosedRules); err != nil {
			t.Error(err)
		}
	})
	req := request(t, "a", padding)
	req.Who = auth.Identity{}
	if _, err := f.Write(t.Context(), req); fault.KindOf(err) != fault.Denied {
		t.Errorf("a write under rules that do not allow it any more: %v, want denied", err)
	}
	if got := f.Export("a"); got != "null" {
		t.Errorf("/a is %.20s, want null", got)
	}
}

func TestCancelledWriteIsNeverApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, clock := openHooked(t, store.Options{})
		goOn := make(chan struct{})
		clock.next(func() { <-goOn })
		first := f.start(t.Context(), request(t, "a", `1`))
		synctest.Wait() // it has its turn
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := f.start(ctx, request(t, "b", `2`))
		last := f.start(t.Context(), request(t, "c", `3`))
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !cancelled.done.Load() || fault.KindOf(cancelled.err) != fault.Unavailable || !errors.Is(cancelled.err, context.Canceled) {
			t.Errorf("a write that was cancelled while it waited: %v, %v; want unavailable at once", cancelled.done.Load(), cancelled.err)
		}
		if first.done.Load() || last.done.Load() {
			t.Error("a write was answered before its turn")
		}
		close(goOn)
		synctest.Wait()
		if first.err != nil || last.err != nil || f.Export("/") != `{"a":1,"c":3}` {
			t.Errorf("the other writes: %v, %v; the tree is %s", first.err, last.err, f.Export("/"))
		}
	})
}

// TestWriteOfWhoHasGone: it is not even queued.
func TestWriteOfWhoHasGone(t *testing.T) {
	f := open(t, store.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, body := range map[string]string{"a write": `1`, "a heavy one": `{"b":` + padding + `}`} {
		if _, err := f.Write(ctx, request(t, "a", body)); fault.KindOf(err) != fault.Unavailable || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want unavailable", name, err)
		}
	}
	snapshot := f.View()
	defer snapshot.Close()
	if got := f.Export("/"); got != "null" || snapshot.Position != 0 {
		t.Errorf("the tree is %.40s at %d, want nothing", got, snapshot.Position)
	}
}

// A blockedDisk holds syncs up until it is released.
type blockedDisk struct {
	waiting atomic.Int64
	release chan struct{}
}

func (b *blockedDisk) sync() {
	b.waiting.Add(1)
	<-b.release
}

// openBlocked returns a database that is empty, and on which nothing becomes
// durable until the disk is released.
func openBlocked(t testing.TB) (*fixture, *blockedDisk) {
	disk := &blockedDisk{release: make(chan struct{})}
	return open(t, store.Options{SlowSync: disk.sync}), disk
}

func TestNothingIsToldBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, disk := openBlocked(t)
		first := f.start(t.Context(), request(t, "n", increment))
		synctest.Wait()
		second := f.start(t.Context(), request(t, "n", increment))
		conditional := request(t, "n", `7`)
		conditional.IfMatch = state.NullETag
		refused := f.start(t.Context(), conditional)
		nothing := f.start(t.Context(), engine.Request{Write: tree.Write{Patch: true}, Who: admin})
		synctest.Wait()
		if disk.waiting.Load() != 1 {
			t.Fatalf("%d syncs have begun, want 1", disk.waiting.Load())
		}
		for what, a := range map[string]*answer{
			"a write": first, "a write on top of it": second, "a refusal because of it": refused, "a write of nothing": nothing,
		} {
			if a.done.Load() {
				t.Errorf("%s was answered before the sync: %v", what, a.err)
			}
		}
		s := f.View()
		if got := f.Export("/"); got != "null" || s.Position != 0 {
			t.Errorf("before the sync the tree is %s at position %d", got, s.Position)
		}
		s.Close()

		disk.release <- struct{}{} // the first, alone in its group
		synctest.Wait()
		if !first.done.Load() || first.err != nil || f.Export("n") != "1" {
			t.Errorf("after its sync the first write: %v, %v, /n is %s", first.done.Load(), first.err, f.Export("n"))
		}
		if second.done.Load() || refused.done.Load() || nothing.done.Load() {
			t.Error("after the sync of the first write another one was answered too")
		}
		close(disk.release)
		synctest.Wait()
		if second.err != nil || f.Export("n") != "2" {
			t.Errorf("the second write: %v, /n is %s, want 2", second.err, f.Export("n"))
		}
		if fault.KindOf(refused.err) != fault.Precondition || nothing.err != nil || nothing.Position != 0 {
			t.Errorf("the refusal: %v; the write of nothing: %v at %d", refused.err, nothing.err, nothing.Position)
		}
	})
}

func TestDeadlineWhileTheDiskWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, disk := openBlocked(t)
		f.Reopen(engine.Options{Clock: f.Clock, Deadline: engine.DefaultDeadline})
		begun := time.Now()
		_, err := f.Write(t.Context(), request(t, "a", `1`))
		if fault.KindOf(err) != fault.Unknown {
			t.Errorf("a write that is not confirmed in time: %v, want unknown", err)
		}
		if waited := time.Since(begun); waited != engine.DefaultDeadline {
			t.Errorf("the write waited for %v, want %v", waited, engine.DefaultDeadline)
		}
		if got := f.Export("/"); got != "null" {
			t.Errorf("the tree is %s before the sync", got)
		}
		close(disk.release)
		synctest.Wait()
		if got := f.Export("/"); got != `{"a":1}` {
			t.Errorf("the tree is %s after the sync, want the write of unknown outcome", got)
		}
	})
}

// TestAbandonedHeavyWrite: what was prepared for it must not be freed under the
// hands of the writer.
func TestAbandonedHeavyWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, disk := openBlocked(t)
		ctx, cancel := context.WithCancel(t.Context())
		heavy := f.start(ctx, request(t, "a", `{"b":`+padding+`}`))
		synctest.Wait()
		cancel()
		synctest.Wait()
		if fault.KindOf(heavy.err) != fault.Unknown {
			t.Errorf("a heavy write that was left alone: %v, want unknown", heavy.err)
		}
		close(disk.release)
		synctest.Wait()
		if got := f.Export("a/b"); got != padding {
			t.Errorf("/a/b is %.20s, want what was written", got)
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	const bound = 4096
	synctest.Test(t, func(t *testing.T) {
		f, clock := openHooked(t, store.Options{})
		goOn := make(chan struct{})
		clock.next(func() { <-goOn })
		f.start(t.Context(), request(t, "n", increment))
		synctest.Wait()
		req := request(t, "n", increment)
		for range bound {
			f.start(t.Context(), req)
		}
		synctest.Wait()
		if _, err := f.Write(t.Context(), req); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a write behind %d others: %v, want unavailable at once", bound, err)
		}
		close(goOn)
		synctest.Wait()
		if got := f.number("n"); got != 1+bound {
			t.Errorf("%d of %d writes that were queued are done", got, 1+bound)
		}
	})
}

func TestCloseEndsWrites(t *testing.T) {
	f := open(t, store.Options{})
	var done atomic.Int64
	var wg sync.WaitGroup
	begun := make(chan struct{}, 16)
	for range 16 {
		wg.Go(func() {
			for first := true; ; first = false {
				_, err := f.Write(context.Background(), request(t, "n", increment))
				if first {
					begun <- struct{}{}
				}
				if err != nil {
					if fault.KindOf(err) != fault.Unavailable {
						t.Errorf("a write while the database is closed: %v, want unavailable", err)
					}
					return
				}
				done.Add(1)
			}
		})
	}
	for range 16 {
		<-begun
	}
	f.Close()
	wg.Wait()
	if got := f.number("n"); int64(got) != done.Load() {
		t.Errorf("%d writes were acknowledged, %d are there", done.Load(), got)
	}
	if _, err := f.Write(t.Context(), request(t, "n", increment)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a write after Close: %v, want unavailable", err)
	}
	f.Close() // once more
}
