package engine_test

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hub"
	"github.com/livetree/livetree/internal/store"
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
	f.Database.Close()
	id, _, err := f.store.Find("db")
	if err != nil {
		t.Fatal(err)
	}
	clock.start = time.UnixMilli(f.store.LastMillis())
	f.clock = engine.NewClock(clock.now, rand.Reader, f.store.LastMillis())
	verifier, err := auth.New(auth.Options{Now: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	f.Database, err = engine.Open(f.store, id, engine.Options{Clock: f.clock, Streams: budget, Verifier: verifier})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func as(who auth.Identity, req engine.WatchRequest) engine.WatchRequest {
	req.Who = who
	return req
}

func TestWatchIsJudgedLikeARead(t *testing.T) {
	f := open(t, store.Options{})
	f.rules(`{"rules": {"open": {".read": true}, "list": {".read": "query.limitToLast <= 2"}}}`)
	for _, c := range []struct {
		req     engine.WatchRequest
		allowed bool
	}{
		{whole(t, "/open/x"), true},
		{whole(t, "/"), false},
		{whole(t, "/list"), false},
		{filtered(t, "/list", `orderBy="$key"&limitToLast=2`), true},
		{filtered(t, "/list", `orderBy="$key"&limitToLast=3`), false},
	} {
		c.req.Who, c.req.Wake = auth.Identity{}, func() {}
		w, _, err := f.Watch(c.req)
		if denied(err) == c.allowed {
			t.Errorf("watching %s: %v, want it allowed: %v", c.req.Path, err, c.allowed)
		}
		if w != nil {
			w.Close()
		}
	}
	if watches, places := f.WatchCounts(); watches != 0 || places != 0 {
		t.Errorf("%d watches and %d places are left", watches, places)
	}
}

func TestCancelWhenRulesChange(t *testing.T) {
	f := open(t, store.Options{})
	f.rules(`{"rules": {".read": true}}`)
	nobody := auth.Identity{}
	w, window := f.watch(as(nobody, whole(t, "/a"))), f.watch(as(nobody, filtered(t, "/l", `orderBy="$key"`)))
	other, boss := f.watch(as(nobody, whole(t, "/b"))), f.watch(whole(t, "/a"))
	f.do(`PUT /a 1`)
	f.WaitForWatches()
	f.rules(`{"rules": {"b": {".read": true}}}`)
	f.WaitForWatches()
	f.do(`PUT /a 2`)
	f.do(`PUT /b 2`)
	f.do(`PUT /l/x 2`)
	w.expect(`put {"path":"/","data":1}`, "cancel")
	w.expect()
	window.expect("cancel")
	other.expect(`put {"path":"/","data":2}`)
	boss.expect(`put {"path":"/","data":1}`, `put {"path":"/","data":2}`)
}

// TestCancelWhenDataChange: the rules read data, which changes, in one commit with
// what must not be told any more.
func TestCancelWhenDataChange(t *testing.T) {
	f := open(t, store.Options{})
	f.rules(`{"rules": {"secret": {".read": "root.child('members').child(auth.uid).val() === true"}}}`)
	f.do(`PUT / {"members":{"ann":true,"ben":true},"secret":1}`)
	ann, ben := f.watch(as(user(t, `{"uid":"ann"}`), whole(t, "/secret"))), f.watch(as(user(t, `{"uid":"ben"}`), whole(t, "/secret")))
	f.do(`PUT /secret 2`)
	f.WaitForWatches()
	f.do(`PATCH / {"members/ann":null,"secret":3}`)
	f.WaitForWatches()
	f.do(`PUT /secret 4`)
	ann.expect(`put {"path":"/","data":2}`, "cancel")
	ben.expect(`put {"path":"/","data":2}`, `put {"path":"/","data":3}`, `put {"path":"/","data":4}`)
	f.do(`DELETE /members`)
	f.do(`PUT /secret 5`)
	ben.expect("cancel")

	f.do(`PUT /members/ben true`)
	again := f.watch(as(user(t, `{"uid":"ben"}`), whole(t, "/secret")))
	f.do(`PUT / {"secret":6}`) // above both
	again.expect("cancel")
}

func TestRevokedAtExpiry(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, nil, clock)
	f.rules(`{"rules": {".read": true}}`)
	who := user(t, `{"uid":"ann"}`)
	who.Expires = clock.now().Add(time.Hour)
	w := f.watch(as(who, whole(t, "/")))
	f.do(`PUT /a 1`)
	w.expect(`put {"path":"/a","data":1}`)
	clock.advance(time.Hour + time.Second)
	w.expect("auth_revoked")
	f.do(`PUT /a 2`)
	w.expect()
}

// TestExpiryWhenTheClockWasSetBack: commits have times ahead of that of the machine
// then, but tokens are as good as in any other request.
func TestExpiryWhenTheClockWasSetBack(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, nil, clock)
	f.rules(`{"rules": {".read": true}}`)
	clock.advance(24 * time.Hour)
	f.do(`PUT /a 1`)
	clock.advance(-24 * time.Hour)
	who := user(t, `{"uid":"ann"}`)
	who.Expires = clock.now().Add(time.Hour)
	w := f.watch(as(who, whole(t, "/")))
	f.do(`PUT /a 2`)
	w.expect(`put {"path":"/a","data":2}`)
	clock.advance(time.Hour)
	w.expect("auth_revoked")
}

