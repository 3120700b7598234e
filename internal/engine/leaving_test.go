package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/leave"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// A leaver is a connection that leaves writes, which are written like requests: PUT /a 1, and
// CANCEL /a.
type leaver struct {
	*engine.Leaving
	f   *fixture
	who auth.Identity
}

func (f *fixture) leaver(who auth.Identity) *leaver { return &leaver{f.NewLeaving(), f, who} }

// ask makes a request.
func (l *leaver) ask(request string) error {
	l.f.T.Helper()
	req, err := leavingRequest(l.Leaving, request)
	if err != nil {
		l.f.T.Fatalf("%s: %v", request, err)
	}
	req.Who = l.who
	commit, err := l.f.Write(context.Background(), req)
	if commit.Position != 0 {
		l.f.T.Errorf("%s has made the commit %d", request, commit.Position)
	}
	return err
}

func leavingRequest(l *engine.Leaving, request string) (engine.Request, error) {
	rest, cancels := strings.CutPrefix(request, "CANCEL")
	if cancels {
		request = "DELETE" + rest
	}
	req, err := enginetest.ParseRequest(request)
	if cancels && err == nil {
		return l.Cancel(req.At, req.Assignments[0].Priority), nil
	}
	return l.Later(req.Write), err
}

func (l *leaver) leave(requests ...string) {
	l.f.T.Helper()
	for _, request := range requests {
		if err := l.ask(request); err != nil {
			l.f.T.Fatalf("%s = %v", request, err)
		}
	}
}

func (l *leaver) run(want engine.Made) {
	l.f.T.Helper()
	if made, err := l.Run(context.Background()); made != want || err != nil {
		l.f.T.Errorf("Run() = %+v, %v, want %+v", made, err, want)
	}
}

// runLeft is what a server does at its start.
func (f *fixture) runLeft(want engine.Made) (problems []error) {
	f.T.Helper()
	made, err := f.RunLeft(context.Background(), engine.LeftReport{Problem: func(err error) { problems = append(problems, err) }})
	if made != want || err != nil {
		f.T.Errorf("RunLeft() = %+v, %v, want %+v", made, err, want)
	}
	return problems
}

// rows returns the rows of what is left, without those of identities if they are not asked for.
func (f *fixture) rows(identities bool) (rows []string) {
	f.T.Helper()
	view := f.Store.View()
	defer view.Release()
	id, _, err := f.Store.Find("db")
	if err != nil {
		f.T.Fatal(err)
	}
	r := view.Tree(id).Reader()
	err = r.Left("", func(connection string) bool {
		err := r.LeftRows(connection, func(number uint64, value []byte) error {
			if number > 0 || identities {
				rows = append(rows, fmt.Sprintf("%d %q", number, value))
			}
			return nil
		})
		if err != nil {
			f.T.Fatal(err)
		}
		return true
	})
	if err != nil {
		f.T.Fatal(err)
	}
	return rows
}

func (f *fixture) expect(at, want string) {
	f.T.Helper()
	if got := f.Export(at); got != want {
		f.T.Errorf("%s is %s, want %s", at, got, want)
	}
}

