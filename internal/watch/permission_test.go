package watch_test

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

// A handClock is a clock that is set by hand.
type handClock struct {
	start  time.Time // not before the newest commit: the clock of a database does not go back
	offset atomic.Int64
}

func (c *handClock) now() time.Time          { return c.start.Add(time.Duration(c.offset.Load())) }
func (c *handClock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// openWith opens a database with options for its watches.
func openWith(t *testing.T, opts store.Options, budget *hub.Budget, clock *handClock) *fixture {
	t.Helper()
	f := open(t, opts)
	clock.start = time.UnixMilli(f.Store.LastMillis())
	f.reopen(budget, clock.now)
	return f
}

// reopen opens the database again, with options for its watches.
func (f *fixture) reopen(budget *hub.Budget, now func() time.Time) {
	f.T.Helper()
	f.Database.Close()
	id, _, err := f.Store.Find("db")
	if err != nil {
		f.T.Fatal(err)
	}
	f.Clock = state.NewClock(now, rand.Reader, f.Store.LastMillis())
	verifier, err := auth.New(auth.Options{Now: now})
	if err != nil {
		f.T.Fatal(err)
	}
	f.Database, err = engine.Open(f.Store, id, engine.Options{Clock: f.Clock, Streams: budget, Verifier: verifier})
	if err != nil {
		f.T.Fatal(err)
	}
}

func as(who auth.Identity, req watch.Request) watch.Request {
	req.Who = who
	return req
}

func TestWatchIsJudgedLikeARead(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {"open": {".read": true}, "list": {".read": "query.limitToLast <= 2"}}}`)
	for _, c := range []struct {
		req     watch.Request
		allowed bool
	}{
		{whole(t, "/open/x"), true},
		{whole(t, "/"), false},
		{whole(t, "/list"), false},
		{filtered(t, "/list", `orderBy="$key"&limitToLast=2`), true},
		{filtered(t, "/list", `orderBy="$key"&limitToLast=3`), false},
	} {
		c.req.Who, c.req.Wake = auth.Identity{}, func() {}
		w, _, err := f.Watches().Open(c.req)
		if denied(err) == c.allowed {
			t.Errorf("watching %s: %v, want it allowed: %v", c.req.Path, err, c.allowed)
		}
		if w != nil {
			w.Close()
		}
	}
	if watches, places := f.Watches().WatchCounts(); watches != 0 || places != 0 {
		t.Errorf("%d watches and %d places are left", watches, places)
	}
}

func TestCancelWhenRulesChange(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {".read": true}}`)
	nobody := auth.Identity{}
	w, window := f.Watch(as(nobody, whole(t, "/a"))), f.Watch(as(nobody, filtered(t, "/l", `orderBy="$key"`)))
	other, boss := f.Watch(as(nobody, whole(t, "/b"))), f.Watch(whole(t, "/a"))
	f.Do(`PUT /a 1`)
	f.WaitForWatches()
	f.Rule(`{"rules": {"b": {".read": true}}}`)
	f.WaitForWatches()
	f.Do(`PUT /a 2`)
	f.Do(`PUT /b 2`)
	f.Do(`PUT /l/x 2`)
	w.Expect(`put {"path":"/","data":1}`, "cancel")
	w.Expect()
	window.Expect("cancel")
	other.Expect(`put {"path":"/","data":2}`)
	boss.Expect(`put {"path":"/","data":1}`, `put {"path":"/","data":2}`)
}

