package wire

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/watch"
)

// debugger begins a session of somebody whose token asks for the trace of rules, or not.
func debugger(t testing.TB, f *Front, db *enginetest.Fixture, debug bool) *talk {
	t.Helper()
	const secret = "a-secret-that-is-long-enough-for-everyone"
	if err := db.SetSecrets(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	token, err := auth.Mint(secret, auth.Claims{Data: map[string]any{"uid": "ann"}, Debug: debug})
	if err != nil {
		t.Fatal(err)
	}
	k := begin(t, f, db)
	k.send(`0 auth {"cred":"` + token + `"}`)
	k.expect(`0 ok {"auth":{"uid":"ann"},"expires":null}`)
	return k
}

const debugRules = `{"rules":{"open":{".read":"auth.uid == 'ann'",".write":"auth.uid == 'ann'"},"closed":{".read":"auth.uid == 'bob'",".write":"auth.uid == 'bob'"}}}`

// TestDebug: a client whose token asks for it is told which rules were tried, once for each
// request, right before its answer. Others are told nothing of them.
func TestDebug(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		request string
		before  string // what is told before the trace
		trace   string // a part of it
		answer  string
	}{
		{`1 p {"p":"/open/a","d":1}`, "", `Attempt to write 1 to /open/a with auth={\"uid\":\"ann\"}`, `1 ok ""`},
		{`1 m {"p":"/open","d":{"a":2}}`, "", `Write was allowed.`, `1 ok ""`},
		{`1 p {"p":"/closed","d":1}`, "", `/closed:.write: \"auth.uid == 'bob'\" => false`, `1 permission_denied "Permission denied"`},
		{`1 o {"p":"/closed","d":1}`, "", `Write was denied.`, `1 permission_denied "Permission denied"`},
		{`1 g {"p":"/open/x","q":{}}`, "", `/open:.read: \"auth.uid == 'ann'\" => true`, `1 ok 7`},
		{`1 g {"p":"/closed","q":{}}`, "", `/closed:.read: \"auth.uid == 'bob'\" => false`, `1 permission_denied "Permission denied"`},
		{`1 g {"p":"/open","q":{"i":"n","l":1,"vf":"l"}}`, "", `/open:.read: \"auth.uid == 'ann'\" => true`,
			`1 failure "Index not defined, add \".indexOn\": \"n\", for path \"/open\", to the rules"`},
		{`1 q {"p":"/open/x","h":""}`, `d {"p":"open/x","d":7}`, `/open:.read: \"auth.uid == 'ann'\" => true`, `1 ok {}`},
		{`1 q {"p":"/closed","h":""}`, "", `/closed:.read: \"auth.uid == 'bob'\" => false`, `1 permission_denied "Permission denied"`},
	} {
		for _, debug := range []bool{true, false} {
			db := open(t, debugRules)
			db.Put("/open/x", "7")
			k := debugger(t, newFront(false), db, debug)
			k.send(test.request)
			if test.before != "" {
				k.expect(test.before)
			}
			if debug {
				if got := shorten(k.next()); !strings.HasPrefix(got, `sd {"msg":"Attempt to `) || !strings.Contains(got, test.trace) {
					t.Errorf("%s: before the answer the client is told %s, want a trace with %s", test.request, got, test.trace)
				}
			}
			k.expect(test.answer)
			k.quiet()
		}
	}
}

// TestStopAnswersBehindATrace: when the server stops, the answer still comes.
func TestStopAnswersBehindATrace(t *testing.T) {
	t.Parallel()
	k := debugger(t, newFront(false), open(t, debugRules), true)
	k.send(`1 p {"p":"/open/a","d":1}`)
	_ = k.next() // the trace
	if k.session.stop() {
		t.Error("an answer is to come, and all is settled")
	}
	k.expect(`1 ok ""`)
	if !k.session.stop() {
		t.Error("all was answered, and not all is settled")
	}
}

// closing notes that a content was closed.
type closing struct {
	watch.Content
	closed *bool
}

func (c closing) Close() error {
	*c.closed = true
	return c.Content.Close()
}

// TestAnswerBehindATraceIsGivenBack: if the client goes between both.
func TestAnswerBehindATraceIsGivenBack(t *testing.T) {
	t.Parallel()
	db := open(t, debugRules)
	k := debugger(t, newFront(false), db, true)
	k.send(`1 g {"p":"/open","q":{}}`)
	if say := k.say(); !strings.Contains(string(say.text), `"sd"`) {
		t.Fatalf("the client is told %s, want a trace", say.text)
	}
	closed := false
	k.session.queued.content = closing{k.session.queued.content, &closed}
	k.session.release()
	if !closed {
		t.Error("what was read for a client that has gone is never given back")
	}
}