// restart is what a kill does: nothing is closed in order. The disk keeps what was synced.
func (f *fixture) restart(disk *vfs.MemFS) *fixture {
	f.T.Helper()
	return open(f.T, store.Options{FS: disk.CrashClone(vfs.CrashCloneCfg{})})
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	everyLimit(t, func(t *testing.T, f *fixture) {
		f.Put("/users/ann", `{"online":true,"visits":3}`)
		w := f.Watch(whole(t, "/users"))
		w.Events()
		before := f.Published().Position
		l := f.leaver(admin)
		l.leave(`PUT /users/ann/online false`, `PATCH /users/ann {"visits":{".sv":{"increment":1}},"seen":{".sv":"timestamp"}}`)
		f.expect("/users/ann", `{"online":true,"visits":3}`)
		w.Expect()
		if after := f.Published().Position; after != before {
			t.Errorf("the position is %d, it was %d: what is left is no commit", after, before)
		}
		f.Put("/users/ann/visits", `5`)
		w.Events()

		now := f.Clock.Millis()
		l.run(engine.Made{Made: 2})
		got := f.Export("/users/ann")
		var seen int64
		if n, err := fmt.Sscanf(got, `{"online":false,"seen":%d,"visits":6}`, &seen); n != 1 || err != nil || seen < now {
			t.Errorf("after it has gone there is %s, want what was left, of the time when it is made", got)
		}
		if events := w.Events(); len(events) != 2 || !strings.Contains(events[0], `/ann/online`) {
			t.Errorf("the events are %q, want one of each write, in order", events)
		}
		if rows := f.rows(true); rows != nil {
			t.Errorf("there are still the rows %q", rows)
		}
		l.run(engine.Made{})
		if err := l.ask(`PUT /a 1`); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("to leave something after it has gone = %v, want unavailable", err)
		}
	})
}

// TestLeavingNothing: a connection that has left nothing writes nothing.
func TestLeavingNothing(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	l := f.leaver(admin)
	l.run(engine.Made{})
	l = f.leaver(admin)
	l.leave(`CANCEL /a`, `PATCH /a {}`)
	if _, err := f.Write(context.Background(), l.Identify()); err != nil {
		t.Error(err)
	}
	if rows := f.rows(true); rows != nil {
		t.Errorf("there are the rows %q", rows)
	}
	l.run(engine.Made{})
	f.runLeft(engine.Made{})
}

// TestLeavingRows: what is left is on disk when that is answered, a row for each write, and
// so is what was taken back.
func TestLeavingRows(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	f := open(t, store.Options{FS: disk})
	l := f.leaver(user(t, `{"uid":"ann"}`))
	f.Rule(`{"rules":{".write":true}}`)
	for _, step := range []struct {
		request string
		want    []string
	}{
		{`PUT /x {"parent":true,"child":1}`, []string{`0 "\x01\x00{\"uid\":\"ann\"}"`, `1 "\x01\x00\x01x\x01\x00\x00\x19{\"child\":1,\"parent\":true}"`}},
		{`PUT /x/child 2`, []string{`0 "\x01\x00{\"uid\":\"ann\"}"`, `1 "\x01\x00\x01x\x01\x00\x00\x19{\"child\":2,\"parent\":true}"`}},
		{`PUT /y 1`, []string{`0 "\x01\x00{\"uid\":\"ann\"}"`, `1 "\x01\x00\x01x\x01\x00\x00\x19{\"child\":2,\"parent\":true}"`, `2 "\x01\x00\x01y\x01\x00\x00\x011"`}},
		{`CANCEL /x/child`, []string{`0 "\x01\x00{\"uid\":\"ann\"}"`, `1 "\x01\x00\x01x\x01\x00\x06parent\x04true"`, `2 "\x01\x00\x01y\x01\x00\x00\x011"`}},
		{`CANCEL /x`, []string{`0 "\x01\x00{\"uid\":\"ann\"}"`, `2 "\x01\x00\x01y\x01\x00\x00\x011"`}},
		{`CANCEL /`, nil},
		{`PUT /z 1`, []string{`0 "\x01\x00{\"uid\":\"ann\"}"`, `3 "\x01\x00\x01z\x01\x00\x00\x011"`}},
	} {
		l.leave(step.request)
		again := f.restart(disk)
		if got := again.rows(true); !slices.Equal(got, step.want) {
			t.Errorf("after %s and a power cut the rows are %q, want %q", step.request, got, step.want)
		}
	}
}

