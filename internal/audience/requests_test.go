package audience_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livetree/livetree/internal/audience"
	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// logOf returns a client that keeps what it is told.
func logOf(t *testing.T, f *enginetest.Fixture) *client {
	c := newClient(t, f.Database, audience.Limits{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logged = true
	return c
}

// told returns what the client was told since it was last asked, up to an answer.
func (c *client) told(id int64) []string {
	c.await(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.log
	c.log = nil
	return log
}

func (c *client) expect(id int64, want ...string) {
	c.t.Helper()
	if got := c.told(id); !slices.Equal(got, want) {
		c.t.Errorf("it was told\n%q\nwant\n%q", got, want)
	}
}

const open = `{"rules":{".read":true,".write":true}}`

func TestListens(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(open)
	f.Put("/a", `{"b":1}`)
	c := logOf(t, f)
	c.Listen(1, c.listenRequest("/a", ""))
	c.expect(1, `/a: 0 / {"b":1}`, `answer 1 <nil>`)
	c.write(2, `PUT /a/b 2`)
	c.expect(2, `/a: 0 /b 2`, `answer 2 <nil>`)
	c.write(3, `PATCH /a {"b":3,"c/d":4}`)
	c.expect(3, `/a: 1 / {"b":3,"c/d":4}`, `answer 3 <nil>`)
	c.Listen(4, c.listenRequest("/a/b", ""))
	c.expect(4, `/a/b: 0 / 3`, `answer 4 <nil>`)
	c.write(5, `PUT /a/b/.priority 1`)
	if got := c.told(5); len(got) != 3 || got[2] != `answer 5 <nil>` {
		t.Errorf("a priority is told as %q", got)
	}
	c.Unlisten(6, enginetest.Path(t, "/a"), nil)
	c.expect(6, `answer 6 <nil>`)
	c.write(7, `PUT /a {"b":9}`)
	c.expect(7, `/a/b: 0 / 9`, `answer 7 <nil>`)
	c.Unlisten(8, enginetest.Path(t, "/nowhere"), nil)
	c.expect(8, `answer 8 <nil>`)
	c.Get(9, enginetest.Path(t, "/a"), nil)
	c.expect(9, `answer 9 <nil> {"b":9}`)
	c.Reply(10, "note", nil)
	if answer := c.await(10); answer.Note != "note" {
		t.Errorf("the note is %v", answer.Note)
	}
	c.told(10)
	c.Listen(11, c.listenRequest("/a/b", "")) // replaces
	c.expect(11, `/a/b: 0 / 9`, `answer 11 <nil>`)
	c.write(12, `PUT /a/b 10`)
	c.expect(12, `/a/b: 0 / 10`, `answer 12 <nil>`)
	if n := c.Listens(); n != 1 {
		t.Errorf("there are %d listens", n)
	}
}

func TestKnown(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(`{"rules":{".read":true,".write":true,"l":{".indexOn":".value"}}}`)
	f.Put("/a", `{"b":1}`)
	f.Put("/l", `{"x":1,"y":2,"z":3}`)
	c := logOf(t, f)
	known := func(id int64, at, parameters, hash string) {
		req := c.listenRequest(at, parameters)
		req.Known = &watch.Known{Hash: hash}
		c.Listen(id, req)
	}
	hash := sdkhash.Of(expected(t, f, "/a", nil))
	known(1, "/a", "", hash)
	c.expect(1, `answer 1 <nil>`)
	c.write(2, `PUT /a/b 2`)
	c.expect(2, `/a: 0 /b 2`, `answer 2 <nil>`)
	known(3, "/a", "", hash)
	c.expect(3, `/a: 0 / {"b":2}`, `answer 3 <nil>`)
	c.write(4, `PUT /other 1`)
	c.expect(4, `answer 4 <nil>`)
	known(5, "/a", "", sdkhash.Of(expected(t, f, "/a", nil)))
	c.expect(5, `answer 5 <nil>`)
	known(6, "/nothing", "", "")
	c.expect(6, `answer 6 <nil>`)
	c.Listen(7, c.listenRequest("/nothing", ""))
	c.expect(7, `/nothing: 0 / null`, `answer 7 <nil>`)
	last := `orderBy="$value"&limitToLast=2`
	window := sdkhash.Of(expected(t, f, "/l", c.listenRequest("/l", last).Query))
	known(8, "/l", last, window)
	c.expect(8, `answer 8 <nil>`)
	c.write(9, `PUT /l/z 0`)
	c.expect(9, `/l?`+last+`: 1 / {"x":1,"z":null}`, `answer 9 <nil>`)
}

// TestStale: the data comes before the refusal that tells to look at it.
func TestStale(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(`{"rules":{".write":true,"a":{".read":true}}}`)
	f.Put("/a", `1`)
	c := logOf(t, f)
	c.listen(1, "/a", "")
	c.told(1)
	submit := func(id int64, at, value, hash string) {
		w, err := enginetest.DecodePut(enginetest.Path(t, at), value)
		if err != nil {
			t.Fatal(err)
		}
		req, _ := enginetest.ParseRequest(`PUT / 1`)
		req.Write, req.IfHash = w, &hash
		c.Write(id, req)
	}
	one := sdkhash.Of(tree.LeafNode(tree.IntegerLeaf(1)))
	f.Put("/a", `2`)
	submit(2, "/a", `5`, one)
	if got := c.told(2); len(got) != 2 || got[0] != `/a: 0 / 2` || fault.KindOf(c.await(2).Err) != fault.Precondition {
		t.Errorf("it was told %q", got)
	}
	submit(3, "/a", `5`, sdkhash.Of(tree.LeafNode(tree.IntegerLeaf(2))))
	c.expect(3, `/a: 0 / 5`, `answer 3 <nil>`)
	submit(4, "/b", `5`, "")
	if err := c.await(4).Err; fault.KindOf(err) != fault.Precondition {
		t.Errorf("who may not read can guess: %v", err)
	}
}

func TestIdentify(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(`{"rules":{"a":{".read":"auth.uid == 'ann'"},"b":{".read":"auth != null"},"c":{".read":true}, ".write":true}}`)
	c := logOf(t, f)
	c.Listen(1, c.listenRequest("/a", ""))
	if err := c.await(1).Err; fault.KindOf(err) != fault.Denied {
		t.Fatalf("nobody listens: %v", err)
	}
	c.Identify(enginetest.User(t, `{"uid":"ann"}`))
	for i, at := range []string{"/a", "/b", "/c"} {
		c.listen(int64(2+i), at, "")
	}
	c.told(4)
	c.Identify(enginetest.User(t, `{"uid":"bob"}`))
	c.write(5, `PATCH / {"a":1,"b":1,"c":1}`)
	got := c.told(5)
	slices.Sort(got)
	if want := []string{`/a: over 3`, `/b: 0 / 1`, `/c: 0 / 1`, `answer 5 <nil>`}; !slices.Equal(got, want) {
		t.Errorf("after a change of identity it was told %q", got)
	}
}

// TestLogout: an identity that ends makes the client nobody, before it is told anything
// that nobody may see.
func TestLogout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := enginetest.Open(t, store.Options{})
		f.Rule(`{"rules":{"a":{".read":"auth != null"},"c":{".read":true},".write":true}}`)
		c := logOf(t, f)
		ann := enginetest.User(t, `{"uid":"ann"}`)
		ann.Expires = time.Now().Add(time.Minute)
		c.Identify(ann)
		c.listen(1, "/a", "")
		c.listen(2, "/c", "")
		c.told(2)
		time.Sleep(2 * time.Minute) //nolint:forbidigo // fake time
		synctest.Wait()
		c.write(3, `PATCH / {"a":1,"c":1}`)
		c.expect(3, `logout Auth token is expired: the token has expired`, `/a: over 3`, `/c: 0 / 1`, `answer 3 <nil>`)
		if who := c.Who(); who.Auth != (auth.Identity{}).Auth {
			t.Error("the client is still somebody")
		}
	})
}

