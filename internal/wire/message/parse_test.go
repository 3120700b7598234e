package message_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/wire/message"
)

// request reads a request whose action and body are given.
func request(t testing.TB, action, body string) message.Request {
	t.Helper()
	text := `{"t":"d","d":{"r":7,"a":"` + action + `","b":` + body + `}}`
	m, err := message.Parse([]byte(text))
	if err != nil || m.Control != message.NoControl {
		t.Fatalf("Parse(%s) = %+v, %v, want a request", text, m, err)
	}
	if m.Request.ID != 7 {
		t.Errorf("Parse(%s) has the number %d, want 7", text, m.Request.ID)
	}
	return m.Request
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `0`, `null`, `[]`, `"x"`, `{`, `{}`, `{"t":"d"}`, `{"d":{}}`, `{"t":"x","d":{}}`, `{"t":1,"d":{}}`,
		`{"t":"d","d":null}`, `{"t":"d","d":[]}`, `{"t":"d","d":{}}`, `{"t":"c","d":null}`, `{"t":"c","d":7}`,
		`{"t":"d","d":{"r":1,"a":"p","b":{}}`, `{"t":"d","d":{"r":1,"a":"p","b":{}}} x`, `{"t":"d","d":{"r":1,"a":"p","b":{}}}{}`,
		`{"t":"d","d":{"a":"p","b":{}}}`, `{"t":"d","d":{"r":-1,"a":"p","b":{}}}`, `{"t":"d","d":{"r":1.5,"a":"p","b":{}}}`,
		`{"t":"d","d":{"r":"1","a":"p","b":{}}}`, `{"t":"d","d":{"r":null,"a":"p","b":{}}}`,
		`{"t":"d","d":{"r":9223372036854775808,"a":"p","b":{}}}`,
		`{"t":"d","d":{"r":1,"a":"p","b":{"p":"/a","d":}}}`, `{"t":"d","d":{"r":1,"a":"p","b":{"p":"/a","d":01}}}`,
		`{"t":"d","d":{"r":1,"a":"p","b":{"p":"/a","d":` + strings.Repeat("[", 20_000),
		`{"t":"d","d":{"r":1,"a":"p","b":{"p":"/a","d":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}}`,
	} {
		if m, err := message.Parse([]byte(text)); err != message.ErrUnreadable { //nolint:errorlint // it is never wrapped
			t.Errorf("Parse(%.80s) = %+v, %v, want %v", text, m, err, message.ErrUnreadable)
		}
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]message.Control{
		`{"t":"c","d":{"t":"p","d":{}}}`:         message.Ping,
		` {"d" : {"d":null, "t":"p"}, "t":"c"} `: message.Ping,
		`{"t":"c","d":{"t":"a","d":{}}}`:         message.Switch,
		`{"t":"c","d":{"t":"n","d":{}}}`:         message.LastByOld,
		`{"t":"c","d":{"t":"z","d":{}}}`:         message.UnknownControl,
		`{"t":"c","d":{}}`:                       message.UnknownControl,
		`{"t":"c","d":{"t":7}}`:                  message.UnknownControl,
	} {
		if m, err := message.Parse([]byte(text)); err != nil || m.Control != want {
			t.Errorf("Parse(%s) = %d, %v, want %d", text, m.Control, err, want)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ action, path, want string }{
		{"q", `"/a/b"`, "/a/b"}, {"q", `"a/b"`, "/a/b"}, {"q", `"/"`, "/"}, {"q", `""`, "/"},
		{"q", `"/a%20b/%2F"`, "/a%20b/%2F"}, {"n", `"/\u00e4/ \"x\" "`, `/ä/ "x" `}, {"g", `"a"`, "/a"},
		{"p", `"/a/.priority"`, "/a .priority"}, {"p", `".priority"`, "/ .priority"}, {"p", `"/.priority"`, "/ .priority"},
		{"o", `"/a/.priority"`, "/a .priority"}, {"oc", `"/a/.priority"`, "/a .priority"}, {"oc", `"/a"`, "/a"},
		{"m", `"/a/.priority"`, ""}, {"om", `"/a/.priority"`, ""}, {"g", `"/a/.priority"`, ""}, {"q", `"/a/.priority"`, ""},
		{"q", `"/.info/connected"`, ""}, {"p", `"/.info"`, ""}, {"p", `"/a.priority"`, ""}, {"p", `"/a/.priority/b"`, ""},
		{"p", `"/a/.priority/.priority"`, ""},
		{"q", `"/a#"`, ""}, {"q", `7`, ""}, {"q", `null`, ""}, {"q", `"/a\ud800"`, ""}, {"q", `"/a\u0001"`, ""},
		{"q", `"` + strings.Repeat("/a", 33) + `"`, ""}, {"q", `"/` + strings.Repeat("a", 769) + `"`, ""},
	} {
		q := request(t, test.action, `{"p":`+test.path+`,"d":1}`)
		got := q.Path.String()
		if q.Priority {
			got += " .priority"
		}
		switch {
		case test.want == "" && (fault.KindOf(q.Err) != fault.Invalid || fault.Public(q.Err) != "Invalid token in path"):
			t.Errorf("%s at %.60s: %v, want Invalid token in path", test.action, test.path, q.Err)
		case test.want != "" && (q.Err != nil || got != test.want):
			t.Errorf("%s at %s is at %s, %v, want %s", test.action, test.path, got, q.Err, test.want)
		}
	}
	if q := request(t, "q", `{}`); fault.KindOf(q.Err) != fault.Invalid {
		t.Errorf("a listen without a path: %v, want an invalid fault", q.Err)
	}
}