// TestLeftAtStart: what a killed process has not made is made by the next.
func TestLeftAtStart(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	f := open(t, store.Options{FS: disk})
	f.Rule(`{"rules":{"$uid":{".write":"auth.uid == $uid"},"n":{".write":true}}}`)
	var counts []string
	for i := range 200 {
		who := fmt.Sprintf("u%d", i)
		l := f.leaver(user(t, fmt.Sprintf(`{"uid":%q}`, who)))
		l.leave(fmt.Sprintf(`PUT /%s "gone"`, who), fmt.Sprintf(`PUT /n/%d {".sv":{"increment":1}}`, i))
		counts = append(counts, "1")
	}
	f = f.restart(disk)
	f.expect("/", "null")
	f.runLeft(engine.Made{Made: 400})
	f.runLeft(engine.Made{})
	f.expect("/u17", `"gone"`)
	v := f.View()
	defer v.Close()
	var n strings.Builder
	if printer, err := v.Printer(path(t, "/n"), tree.Plain); err != nil || printer.PrintTo(&n) != nil || n.String() != "["+strings.Join(counts, ",")+"]" {
		t.Errorf("the counters are %s, want 1 each", &n)
	}
	if rows := f.rows(true); rows != nil {
		t.Errorf("there are still %d rows", len(rows))
	}
}

// TestLeavingRules: rules are asked when something is left, and when it is made.
func TestLeavingRules(t *testing.T) {
	t.Parallel()
	const closed, open = `{"rules":{"free":{".write":true}}}`, `{"rules":{"free":{".write":true},"a":{".write":"auth.uid == 'ann'"}}}`
	for _, test := range []struct {
		name string
		then func(f *fixture, l *leaver) // after something was left
		want engine.Made
		a    string
	}{
		{name: "allowed", want: engine.Made{Made: 3}, a: `"gone"`},
		{name: "the rules have changed", want: engine.Made{Made: 2, Dropped: 1}, a: `null`,
			then: func(f *fixture, _ *leaver) { f.Rule(closed) }},
		{name: "she has signed out", want: engine.Made{Made: 2, Dropped: 1}, a: `null`,
			then: func(f *fixture, l *leaver) { f.Commitless(l.Identify()) }},
		{name: "she is somebody else by what she left last", want: engine.Made{Made: 3, Dropped: 1}, a: `null`,
			then: func(_ *fixture, l *leaver) { l.who = auth.Identity{}; l.leave("PUT /free/4 1") }},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s crash=%t", test.name, crash), func(t *testing.T) {
				t.Parallel()
				disk := vfs.NewCrashableMem()
				f := openFixture(t, disk)
				f.Rule(open)
				l := f.leaver(user(t, `{"uid":"ann"}`))
				l.leave(`PUT /free/1 1`, `PUT /a "gone"`)
				if err := l.ask(`PUT /secret 1`); fault.KindOf(err) != fault.Denied {
					t.Errorf("to leave what is denied = %v, want denied", err)
				}
				if err := l.ask(`PATCH / {"free/2":1,"secret":1}`); fault.KindOf(err) != fault.Denied {
					t.Errorf("to leave what is denied in part = %v, want denied", err)
				}
				l.leave(`PUT /free/3 1`)
				if test.then != nil {
					test.then(f, l)
				}
				if crash {
					f = f.restart(disk)
					f.runLeft(test.want)
				} else {
					l.run(test.want)
				}
				f.expect("/a", test.a)
				f.expect("/secret", "null")
				f.expect("/free/2", "null")
				f.expect("/free/3", "1")
				if rows := f.rows(true); rows != nil {
					t.Errorf("there are still the rows %q", rows)
				}
			})
		}
	}
}

func openFixture(t *testing.T, disk vfs.FS) *fixture { return open(t, store.Options{FS: disk}) }

// Commitless makes a request that is no commit, as nobody.
func (f *fixture) Commitless(req engine.Request) {
	f.T.Helper()
	if commit, err := f.Write(context.Background(), req); err != nil || commit.Position != 0 {
		f.T.Errorf("Write = %+v, %v", commit, err)
	}
}