// TestCancelWhenDataChange: the rules read data, which changes, in one commit with
// what must not be told any more.
func TestCancelWhenDataChange(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {"secret": {".read": "root.child('members').child(auth.uid).val() === true"}}}`)
	f.Do(`PUT / {"members":{"ann":true,"ben":true},"secret":1}`)
	ann, ben := f.Watch(as(user(t, `{"uid":"ann"}`), whole(t, "/secret"))), f.Watch(as(user(t, `{"uid":"ben"}`), whole(t, "/secret")))
	f.Do(`PUT /secret 2`)
	f.WaitForWatches()
	f.Do(`PATCH / {"members/ann":null,"secret":3}`)
	f.WaitForWatches()
	f.Do(`PUT /secret 4`)
	ann.Expect(`put {"path":"/","data":2}`, "cancel")
	ben.Expect(`put {"path":"/","data":2}`, `put {"path":"/","data":3}`, `put {"path":"/","data":4}`)
	f.Do(`DELETE /members`)
	f.Do(`PUT /secret 5`)
	ben.Expect("cancel")

	f.Do(`PUT /members/ben true`)
	again := f.Watch(as(user(t, `{"uid":"ben"}`), whole(t, "/secret")))
	f.Do(`PUT / {"secret":6}`) // above both
	again.Expect("cancel")
}

func TestRevokedAtExpiry(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, nil, clock)
	f.Rule(`{"rules": {".read": true}}`)
	who := user(t, `{"uid":"ann"}`)
	who.Expires = clock.now().Add(time.Hour)
	w := f.Watch(as(who, whole(t, "/")))
	f.Do(`PUT /a 1`)
	w.Expect(`put {"path":"/a","data":1}`)
	clock.advance(time.Hour + time.Second)
	w.Expect("auth_revoked")
	f.Do(`PUT /a 2`)
	w.Expect()
}

// TestExpiryWhenTheClockWasSetBack: commits have times ahead of that of the machine
// then, but tokens are as good as in any other request.
func TestExpiryWhenTheClockWasSetBack(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, nil, clock)
	f.Rule(`{"rules": {".read": true}}`)
	clock.advance(24 * time.Hour)
	f.Do(`PUT /a 1`)
	clock.advance(-24 * time.Hour)
	who := user(t, `{"uid":"ann"}`)
	who.Expires = clock.now().Add(time.Hour)
	w := f.Watch(as(who, whole(t, "/")))
	f.Do(`PUT /a 2`)
	w.Expect(`put {"path":"/a","data":2}`)
	clock.advance(time.Hour)
	w.Expect("auth_revoked")
}

func TestRevokedByTheTimer(t *testing.T) {
	// The clock of the database stands still, so that it is the timer that revokes,
	// and the first event is told however late it is taken.
	f := openWith(t, store.Options{}, nil, &handClock{})
	f.Rule(`{"rules": {".read": true}}`)
	who := user(t, `{"uid":"ann"}`)
	who.Expires = time.Now().Add(20 * time.Millisecond)
	woken := make(chan struct{}, 10)
	req := as(who, whole(t, "/"))
	req.Wake = func() { woken <- struct{}{} }
	w := f.Watch(req)
	<-woken // nobody writes
	w.Expect("auth_revoked")
}

func TestRevokedWhenTheSecretChanges(t *testing.T) {
	ctx := context.Background()
	f := open(t, store.Options{})
	if err := f.SetSecrets(ctx, "first", "second"); err != nil {
		t.Fatal(err)
	}
	watch := func(secret string) *enginetest.Watcher {
		who, err := f.Identify(ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		return f.Watch(as(who, whole(t, "/")))
	}
	first, second := watch("first"), watch("second")
	if err := f.SetSecrets(ctx, "second", "third"); err != nil {
		t.Fatal(err)
	}
	f.WaitForWatches()
	f.Do(`PUT /a 1`)
	first.Expect("auth_revoked")
	second.Expect(`put {"path":"/a","data":1}`)
}

func TestRecheckOfTheTime(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, nil, clock)
	f.Rule(`{"rules": {"timed": {".read": "now < root.child('end').val()"}, "free": {".read": true}}}`)
	end := clock.now().Add(time.Hour).UnixMilli()
	f.Do(`PUT /end ` + string(appendInt(end)))
	timed, free := f.Watch(as(auth.Identity{}, whole(t, "/timed"))), f.Watch(as(auth.Identity{}, whole(t, "/free")))
	timed.Recheck()
	timed.Expect()
	clock.advance(2 * time.Hour)
	timed.Expect() // nobody looks yet
	timed.Recheck()
	free.Recheck()
	timed.Expect("cancel")
	free.Expect()
}

// TestRecheckBeforeTheFirstEvent: what a watch has not been told when its time is over, it is
// not told.
func TestRecheckBeforeTheFirstEvent(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, nil, clock)
	f.Rule(`{"rules": {"timed": {".read": "now < root.child('end').val()"}}}`)
	f.Do(`PUT /end ` + string(appendInt(clock.now().Add(time.Hour).UnixMilli())))
	req := as(auth.Identity{}, whole(t, "/timed"))
	req.Wake = func() {}
	w, _, err := f.Watches().Open(req)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if !w.Recheck() {
		t.Error("a watch that is allowed does not go on")
	}
	clock.advance(2 * time.Hour)
	if w.Recheck() {
		t.Error("a watch whose time is over goes on")
	}
	if e, ok := w.Next(); !ok || e.Kind != watch.Cancel {
		t.Errorf("it is told %v %v, want cancel and nothing else", e, ok)
	}
}

func TestCloseEndsWatches(t *testing.T) {
	f := open(t, store.Options{})
	w := f.Watch(whole(t, "/"))
	f.Do(`PUT /a 1`)
	f.WaitForWatches()
	f.Database.Close()
	w.Expect(`put {"path":"/a","data":1}`, "end")
	req := whole(t, "/")
	req.Wake = func() {}
	if _, _, err := f.Watches().Open(req); err == nil {
		t.Error("a closed database lets itself be watched")
	}
	w.Close()
	w.Close()
	if watches, places := f.Watches().WatchCounts(); watches != 0 || places != 0 {
		t.Errorf("%d watches and %d places are left", watches, places)
	}
}

// TestWatchWithASecretThatWasJustRemoved: a request may be on its way while its
// secret is taken away. Nobody would judge its watch again.
func TestWatchWithASecretThatWasJustRemoved(t *testing.T) {
	f := open(t, store.Options{})
	if err := f.SetSecrets(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	who, err := f.Identify(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SetSecrets(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Watches().Open(as(who, whole(t, "/"))); fault.KindOf(err) != fault.Unauthenticated {
		t.Errorf("a watch with a secret that is gone: %v, want unauthenticated", err)
	}
}

// TestRecheckForgetsWhatHasPassed: a permission by rules that read something else with the time does
// not come to rest on all that they have ever read.
func TestRecheckForgetsWhatHasPassed(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, nil, clock)
	f.Rule(`{"rules": {"timed": {".read": "root.child('shut/' + (now - now % 60000)).val() !== true"}}}`)
	req := as(auth.Identity{}, whole(t, "/timed"))
	req.Wake = func() {}
	w, _, err := f.Watches().Open(req)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 100 {
		clock.advance(time.Minute)
		if !w.Recheck() {
			t.Fatal("a watch that is allowed does not go on")
		}
	}
	if most, got := 2, w.Reads(); got > most {
		t.Errorf("the permission rests on %d paths, want %d at most", got, most)
	}
	minute := clock.now().UnixMilli()
	f.Do(`PUT /shut/` + string(appendInt(minute-minute%60_000)) + ` true`)
	f.WaitForWatches()
	for e, ok := w.Next(); e == nil || e.Kind != watch.Cancel; e, ok = w.Next() {
		if !ok {
			t.Fatal("a watch goes on that data has shut")
		}
	}
}
