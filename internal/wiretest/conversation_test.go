package wiretest_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/wiretest"
)

const hello = `< {"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"localhost:9000","s":"0123456789abcdefghijABCDEFGHIJ01"}}}`

// converse plays lines: "> " what a client sends, "< " what the server sends. "<r 1 …" and the
// like are short for replies and pushes.
func converse(c *wiretest.Conversation, lines string) error {
	short := strings.NewReplacer(
		"<push ", `< {"t":"d","d":`, "<ok ", `< {"t":"d","d":{"r":`, ">req ", `> {"t":"d","d":{"r":`)
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		line = strings.TrimSpace(line)
		closing := ""
		switch {
		case strings.HasPrefix(line, "<push "):
			closing = "}"
		case strings.HasPrefix(line, "<ok "):
			line = strings.Replace(line, " d ", `,"b":{"s":"ok","d":`, 1)
			closing = "}}}"
		case strings.HasPrefix(line, ">req "):
			closing = "}}"
		}
		line = short.Replace(line) + closing
		if message, sent := strings.CutPrefix(line, "> "); sent {
			c.Sent(message)
		} else if err := c.Got(strings.TrimPrefix(line, "< ")); err != nil {
			return err
		}
	}
	return nil
}

func TestConversationThatIsRight(t *testing.T) {
	t.Parallel()
	c := &wiretest.Conversation{}
	err := converse(c, hello+`
		>req 0,"a":"s","b":{"c":{"sdk.js":1}}
		<ok 0 d ""
		>req 1,"a":"q","b":{"p":"/a/b","h":""}
		<push {"a":"d","b":{"p":"a/b","d":{"x":1,"y":{".value":2,".priority":"p"},".priority":3}}}
		<ok 1 d {}
		<push {"a":"m","b":{"p":"a/b","d":{"x/y":1,"z":null,"w/.priority":null}}}
		<push {"a":"d","b":{"p":"a/b/c","d":null}}
		<push {"a":"d","b":{"p":"a/b/.priority","d":7}}
		>req 2,"a":"q","b":{"p":"/","q":{"l":2,"vf":"l","i":".key"},"t":1,"h":"x","ch":{"hs":[""],"ps":[]}}
		<push {"a":"rm","b":{"p":"","d":[{"s":"a","e":"b","m":{"b":1}},{"m":null}],"t":1}}
		<ok 2 d {"w":["no_index"]}
		<push {"a":"c","b":{"p":"","q":[{"l":2,"i":".key","vf":"l"}]}}
		>req 3,"a":"n","b":{"p":"a/b"}
		<push {"a":"d","b":{"p":"a/b","d":1}}
		<ok 3 d ""
		>req 4,"a":"g","b":{"p":"/x","q":{}}
		<ok 4 d {"k":{"a":true}}
		>req 5,"a":"auth","b":{"cred":"x"}
		<ok 5 d {"auth":{"uid":"u"},"expires":null}
		>req 6,"a":"unauth","b":{}
		<ok 6 d "unauthenticated"
		>req 7,"a":"q","b":{"p":"no","h":""}
		<push {"r":7,"b":{"s":"permission_denied","d":"Permission denied"}}
		>req 8,"a":"p","b":{"p":"no","d":1}
		<push {"a":"ac","b":{"s":"expired_token","d":"Auth token is expired."}}
		<push {"a":"sd","b":{"msg":"text"}}
		> {"t":"c","d":{"t":"p","d":{}}}
		< {"t":"c","d":{"t":"o","d":null}}
		< {"t":"c","d":{"t":"e","d":"text"}}
		< {"t":"c","d":{"t":"n","d":{}}}`)
	if err != nil {
		t.Error(err)
	}
	if left := c.Unanswered(); len(left) != 1 || left[0] != 8 {
		t.Errorf("requests %d are not answered, want 8", left)
	}
	if err := converse(&wiretest.Conversation{TakesOver: true}, `< {"t":"c","d":{"t":"a","d":{}}}`); err != nil {
		t.Error(err)
	}
}