// TestLeavingInOrder: each write is judged on what those before it have left, and those that came
// in one are made in one.
func TestLeavingInOrder(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	f.Rule(`{"rules":{"a":{".write":true},"b":{".write":"!data.exists()"},"c":{".write":"root.child('a').val() == 2"}}}`)
	f.Put("/a", "2")
	l := f.leaver(auth.Identity{})
	l.leave(`PUT /a 1`, `PUT /c 1`, `PATCH / {"b":1,"a/x":2}`, `PATCH / {"b":1,"a":3}`, `PUT /c 1`)
	if rows := f.rows(false); len(rows) != 2 {
		t.Errorf("there are the rows %q, want two: the PATCH has replaced the first ones", rows)
	}
	l.run(engine.Made{Made: 1, Dropped: 1})
	f.expect("/", `{"a":3,"b":1}`)

	l = f.leaver(auth.Identity{})
	f.Put("/b", "null")
	l.leave(`PATCH / {"b":1,"a":4}`)
	f.Put("/b", "0")
	l.run(engine.Made{Dropped: 1})
	f.expect("/", `{"a":3,"b":0}`)
}

func TestLeavingLimits(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	l := f.leaver(admin)
	long := strings.Repeat("x", 600<<10)
	l.leave(fmt.Sprintf(`PUT /a %q`, long))
	if err := l.ask(fmt.Sprintf(`PUT /b %q`, long)); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("1.2 MB = %v, want too large", err)
	}
	l.leave(`PUT /a/b 1`) // what takes long is worked out before its turn
	var paths []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf(`"%d":1`, i))
	}
	if err := l.ask(fmt.Sprintf(`PATCH /c {%s}`, strings.Join(paths, ","))); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("1,001 paths = %v, want too large", err)
	}
	l.leave(fmt.Sprintf(`PATCH /c {%s}`, strings.Join(paths[1:], ",")))
	l.run(engine.Made{Made: 2})
	f.expect("/a", `{"b":1}`)
	f.expect("/c/999", `1`)
}

// TestSimulatedLeaving: what is only simulated is judged, and not left.
func TestSimulatedLeaving(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	who := user(t, `{"uid":"ann"}`)
	who.Simulate = true
	l := f.leaver(who)
	if err := l.ask(`PUT /a 1`); fault.KindOf(err) != fault.Denied {
		t.Errorf("a simulated one that is denied = %v", err)
	}
	f.Rule(`{"rules":{".write":true}}`)
	l.leave(`PUT /a 1`)
	if rows := f.rows(true); rows != nil {
		t.Errorf("there are the rows %q", rows)
	}
	l.run(engine.Made{})
	f.expect("/a", "null")
}

// TestLeavingOfADroppedDatabase ends, with nothing made.
func TestLeavingOfADroppedDatabase(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	l := f.leaver(admin)
	l.leave(`PUT /a 1`)
	if err := f.Drop(); err != nil {
		t.Fatal(err)
	}
	if made, err := l.Run(context.Background()); fault.KindOf(err) != fault.NotFound || made.Made != 0 {
		t.Errorf("Run = %+v, %v, want not found", made, err)
	}
	if _, err := f.RunLeft(context.Background(), engine.LeftReport{}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("RunLeft = %v, want not found", err)
	}
}

// TestLeftWithoutSpace: what there is no room for is kept, and made at a start when there is.
func TestLeftWithoutSpace(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	f := open(t, store.Options{FS: disk})
	f.Put("/a", "1")
	l := f.leaver(admin)
	l.leave(`PUT /b 1`, `DELETE /a`, `PUT /c 1`)
	other := f.leaver(admin)
	other.leave(`PUT /d 1`)
	full := disk.CrashClone(vfs.CrashCloneCfg{})
	full.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1, UsedBytes: 1<<40 - 1})
	f = open(t, store.Options{FS: full})
	problems := f.runLeft(engine.Made{Made: 1, Kept: 3})
	if len(problems) != 2 || fault.KindOf(problems[0]) != fault.ReadOnly {
		t.Errorf("the problems are %v, want that there is no space", problems)
	}
	if err := f.leaver(admin).ask(`DELETE /x`); fault.KindOf(err) != fault.ReadOnly {
		t.Errorf("to leave something on a full disk = %v, want read-only", err)
	}
	f.expect("/", "null")
	f = f.restart(full)
	f.runLeft(engine.Made{Made: 3})
	f.expect("/", `{"b":1,"c":1,"d":1}`)
}