func TestActions(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]message.Action{
		"s": message.Stats, "q": message.Listen, "n": message.Unlisten, "g": message.Get, "p": message.Put, "m": message.Merge,
		"o": message.OnDisconnectPut, "om": message.OnDisconnectMerge, "oc": message.OnDisconnectCancel,
		"auth": message.Login, "gauth": message.Login, "unauth": message.Logout,
		"appcheck": message.AppCheck, "unappcheck": message.AppCheck, "unappeck": message.AppCheck,
	} {
		q := request(t, action, `{"p":"/a","d":{},"cred":"x"}`)
		if q.Action != want || q.Err != nil {
			t.Errorf("%s is the action %d, %v, want %d", action, q.Action, q.Err, want)
		}
	}
	for _, action := range []string{"", "x", "Q", `\ud800`} {
		if q := request(t, action, `{}`); q.Action != message.Unknown || !message.IsUnknownAction(q.Err) {
			t.Errorf("%q is the action %d, %v, want an unknown one", action, q.Action, q.Err)
		}
	}
	for _, body := range []string{`null`, `7`, `[]`, `"x"`} {
		if q := request(t, "q", body); fault.KindOf(q.Err) != fault.Invalid {
			t.Errorf("the body %s: %v, want an invalid fault", body, q.Err)
		}
	}
	m, err := message.Parse([]byte(`{"d":{"b":{"d":1,"p":"a"},"a":"p","r":0},"t":"d"}`))
	if q := m.Request; err != nil || q.Err != nil || q.Action != message.Put || q.ID != 0 || string(q.Data) != "1" {
		t.Errorf("members in another order: %+v, %v", q, err)
	}
}

// TestLongHash: a hash that is none is not kept, and is that of nothing.
func TestLongHash(t *testing.T) {
	for _, hash := range []string{strings.Repeat("x", 1<<20), strings.Repeat("x", 65)} {
		q := request(t, "p", `{"p":"/a","d":1,"h":"`+hash+`"}`)
		if q.Err != nil || q.Hash == nil || len(*q.Hash) > 64 || *q.Hash == "" {
			t.Errorf("a hash of %d bytes is read as %v, %v", len(hash), q.Hash, q.Err)
		}
	}
}