func TestConversationListensAgain(t *testing.T) {
	t.Parallel()
	err := converse(&wiretest.Conversation{}, hello+`
		>req 1,"a":"q","b":{"p":"a","h":""}
		>req 2,"a":"n","b":{"p":"a"}
		>req 3,"a":"q","b":{"p":"a","h":""}
		<ok 1 d {}
		<ok 2 d ""
		<push {"a":"d","b":{"p":"a","d":1}}
		<ok 3 d {}
		>req 4,"a":"q","b":{"p":"a","h":""}
		<push {"a":"d","b":{"p":"a","d":1}}
		<ok 4 d {}
		>req 5,"a":"n","b":{"p":"a"}
		<ok 5 d ""`)
	if err != nil {
		t.Error(err)
	}
}

// TestConversationFails has one violation in each last line, and the client that breaks.
func TestConversationFails(t *testing.T) {
	t.Parallel()
	const listen = hello + `
		>req 1,"a":"q","b":{"p":"a","h":""}
		`
	const query = hello + `
		>req 1,"a":"q","b":{"p":"a","q":{"i":".key"},"t":7}
		`
	tests := []struct{ name, lines string }{
		{"not JSON", hello + "\n< {"},
		{"a name twice", hello + `
			< {"t":"c","t":"c","d":{"t":"e","d":"x"}}`},
		{"not an object", hello + "\n< []"},
		{"no d", hello + `
			< {"t":"d"}`},
		{"another t", hello + `
			< {"t":"x","d":{}}`},
		{"not hello first", `< {"t":"c","d":{"t":"o","d":null}}`},
		{"data first", `<push {"a":"sd","b":{"msg":"x"}}`},
		{"hello twice", hello + "\n" + hello},
		{"hello with a short time", strings.Replace(hello, "1700000000000", "1700000", 1)},
		{"hello with a fraction", strings.Replace(hello, "1700000000000", "1700000000000.5", 1)},
		{"hello of another version", strings.Replace(hello, `"5"`, `5`, 1)},
		{"hello without host", strings.Replace(hello, `localhost:9000`, ``, 1)},
		{"hello with a host of shards", strings.Replace(hello, `localhost:9000`, `s-usc1.example.org`, 1)},
		{"hello with a short id", strings.Replace(hello, `01"`, `0"`, 1)},
		{"hello with an id that is a path", strings.Replace(hello, `01"`, `0/"`, 1)},
		{"hello with more", strings.Replace(hello, `"v"`, `"x":1,"v"`, 1)},
		{"control without d", hello + `
			< {"t":"c","d":{"t":"e"}}`},
		{"a pong without a ping", hello + `
			< {"t":"c","d":{"t":"o","d":null}}`},
		{"an unknown control message", hello + `
			< {"t":"c","d":{"t":"x","d":null}}`},
		{"anything after n", hello + `
			< {"t":"c","d":{"t":"n","d":{}}}
			< {"t":"c","d":{"t":"e","d":"x"}}`},
		{"a member error", hello + `
			<push {"error":"x"}`},
		{"a reply to nothing", hello + `
			<ok 1 d ""`},
		{"two replies", listen + `<ok 1 d {}
			<ok 1 d {}`},
		{"a number that is a string", listen + `<ok "1" d {}`},
		{"a number that is a fraction", listen + `<ok 1.0 d {}`},
		{"a reply without status", listen + `<push {"r":1,"b":{"d":{}}}`},
		{"a reply without d", listen + `<push {"r":1,"b":{"s":"ok"}}`},
		{"a reply with more", listen + `<push {"r":1,"a":"q","b":{"s":"ok","d":{}}}`},
		{"ok to a listen that is no object", listen + `<ok 1 d ""`},
		{"ok to a listen with more", listen + `<ok 1 d {"x":1}`},
		{"a refusal with an object", listen + `<push {"r":1,"b":{"s":"permission_denied","d":{}}}`},
		{"ok to a set that is no string", hello + `
			>req 1,"a":"p","b":{"p":"a","d":1}
			<ok 1 d {}`},
		{"ok to a login without expires", hello + `
			>req 1,"a":"auth","b":{"cred":"x"}
			<ok 1 d {"auth":null}`},
		{"a push without listen", hello + `
			<push {"a":"d","b":{"p":"a","d":1}}`},
		{"a push beside the listen", listen + `<push {"a":"d","b":{"p":"ab","d":1}}`},
		{"a push above the listen", listen + `<push {"a":"d","b":{"p":"","d":1}}`},
		{"a push after n", listen + `<ok 1 d {}
			>req 2,"a":"n","b":{"p":"a"}
			<ok 2 d ""
			<push {"a":"d","b":{"p":"a","d":1}}`},
		{"a push after c", listen + `<ok 1 d {}
			<push {"a":"c","b":{"p":"a"}}
			<push {"a":"d","b":{"p":"a","d":1}}`},
		{"a push after a refusal", listen + `<push {"r":1,"b":{"s":"permission_denied","d":"Permission denied"}}
			<push {"a":"d","b":{"p":"a","d":1}}`},
		{"a push with a slash", listen + `<push {"a":"d","b":{"p":"/a","d":1}}`},
		{"a push without d", listen + `<push {"a":"d","b":{"p":"a"}}`},
		{"a push without p", listen + `<push {"a":"d","b":{"d":1}}`},
		{"a push with more", listen + `<push {"a":"d","b":{"p":"a","d":1,"x":1}}`},
		{"a push with a tag for a plain listen", listen + `<push {"a":"d","b":{"p":"a","d":1,"t":7}}`},
		{"a push with another tag", query + `<push {"a":"d","b":{"p":"a","d":1,"t":8}}`},
		{"a push without the tag", query + `<push {"a":"d","b":{"p":"a","d":1}}`},
		{"a tag that is a string", query + `<push {"a":"d","b":{"p":"a","d":1,"t":"7"}}`},
		{"a merge that is no object", listen + `<push {"a":"m","b":{"p":"a","d":1}}`},
		{"a merge with an empty key", listen + `<push {"a":"m","b":{"p":"a","d":{"":1}}}`},
		{"ranges for a listen without ch", listen + `<push {"a":"rm","b":{"p":"a","d":[{"m":null}]}}`},
		{"an array", listen + `<push {"a":"d","b":{"p":"a","d":{"x":[1]}}}`},
		{"null inside", listen + `<push {"a":"d","b":{"p":"a","d":{"x":null}}}`},
		{"an empty object", listen + `<push {"a":"d","b":{"p":"a","d":{}}}`},
		{"a bad key", listen + `<push {"a":"d","b":{"p":"a","d":{"x.y":1}}}`},
		{"a leaf with children", listen + `<push {"a":"d","b":{"p":"a","d":{".value":1,"x":1}}}`},
		{"a leaf in a form that it does not need", listen + `<push {"a":"d","b":{"p":"a","d":{".value":1}}}`},
		{"a priority of nothing", listen + `<push {"a":"d","b":{"p":"a","d":{".priority":1}}}`},
		{"a priority that is an object", listen + `<push {"a":"d","b":{"p":"a","d":{".priority":{},"x":1}}}`},
		{"an end without q for a query", query + `<push {"a":"c","b":{"p":"a"}}`},
		{"an end with a query that is no list", query + `<push {"a":"c","b":{"p":"a","q":{"i":".key"}}}`},
		{"an end with q for a plain listen", listen + `<push {"a":"c","b":{"p":"a","q":[{"i":".key"}]}}`},
		{"a logout without text", hello + `
			<push {"a":"ac","b":{"s":"expired_token"}}`},
		{"an unknown push", hello + `
			<push {"a":"apc","b":{"s":"x","d":"y"}}`},
	}
	for _, test := range tests {
		i := strings.LastIndex(test.lines, "\n")
		c := &wiretest.Conversation{}
		if i >= 0 {
			if err := converse(c, test.lines[:i]); err != nil {
				t.Errorf("%s: %v before the last line", test.name, err)
			}
		}
		if converse(c, test.lines[i+1:]) == nil {
			t.Errorf("%s: passes", test.name)
		}
	}
}