func TestRevokedByTheTimer(t *testing.T) {
	// The clock of the database stands still, so that it is the timer that revokes,
	// and the first event is told however late it is taken.
	f := openWith(t, store.Options{}, nil, &handClock{})
	f.rules(`{"rules": {".read": true}}`)
	who := user(t, `{"uid":"ann"}`)
	who.Expires = time.Now().Add(20 * time.Millisecond)
	woken := make(chan struct{}, 10)
	req := as(who, whole(t, "/"))
	req.Wake = func() { woken <- struct{}{} }
	w := f.watch(req)
	<-woken // nobody writes
	w.expect("auth_revoked")
}

func TestRevokedWhenTheSecretChanges(t *testing.T) {
	ctx := context.Background()
	f := open(t, store.Options{})
	if err := f.SetSecrets(ctx, "first", "second"); err != nil {
		t.Fatal(err)
	}
	watch := func(secret string) *watcher {
		who, err := f.Identify(ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		return f.watch(as(who, whole(t, "/")))
	}
	first, second := watch("first"), watch("second")
	if err := f.SetSecrets(ctx, "second", "third"); err != nil {
		t.Fatal(err)
	}
	f.WaitForWatches()
	f.do(`PUT /a 1`)
	first.expect("auth_revoked")
	second.expect(`put {"path":"/a","data":1}`)
}

func TestRecheckOfTheTime(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, nil, clock)
	f.rules(`{"rules": {"timed": {".read": "now < root.child('end').val()"}, "free": {".read": true}}}`)
	end := clock.now().Add(time.Hour).UnixMilli()
	f.do(`PUT /end ` + string(appendInt(end)))
	timed, free := f.watch(as(auth.Identity{}, whole(t, "/timed"))), f.watch(as(auth.Identity{}, whole(t, "/free")))
	timed.Recheck()
	timed.expect()
	clock.advance(2 * time.Hour)
	timed.expect() // nobody looks yet
	timed.Recheck()
	free.Recheck()
	timed.expect("cancel")
	free.expect()
}

func TestCloseEndsWatches(t *testing.T) {
	f := open(t, store.Options{})
	w := f.watch(whole(t, "/"))
	f.do(`PUT /a 1`)
	f.WaitForWatches()
	f.Database.Close()
	w.expect(`put {"path":"/a","data":1}`, "end")
	req := whole(t, "/")
	req.Wake = func() {}
	if _, _, err := f.Watch(req); err == nil {
		t.Error("a closed database lets itself be watched")
	}
	w.Close()
	w.Close()
	if watches, places := f.WatchCounts(); watches != 0 || places != 0 {
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
	if _, _, err := f.Watch(as(who, whole(t, "/"))); fault.KindOf(err) != fault.Unauthenticated {
		t.Errorf("a watch with a secret that is gone: %v, want unauthenticated", err)
	}
}