// TestLogoutAfterASleep: a machine that slept has timers that are late. The time of an
// identity is over all the same, for requests and for listens.
func TestLogoutAfterASleep(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(`{"rules":{"a":{".read":"auth != null",".write":"auth != null"}}}`)
	for name, notice := range map[string]func(*audience.Audience){
		"a read": func(a *audience.Audience) { a.Get(2, enginetest.Path(t, "/a"), nil) },
		"a write": func(a *audience.Audience) {
			a.Write(2, engine.Request{Write: tree.Put(enginetest.Path(t, "/a"), tree.Node{})})
		},
		"a look": func(a *audience.Audience) { a.Check() },
	} {
		var slept atomic.Int64
		woken := make(chan struct{}, 100)
		a := audience.New(f.Database, audience.Options{
			Wake: func() { woken <- struct{}{} }, Now: func() time.Time { return time.Now().Add(time.Duration(slept.Load())) },
		})
		ann := enginetest.User(t, `{"uid":"ann"}`)
		ann.Expires = time.Now().Add(time.Hour)
		a.Identify(ann)
		a.Listen(1, audience.ListenRequest{Path: enginetest.Path(t, "/a"), Known: &watch.Known{}})
		slept.Store(int64(2 * time.Hour))
		notice(a)
		var logout, refused error
		over := false
		for deadline := time.After(10 * time.Second); !over || name != "a look" && refused == nil; {
			item, ok := a.Next()
			switch {
			case ok && item.Logout != nil:
				logout = item.Logout
			case ok && item.Answer != nil && item.Answer.ID == 2:
				refused = item.Answer.Err
			case ok && item.Event != nil:
				over = item.Event.Kind == watch.Cancel
			case ok:
			default:
				select {
				case <-woken:
				case <-deadline:
					t.Fatalf("%s: over is %t, the answer %v, ten seconds later", name, over, refused)
				}
			}
		}
		if !errors.Is(logout, auth.ErrExpired) || name != "a look" && fault.KindOf(refused) != fault.Denied {
			t.Errorf("%s: the client is told %v, and answered %v", name, logout, refused)
		}
		a.Close()
	}
}

