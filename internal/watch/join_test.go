package watch_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/watch"
)

const roomRules = `{"rules": {"rooms": {"$room": {".read": "data.child('members').child(auth.uid).val() === true"}}}}`

// TestJoinBehindADelivery: a room is made and, after the dispatcher took that
// delivery, gets a member, who listens. In the delivery's state the room has no member.
func TestJoinBehindADelivery(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(roomRules)
	f.Watch(whole(t, "/")) // without any watch nothing is queued
	dispatcher := f.Watches().HoldDispatcher()
	f.Do(`PUT /rooms/r {"name":"red"}`)
	handOn := dispatcher.Take()
	f.Do(`PUT /rooms/r/members/ann true`)
	ann := f.Watch(as(user(t, `{"uid":"ann"}`), whole(t, "/rooms/r")))
	handOn()
	dispatcher.Release()
	f.Do(`PUT /rooms/r/name "blue"`)
	ann.Expect(`put {"path":"/name","data":"blue"}`)
	// What it rests on was not replaced by what it would rest on in the older state.
	f.Do(`PUT /rooms/r/members/ann false`)
	f.Do(`PUT /rooms/r/name "green"`)
	ann.Expect("cancel")
}

// TestJoinBehindOlderSettings: the dispatcher took a delivery whose rules do not
// allow the watch, lack its index, or in which its secret is unknown.
func TestJoinBehindOlderSettings(t *testing.T) {
	ctx := context.Background()
	nobody := auth.Identity{}
	const opened = `{"rules": {".read": true, "l": {".indexOn": "n"}}}`
	for name, c := range map[string]struct {
		older, newer func(f *fixture) error
		request      func(f *fixture) watch.Request
	}{
		"rules": {
			older:   func(f *fixture) error { return setRules(f, `{"rules": {".read": false, "l": {".indexOn": "n"}}}`) },
			newer:   func(f *fixture) error { return setRules(f, opened) },
			request: func(f *fixture) watch.Request { return as(nobody, whole(t, "/a")) },
		},
		"index": {
			older:   func(f *fixture) error { return setRules(f, `{"rules": {".read": true}}`) },
			newer:   func(f *fixture) error { return setRules(f, opened) },
			request: func(f *fixture) watch.Request { return as(nobody, filtered(t, "/l", `orderBy="n"`)) },
		},
		"secret": {
			older: func(f *fixture) error { return f.SetSecrets(ctx, "first") },
			newer: func(f *fixture) error { return f.SetSecrets(ctx, "first", "second") },
			request: func(f *fixture) watch.Request {
				who, err := f.Identify(ctx, "second")
				if err != nil {
					t.Fatal(err)
				}
				return as(who, whole(t, "/a"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, store.Options{})
			f.Rule(opened)
			f.Watch(whole(t, "/"))
			dispatcher := f.Watches().HoldDispatcher()
			if err := c.older(f); err != nil {
				t.Fatal(err)
			}
			handOn := dispatcher.Take()
			if err := c.newer(f); err != nil {
				t.Fatal(err)
			}
			if err := enginetest.WaitForIndexes(ctx, f.Database); err != nil {
				t.Fatal(err)
			}
			w := f.Watch(c.request(f))
			handOn()
			dispatcher.Release()
			w.Expect()
			f.Do(`PATCH / {"a":1,"l/x/n":1}`)
			if told := w.Events(); len(told) != 1 {
				t.Errorf("the watch is told %q, want the write", told)
			}
		})
	}
}

// TestCatchUpBehindADelivery: a watch that has to catch up does so on a state in
// which it may read, while the dispatcher is at an older one in which it may not.
// It was told nothing of the older one, and goes on.
func TestCatchUpBehindADelivery(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {"d": {".read": "root.child(root.child('pointer').val()).val() === true"}}}`)
	f.Do(`PUT / {"pointer":"a","a":true,"b":true,"d":1}`)
	w := f.Watch(as(auth.Identity{}, whole(t, "/d")))
	dispatcher := f.Watches().HoldDispatcher()
	f.Do(`PATCH / {"a":false,"d":"secret"}`)
	handOn := dispatcher.Take()
	f.Do(`PATCH / {"pointer":"b","d":2}`)
	w.Skip()
	if e, ok := w.Next(); !ok || describe(t, e) != `first {"path":"/","data":2}` {
		t.Fatalf("catching up, the watch is told %v", describe(t, e))
	}
	handOn()
	dispatcher.Release()
	w.Expect()
	f.Do(`PUT /a true`)
	f.Do(`PUT /d 3`)
	w.Expect(`put {"path":"/","data":3}`)
	// It rests on what it rests on in the state that it caught up on.
	f.Do(`PATCH / {"b":false,"d":"secret"}`)
	w.Expect("cancel")
}

// TestCatchUpWithASecretThatWasRemoved: the dispatcher has not yet come to that.
func TestCatchUpWithASecretThatWasRemoved(t *testing.T) {
	ctx := context.Background()
	f := open(t, store.Options{})
	if err := f.SetSecrets(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	who, err := f.Identify(ctx, "first")
	if err != nil {
		t.Fatal(err)
	}
	w := f.Watch(as(who, whole(t, "/")))
	dispatcher := f.Watches().HoldDispatcher()
	if err := f.SetSecrets(ctx, "second"); err != nil {
		t.Fatal(err)
	}
	f.Do(`PUT /a "not for the first"`)
	w.Skip()
	if e, ok := w.Next(); !ok || describe(t, e) != "auth_revoked" {
		t.Errorf("catching up, the watch is told %v, want auth_revoked", describe(t, e))
	}
	dispatcher.Release()
}

// TestRecheckRestsOnMore: with the time, the permission comes to rest on data that
// it did not rest on before.
func TestRecheckRestsOnMore(t *testing.T) {
	clock := &handClock{}
	f := openWith(t, store.Options{}, nil, clock)
	end := clock.now().Add(time.Hour).UnixMilli()
	f.Rule(fmt.Sprintf(`{"rules": {"d": {".read": "now < %d || root.child('gate').val() === 'open'"}}}`, end))
	f.Do(`PUT / {"gate":"open","d":1}`)
	w := f.Watch(as(auth.Identity{}, whole(t, "/d")))
	clock.advance(2 * time.Hour)
	w.Recheck()
	w.Expect()
	f.Do(`PATCH / {"gate":"shut","d":"secret"}`)
	w.Expect("cancel")
}

// TestPriorityNeedsNoIndex: a watch of a priority, with a query that selects nothing
// from it, begins without an index and is not cancelled for the lack of one.
func TestPriorityNeedsNoIndex(t *testing.T) {
	f := open(t, store.Options{})
	f.Rule(`{"rules": {".read": true}}`)
	req := as(auth.Identity{}, filtered(t, "/l", `orderBy="n"`))
	req.Priority = true
	w := f.Watch(req)
	f.Rule(`{"rules": {".read": "true"}}`)
	w.Expect()
}

// TestMembersAreNotCancelled makes rooms, adds a member and lets it listen, each
// when the one before was acknowledged, while others open and close watches.
func TestMembersAreNotCancelled(t *testing.T) {
	rooms := 500
	if enginetest.Race || testing.Short() {
		rooms = 100
	}
	f := open(t, store.Options{})
	f.Rule(roomRules)
	f.Do(`PUT /rooms/lobby/members/ann true`)
	ann := user(t, `{"uid":"ann"}`)
	var others sync.WaitGroup
	var done atomic.Bool
	for i := range 4 {
		others.Go(func() {
			for n := 0; !done.Load(); n++ {
				w, _, err := f.Watches().Open(watch.Request{Path: path(t, "/rooms/lobby"), Who: ann, Wake: func() {}})
				if err != nil {
					t.Error(err)
					return
				}
				w.Close()
				f.Put(fmt.Sprintf("rooms/lobby/%d", i), strconv.Itoa(n))
			}
		})
	}
	cancelled := 0
	for n := range rooms {
		room := fmt.Sprintf("/rooms/%d", n)
		f.Do(`PUT ` + room + ` {"name":"red"}`)
		f.Do(`PUT ` + room + `/members/ann true`)
		w := f.Begin(as(ann, whole(t, room)))
		last := f.Do(`PUT ` + room + `/name "blue"`)
		for told := false; !told; {
			e, ok := w.Next()
			switch {
			case !ok:
				runtime.Gosched()
				continue
			case e.Kind == watch.Cancel:
				cancelled++
				told = true
			default:
				told = e.Position >= last.Position
			}
			describe(t, e)
		}
		w.Close()
	}
	done.Store(true)
	others.Wait()
	if cancelled > 0 {
		t.Errorf("%d of %d watches were cancelled, want none", cancelled, rooms)
	}
}
