package engine_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

const mib = 1 << 20

// patchOfPosts is a request for so many new posts, by ann.
func patchOfPosts(t testing.TB, n int) engine.Request {
	t.Helper()
	var body []string
	for i := range n {
		body = append(body, fmt.Sprintf(`"p%d":{"n":1}`, i))
	}
	w, err := tree.DecodePatch(strings.NewReader("{"+strings.Join(body, ",")+"}"), path(t, "posts"), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return engine.Request{Write: w, Who: user(t, `{"uid":"ann"}`)}
}

// TestTurnIsShort: whatever a rule looks at, a write's turn takes a bounded number of
// steps, with which no long string can be decoded. A write that needs more is judged
// beside the turn, and has the same outcome.
func TestTurnIsShort(t *testing.T) {
	if enginetest.Race {
		t.Skip("it counts the steps of one goroutine")
	}
	const most = 2*engine.TurnSteps + 10*1024*16 // a string of 10 MiB was found, but not decoded
	f := open(t, store.Options{})
	f.Put("users/ann/name", `"`+strings.Repeat("a", 10*mib)+`"`)
	f.Put("users/ann/nick", `{".value":"`+strings.Repeat("a", 10*mib)+`",".priority":1}`)
	name := "root.child('users').child(auth.uid).child('name')"
	nick := "root.child('users/ann/nick')"
	for _, c := range []struct {
		rule    string
		allowed bool
	}{
		{name + ".isString()", true},
		{nick + ".isString() && " + nick + ".exists() && !" + nick + ".hasChildren()", true},
		{name + ".val() == 'Ann'", false},
		{name + ".val() != 'Ann'", true},
		{name + ".val().length > 5 && $p == 'p0'", false},
		{name + ".val().matches(/^a/)", false},
		{"!root.child('posts').child(" + name + ".val()).exists()", true},
	} {
		f.Rule(`{"rules":{"posts":{"$p":{".write":true,".validate":"` + c.rule + `"}}}}`)
		n := 1500
		if strings.Contains(c.rule, "root.child('posts')") {
			n = 2 // each parses the long string
		}
		req := patchOfPosts(t, n)
		if steps, heavy := f.JudgeAtTurn(req); !heavy || steps > most {
			t.Errorf("%s: a turn takes %d steps, too many: %v; want at most %d, and too many", c.rule, steps, heavy, most)
		}
		if _, err := f.Write(t.Context(), req); denied(err) == c.allowed || err != nil && c.allowed {
			t.Errorf("%s: the write: %v, want it allowed: %v", c.rule, err, c.allowed)
		}
		f.Put("posts", "null")
	}
}

// TestOrdinaryWriteIsJudgedAtItsTurn: it is not heavy.
func TestOrdinaryWriteIsJudgedAtItsTurn(t *testing.T) {
	f := open(t, store.Options{})
	f.Put("users/ann", `{"name":"Ann","role":"writer"}`)
	f.Rule(`{"rules":{"posts":{"$p":{".write":"root.child('users').child(auth.uid).child('role').val() === 'writer' && !data.exists()",
		".validate":"newData.hasChildren(['n']) && newData.child('n').isNumber()"}}}}`)
	for _, n := range []int{1, 50} {
		if steps, heavy := f.JudgeAtTurn(patchOfPosts(t, n)); heavy || steps > engine.TurnSteps {
			t.Errorf("%d posts take %d steps, heavy: %v", n, steps, heavy)
		}
	}
}

// TestHeavyJudgementEndsWithItsClient.
func TestHeavyJudgementEndsWithItsClient(t *testing.T) {
	f, clock := openHooked(t, store.Options{})
	f.Rule(`{"rules":{"posts":{"$p":{".write":"!data.exists()"}}}}`)
	ctx, leave := context.WithCancel(t.Context())
	var hook func()
	hook = func() {
		if preparing() {
			leave()
			return
		}
		clock.next(hook)
	}
	clock.next(hook)
	_, err := f.Write(ctx, patchOfPosts(t, 1500))
	if fault.KindOf(err) != fault.Unavailable || ctx.Err() == nil {
		t.Errorf("the write of a client that left while it was judged: %v, want unavailable", err)
	}
	if got := f.Export("posts"); got != "null" {
		t.Errorf("/posts is %.40s, want null", got)
	}
}

// preparing reports whether this goroutine prepares a write.
func preparing() bool { return strings.Contains(string(debug.Stack()), "writer).prepare") }

// TestHeavyRulesOnBusyData: where the data that rules look at changes each time a write is
// prepared, the write is judged at its turn, unless that takes very long.
func TestHeavyRulesOnBusyData(t *testing.T) {
	for _, c := range []struct {
		rule string
		want fault.Kind
	}{
		{"!data.exists()", fault.Internal}, // none
		{"!data.exists() && !data.child('a').exists() && !data.child('b').exists() && !data.child('c').exists()", fault.Unavailable},
	} {
		f, clock := openHooked(t, store.Options{})
		f.Rule(`{"rules":{"posts":{"$p":{".write":"` + c.rule + `"}}}}`)
		rounds := 0
		var disturb func()
		disturb = func() {
			if preparing() {
				rounds++
				f.Put(fmt.Sprintf("posts/q%d", rounds), "1")
			}
			clock.next(disturb)
		}
		clock.next(disturb)
		_, err := f.Write(t.Context(), patchOfPosts(t, 1500))
		clock.hook.Store(nil)
		if fault.KindOf(err) != c.want || err != nil && c.want == fault.Internal || rounds < 3 {
			t.Errorf("%s: after %d rounds %v, want %v", c.rule, rounds, err, c.want)
		}
	}
}

// TestHeavyWritersAreRemembered: the next writes of a user whose rules were too heavy for
// a turn do not try that again, until some of them were light.
func TestHeavyWritersAreRemembered(t *testing.T) {
	enginetest.SkipIfRefused(t) // it counts
	f := open(t, store.Options{})
	f.Rule(`{"rules":{"posts":{"$p":{".write":"!data.exists() || !data.child('n').exists() || true"}}}}`)
	heavy, light := patchOfPosts(t, 250), patchOfPosts(t, 1)
	write := func(req engine.Request) {
		t.Helper()
		if _, err := f.Write(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	write(light)
	if f.Marked(light) {
		t.Error("a light write is remembered as heavy")
	}
	for range 3 { // of one in ten that are heavy, each keeps the mark
		write(heavy)
		for range 9 {
			write(light)
		}
		if !f.Marked(heavy) {
			t.Error("a heavy write is not remembered")
		}
	}
	for range 30 {
		write(light)
	}
	if f.Marked(heavy) {
		t.Error("after 30 light writes a heavy one is still remembered")
	}
	heavy.Who = admin
	write(heavy)
	if f.Marked(heavy) {
		t.Error("a write that rules do not concern is remembered as heavy")
	}
}

// TestMarkedWriteIsNotJudgedAtItsTurn.
func TestMarkedWriteIsNotJudgedAtItsTurn(t *testing.T) {
	f, clock := openHooked(t, store.Options{})
	f.Rule(`{"rules":{"posts":{"$p":{".write":"!data.exists() || !data.child('n').exists() || true"}}}}`)
	for _, want := range []bool{true, false} { // the first one finds out
		atTurn := false
		var look func()
		look = func() {
			atTurn = atTurn || isAtTurn()
			clock.next(look)
		}
		clock.next(look)
		_, err := f.Write(t.Context(), patchOfPosts(t, 250))
		clock.hook.Store(nil)
		if err != nil || atTurn != want {
			t.Errorf("a heavy write is judged at its turn: %v, %v; want %v", atTurn, err, want)
		}
	}
}