// TestUnreadableLeft: rows that cannot be read stay where they are, and keep nobody from
// starting.
func TestUnreadableLeft(t *testing.T) {
	t.Parallel()
	f := open(t, store.Options{})
	f.leaver(admin).leave(`PUT /a {".sv":{"increment":1}}`)
	const broken, nobody = "-broken0000000000000", "-nobody0000000000000"
	id, _, err := f.Store.Find("db")
	if err != nil {
		t.Fatal(err)
	}
	b := f.Store.Live(id).NewBatch()
	err = b.Left([]store.LeftRow{
		{Connection: broken, Number: 0, Value: []byte(leave.EncodeIdentity(admin))},
		{Connection: broken, Number: 1, Value: []byte("?")},
		{Connection: broken, Number: 2, Value: []byte("\x01\x00\x01b\x01\x00\x00\x011")},
		{Connection: broken, Number: 3, Value: []byte("\x01\x00\x01c\x01\x00\x00\x01?")},
		{Connection: nobody, Number: 1, Value: []byte("\x01\x00\x01d\x01\x00\x00\x011")},
	})
	done := make(visible)
	if err := errors.Join(err, f.Store.Commit(b, done)); err != nil {
		t.Fatal(err)
	}
	<-done
	if problems := f.runLeft(engine.Made{Made: 2}); len(problems) != 2 {
		t.Errorf("the problems are %v, want one of each connection", problems)
	}
	f.expect("/", `{"a":1,"b":1}`)
	want := []string{`0 "\x01\x01null"`, `1 "?"`, `3 "\x01\x00\x01c\x01\x00\x00\x01?"`, `1 "\x01\x00\x01d\x01\x00\x00\x011"`}
	if got := f.rows(true); !slices.Equal(got, want) {
		t.Errorf("the rows are %q, want %q", got, want)
	}
}

type visible chan struct{}

func (visible) Durable(uint64) {}
func (v visible) Visible()     { close(v) }

// TestLeftIsMadeOnceWhenUnconfirmed: a write that takes longer than writes may is tried again, and
// is not made again.
func TestLeftIsMadeOnceWhenUnconfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Int64
		f := open(t, store.Options{SlowSync: func() { time.Sleep(time.Duration(slow.Swap(0))) }}) //nolint:forbidigo // fake time
		f.Reopen(engine.Options{Clock: f.Clock, Deadline: time.Second})
		l := f.leaver(admin)
		l.leave(`PUT /a {".sv":{"increment":1}}`, `PUT /b {".sv":{"increment":1}}`)
		slow.Store(int64(1200 * time.Millisecond))
		l.run(engine.Made{Made: 2})
		f.expect("/", `{"a":1,"b":1}`)

		l = f.leaver(admin)
		l.leave(`PUT /a {".sv":{"increment":1}}`, `PUT /b {".sv":{"increment":1}}`)
		slow.Store(int64(time.Hour))
		made, err := l.Run(context.Background())
		if kind := fault.KindOf(err); made != (engine.Made{Kept: 2}) || kind != fault.Unknown {
			t.Errorf("on a disk that does not answer Run() = %+v, %v, want that it gives up", made, err)
		}
		time.Sleep(2 * time.Hour)   //nolint:forbidigo // fake time
		l.run(engine.Made{Made: 1}) // the first was made in the end
		f.expect("/", `{"a":2,"b":2}`)
	})
}