func TestListens(t *testing.T) {
	t.Parallel()
	const object = `{"l":2, "vf":"l"}`
	first, _, err := query.ParseObject([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		`{"p":"/a","h":""}`, `{"p":"/a","h":"","q":` + object + `}`, `{"p":"/a","h":"","q":{ },"t":1}`, `{"p":"/a","h":"","t":1}`,
		`{"p":"/a","h":"","q":null,"t":1}`, `{"p":"/a","h":"","q":` + object + `,"t":null}`,
	} {
		q := request(t, "q", body)
		if q.Err != nil || q.Query != nil || q.QueryText != nil || q.Hash == nil || *q.Hash != "" {
			t.Errorf("%s is %+v, want a plain listen", body, q)
		}
	}
	q := request(t, "q", `{"p":"/a","q":`+object+`,"t":0}`)
	if q.Err != nil || q.Query == nil || *q.Query != first || string(q.QueryText) != object || q.Tag != 0 || q.Hash != nil {
		t.Errorf("a query is read as %+v", q)
	}
	for _, body := range []string{
		`{"p":"/a","q":{"l":0},"t":1}`, `{"p":"/a","q":{"l":1},"t":-1}`, `{"p":"/a","q":{"l":1},"t":"1"}`, `{"p":"/a","q":{"l":1},"t":9007199254740993}`, `{"p":"/a","q":7,"t":1}`,
		`{"p":"/a","h":7}`, `{"p":"/a","h":{}}`, `{"p":"/a","h":"\udc00"}`,
	} {
		if q := request(t, "q", body); fault.KindOf(q.Err) != fault.Invalid {
			t.Errorf("%s: %v, want an invalid fault", body, q.Err)
		}
	}
	for body, want := range map[string]*query.Query{
		`{"p":"/a"}`: nil, `{"p":"/a","q":{}}`: nil, `{"p":"/a","q":{"i":"x"}}`: nil, `{"p":"/a","q":` + object + `}`: &first,
	} {
		q := request(t, "g", body)
		if q.Err != nil || (q.Query == nil) != (want == nil) || want != nil && *q.Query != *want {
			t.Errorf("g %s asks for %+v, %v, want %+v", body, q.Query, q.Err, want)
		}
	}
}

func TestCompoundHash(t *testing.T) {
	t.Parallel()
	q := request(t, "q", `{"p":"/a","h":"x","ch":{"hs":["a","b\n"],"ps":["foo/bar"]}}`)
	hashes, posts, ok := q.CompoundHash()
	if !ok || !slices.Equal(hashes, []string{"a", "b\n"}) || !slices.Equal(posts, []string{"foo/bar"}) {
		t.Errorf("the compound hash is %q, %q, %t", hashes, posts, ok)
	}
	many := `["` + strings.Repeat(`x","`, 10_001) + `"]`
	for _, text := range []string{
		`null`, `7`, `[]`, `{}`, `{"hs":[]}`, `{"ps":[]}`, `{"hs":null,"ps":[]}`, `{"hs":[1],"ps":[]}`, `{"hs":["a",1],"ps":[]}`,
		`{"hs":["a"],"ps":{}}`, `{"hs":["\ud800"],"ps":[]}`, `{"hs":` + many + `,"ps":[]}`,
	} {
		q := request(t, "q", `{"p":"/a","h":"x","ch":`+text+`}`)
		if _, _, ok := q.CompoundHash(); ok || q.Err != nil {
			t.Errorf("the compound hash %.60s is read: %v", text, q.Err)
		}
	}
	if q := request(t, "q", `{"p":"/a"}`); q.Compound != nil {
		t.Error("a listen without a compound hash has one")
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	q := request(t, "auth", `{"cred":"a.b\u002ec"}`)
	if q.Err != nil || q.Credential != "a.b.c" || q.AsNobody || q.Variable != nil {
		t.Errorf("a login is read as %+v", q)
	}
	if q := request(t, "gauth", `{"cred":"x","authvar":{"uid":"u"}}`); q.Err != nil || string(q.Variable) != `{"uid":"u"}` {
		t.Errorf("a login with authvar is read as %+v", q)
	}
	if q := request(t, "gauth", `{"cred":"x","noauth":true,"authvar":null}`); q.Err != nil || !q.AsNobody || q.Variable != nil {
		t.Errorf("a login with noauth is read as %+v", q)
	}
	for _, body := range []string{`{}`, `{"cred":""}`, `{"cred":7}`, `{"cred":null}`, `{"cred":"\ud800"}`} {
		if q := request(t, "auth", body); fault.KindOf(q.Err) != fault.Unauthenticated {
			t.Errorf("a login with %s: %v, want an unauthenticated fault", body, q.Err)
		}
	}
}

func TestSDKs(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"c":{"sdk.js.12-19-0":1}}`:                              {"js"},
		`{"c":{"sdk.admin_node.13-0-0":1,"framework.cordova":1}}`: {"admin_node"},
		`{"c":{"sdk.android.21-0-0":1,"sdk.x":1,"sdk..1":1,"sdk.UP.1":1,"sdk.ä.1":1,"persistence.android.enabled":1}}`: {"android"},
		`{"c":{"sdk.` + strings.Repeat("a", 60) + `.1":1}}`:                                                            nil,
		`{}`: nil, `{"c":7}`: nil, `{"c":null}`: nil,
		`{"c":{` + strings.Repeat(`"sdk.a.1":1,`, 20) + `"x":1}}`: slices.Repeat([]string{"a"}, 8),
	} {
		q := request(t, "s", body)
		if got := q.SDKs(); q.Err != nil || !slices.Equal(got, want) {
			t.Errorf("%.60s counts %q, %v, want %q", body, got, q.Err, want)
		}
	}
}

// TestDecode compares with what the same text means as the body of a request by REST.
func TestDecode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ action, path, data, want string }{
		{"p", "/a", `{"b":[1,2],".priority":3}`, `/a={".priority":3,"b":{"0":1,"1":2}}`},
		{"p", "/a", `null`, `/a=null`},
		{"p", "/a/.priority", `5`, `/a.priority=5`},
		{"o", "/a", `{".sv":"timestamp"}`, ``},
		{"m", "/a", `{"b/c":1,"d":null,"e/.priority":2}`, `/a/b/c=1 /a/d=null /a/e.priority=2`},
		{"om", "/", `{"b":1}`, `/b=1`},
		{"p", "/a", `{"b.c":1}`, `!1:2: `},
		{"p", "/a", `{"b":1,"b":2}`, `!`},
		{"p", "/a", `"\ud800"`, `!`},
		{"m", "/a", `7`, `!`},
		{"m", "/a", `{"b":1,"b/c":1}`, `!`},
		{"p", "/a/.priority", `true`, `!`},
		{"p", strings.Repeat("/a", 32), `{"b":1}`, `!`},
	} {
		q := request(t, test.action, `{"p":"`+test.path+`","d":`+test.data+`}`)
		if q.Err != nil {
			t.Fatal(q.Err)
		}
		w, err := q.Decode(nil)
		if text, refused := strings.CutPrefix(test.want, "!"); refused {
			if _, ok := errors.AsType[*tree.DecodeError](err); !ok || !strings.HasPrefix(err.Error(), text) {
				t.Errorf("%s %s at %s: %v, want %s", test.action, test.data, test.path, err, text)
			}
			continue
		}
		if got := describe(w); err != nil || test.want != "" && got != test.want {
			t.Errorf("%s %s at %s is %s, %v, want %s", test.action, test.data, test.path, got, err, test.want)
		}
	}
	if q := request(t, "p", `{"p":"/a"}`); fault.Public(q.Err) != "Error: No data supplied." {
		t.Errorf("a set without data: %v", q.Err)
	}
	q := request(t, "p", `{"p":"/a","d":"`+strings.Repeat("x", 1<<20)+`"}`)
	full := fault.New(fault.Unavailable, "full")
	if _, err := q.Decode(func(int64) error { return full }); err != full { //nolint:errorlint // as it is
		t.Errorf("a set that takes too much memory: %v, want %v", err, full)
	}
}

// describe prints the assignments of a write.
func describe(w tree.Write) string {
	var parts []string
	for _, a := range w.Assignments {
		name := a.Path.String()
		if a.Priority {
			name += ".priority"
		}
		parts = append(parts, name+"="+string(tree.AppendJSON(nil, a.Node, tree.Export)))
	}
	return strings.Join(parts, " ")
}