// TestWriteOfWhoHasGone: a write that was on its way when the client was closed is not made
// later, when what it has left was written.
func TestWriteOfWhoHasGone(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(open)
	var looks atomic.Int32
	closed, goOn := make(chan struct{}), make(chan struct{})
	a := audience.New(f.Database, audience.Options{Wake: func() {}, Now: func() time.Time {
		if looks.Add(1) == 2 { // the first is of Identify, this one of the write
			close(closed)
			<-goOn
		}
		return time.Now()
	}})
	ann := enginetest.User(t, `{"uid":"ann"}`)
	ann.Expires = time.Now().Add(time.Hour)
	a.Identify(ann)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Write(1, engine.Request{Write: tree.Put(enginetest.Path(t, "/online"), tree.LeafNode(tree.BooleanLeaf(true)))})
	}()
	<-closed
	a.Close()
	f.Put("/online", `false`) // as onDisconnect does
	close(goOn)
	<-done
	f.Put("/other", `1`) // behind all that was submitted
	if got := f.Export("/online"); got != `false` {
		t.Errorf("after the end of the client there is %s, want false", got)
	}
}

// TestRulesChange: a listen that the rules take away ends before anything else is told of
// that commit.
func TestRulesChange(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(`{"rules":{"a":{".read":"root.child('open').val() == true"},".write":true}}`)
	f.Put("/open", `true`)
	c := logOf(t, f)
	c.listen(1, "/a", "")
	c.told(1)
	c.write(2, `PATCH / {"open":false,"a":"secret"}`)
	c.expect(2, `/a: over 3`, `answer 2 <nil>`)
}

// TestLimits: requests wait for room, and too many listens are refused.
func TestLimits(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(open)
	c := newClient(t, f.Database, audience.Limits{Unanswered: 2, Bytes: 1 << 20, Listens: 2, ListenBytes: 1 << 20})
	for i, at := range []string{"/a", "/b"} {
		c.listen(int64(i), at, "")
	}
	if answer := c.listen(2, "/c", ""); fault.KindOf(answer.Err) != fault.Unavailable {
		t.Errorf("a third listen: %v", answer.Err)
	}
	c.mu.Lock() // nothing is taken
	done := make(chan struct{})
	go func() {
		defer close(done)
		for id := range int64(20) {
			c.write(10+id, `PUT /a 1`)
		}
	}()
	select {
	case <-done:
		t.Error("requests did not wait for answers to be taken")
	case <-time.After(50 * time.Millisecond):
	}
	c.mu.Unlock()
	<-done
	c.await(29)
}

// TestTakenAway: a credential that was taken away is good for nothing more, also where
// nothing is listened to.
func TestTakenAway(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(`{"rules":{".read":true}}`)
	c := logOf(t, f)
	c.Identify(auth.Identity{Admin: true, Basis: "a secret that is gone"})
	c.write(1, `PUT /a 1`)
	if err := c.await(1).Err; fault.KindOf(err) != fault.Denied {
		t.Errorf("a write by a secret that is gone: %v", err)
	}
	c.Get(2, tree.Path{}, nil)
	if got := c.told(2); !slices.Contains(got, `logout credential is no longer valid`) {
		t.Errorf("the client was told %q", got)
	}
}

// TestCancelStays: that a listen is over is told also if the client becomes somebody else
// meanwhile.
func TestCancelStays(t *testing.T) {
	f := enginetest.Open(t, store.Options{})
	f.Rule(`{"rules":{".read":true}}`)
	woken := make(chan struct{}, 100)
	a := audience.New(f.Database, audience.Options{Wake: func() { woken <- struct{}{} }})
	defer a.Close()
	for id, at := range []string{"/a", "/b", "/c"} {
		a.Listen(int64(id), audience.ListenRequest{Path: enginetest.Path(t, at), Known: &watch.Known{}, Cookie: at})
	}
	for answered := 0; answered < 3; {
		if item, ok := a.Next(); ok && item.Answer != nil {
			answered++
		}
	}
	f.Rule(`{"rules":{}}`)
	f.WaitForWatches()
	over := 0
	next := func() {
		if item, ok := a.Next(); ok && item.Event != nil && item.Event.Kind == watch.Cancel {
			over++
		}
	}
	next() // and the others are known to be over
	a.Identify(enginetest.User(t, `{"uid":"ann"}`))
	for range 5 {
		next()
	}
	if over != 3 {
		t.Errorf("of 3 listens that are over, %d were told so", over)
	}
}
