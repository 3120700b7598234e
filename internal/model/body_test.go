package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/model"
)

func TestDotValue(t *testing.T) {
	runScenarios(t, []scenario{
		{`PUT / {".value":1}`, `1`},
		{`PUT / {".value":"s",".priority":1}`, `{".value":"s",".priority":1}`},
		{`PUT / {".value":false,".priority":"p"}`, `{".value":false,".priority":"p"}`},
		{`PUT / {".value":1,".priority":null}`, `1`},
		{`PUT / {"a":{".value":1},"b":[{".value":2}]}`, `{"a":1,"b":{"0":2}}`},
		{`PUT / {".value":null}`, `null`},
		{`PUT / {".value":null,".priority":1}`, `null`},
		{`PUT / {".value":{".sv":"timestamp"}}`, `1700000000123`},
		{`PUT / {".value":{".sv":"timestamp"},".priority":{".sv":"timestamp"}}`,
			`{".value":1700000000123,".priority":1700000000123}`},
		{`! PUT / {".value":{}}`, `null`},
		{`! PUT / {".value":[]}`, `null`},
		{`! PUT / {".value":{"a":1}}`, `null`},
		{`! PUT / {".value":{".value":1}}`, `null`},
		{`! PUT / {".value":1,"a":2}`, `null`},
		{`! PUT / {".value":null,"a":null}`, `null`},
		{`! PUT / {".value":1,".priority":2,"a":3}`, `null`},
		{`! PUT / {".value":1,".sv":"timestamp"}`, `null`},
		{`! PUT / {"a":{".foo":1}}`, `null`},
		{`! PUT / {".":1}`, `null`},
		{`! PUT / {".Value":1}`, `null`},
		{`! PUT / {".priority ":1}`, `null`},
		{`! PUT / {".info":null}`, `null`},
	})
}

func TestServerValue(t *testing.T) {
	runScenarios(t, []scenario{
		{`PUT / {".sv":"timestamp"}`, `1700000000123`},
		{`PUT / {"a":{".sv":"timestamp"},"b":[{".sv":"timestamp"}]}`, `{"a":1700000000123,"b":{"0":1700000000123}}`},
		{`PATCH / {"a/b":{".sv":"timestamp"},"c/.priority":{".sv":"timestamp"},"c/d":1}`,
			`{"a":{"b":1700000000123},"c":{".priority":1700000000123,"d":1}}`},
		{`! PUT / {".sv":"now"}`, `null`},
		{`! PUT / {".sv":"Timestamp"}`, `null`},
		{`! PUT / {".sv":null}`, `null`},
		{`! PUT / {".sv":1}`, `null`},
		{`! PUT / {".sv":["timestamp"]}`, `null`},
		{`! PUT / {".sv":{}}`, `null`},
		{`! PUT / {".sv":{"increment":1,"x":2}}`, `null`},
		{`! PUT / {".sv":{"increment":"1"}}`, `null`},
		{`! PUT / {".sv":{"increment":null}}`, `null`},
		{`! PUT / {".sv":{"increment":{".sv":"timestamp"}}}`, `null`},
		{`! PUT / {".sv":{"increment":1e309}}`, `null`},
		{`! PUT / {".sv":{"decrement":1}}`, `null`},
		{`! PUT / {".sv":"timestamp","a":1}`, `null`},
		{`! PUT / {".sv":"timestamp",".priority":1}`, `null`},
		{`! PUT / {"a":1,"b":{".sv":"x"}}`, `null`},
	})
}

func TestIncrement(t *testing.T) {
	for _, test := range []struct{ old, n, want string }{
		{`null`, `5`, `5`},
		{`null`, `5.0`, `5`},
		{`"7"`, `5`, `5`},
		{`true`, `5`, `5`},
		{`{"x":1}`, `5`, `5`},
		{`7`, `5`, `12`},
		{`7`, `-5`, `2`},
		{`7`, `0`, `7`},
		{`0.5`, `1`, `1.5`},
		{`1`, `0.5`, `1.5`},
		{`1.5`, `0.5`, `2`},
		{`1.5`, `-1.5`, `0`},
		{`0.1`, `0.2`, `0.30000000000000004`},
		// Integers stay exact, also when one was written as 1.0.
		{`9007199254740993`, `1`, `9007199254740994`},
		{`9007199254740993`, `1.0`, `9007199254740994`},
		{`9223372036854775806`, `1`, `9223372036854775807`},
		{`9223372036854775807`, `-9223372036854775808`, `-1`},
		// Until they no longer fit.
		{`9223372036854775807`, `1`, `9.223372036854776e+18`},
		{`-9223372036854775808`, `-1`, `-9.223372036854776e+18`},
		{`9223372036854775807`, `0.5`, `9.223372036854776e+18`},
		// Beyond a double there is nothing to store.
		{`1.7e308`, `1.7e308`, `refused`},
		{`1`, `1.7e308`, `refused`},
		{`null`, `-1e292`, `refused`},
		{`-1.7e308`, `1e291`, `-1.7e+308`},
	} {
		tree := run(t, `PUT /a `+test.old)
		got := `refused`
		if request(tree, `PUT /a {".sv":{"increment":`+test.n+`}}`) == nil {
			got = tree.Plain(path("/a"))
		}
		if got != test.want {
			t.Errorf("%s incremented by %s = %s, want %s", test.old, test.n, got, test.want)
		}
	}
}

func TestIncrementSeesTreeBefore(t *testing.T) {
	runScenarios(t, []scenario{
		{"PUT / {\"a\":1,\"b\":{\"c\":2}}\nPUT / {\"a\":{\".sv\":{\"increment\":10}},\"b\":{\"c\":{\".sv\":{\"increment\":10}}}}",
			`{"a":11,"b":{"c":12}}`},
		{"PUT / {\"a\":1,\"b\":2}\nPATCH / {\"a\":{\".sv\":{\"increment\":10}},\"b\":null,\"c\":{\".sv\":{\"increment\":1}}}",
			`{"a":11,"c":1}`},
		{"PUT /a [1,2]\nPUT /a [{\".sv\":{\"increment\":1}},{\".sv\":{\"increment\":1}},{\".sv\":{\"increment\":1}}]",
			`{"a":{"0":2,"1":3,"2":1}}`},
		{"PUT /a {\".value\":1,\".priority\":5}\nPUT /a {\".sv\":{\"increment\":1}}", `{"a":2}`},
		{"PUT /a {\".value\":1,\".priority\":5}\nPATCH / {\"a\":{\".value\":{\".sv\":{\"increment\":1}},\".priority\":{\".sv\":{\"increment\":1}}}}",
			`{"a":{".value":2,".priority":6}}`},
		{"PUT /a {\"b\":1,\".priority\":5}\nPUT /a/.priority {\".sv\":{\"increment\":0.5}}", `{"a":{".priority":5.5,"b":1}}`},
		{"PUT /a {\"b\":1,\".priority\":\"5\"}\nPUT /a/.priority {\".sv\":{\"increment\":2}}", `{"a":{".priority":2,"b":1}}`},
		{"PUT /a {\"b\":1,\".priority\":5}\nPATCH / {\"a/.priority\":{\".sv\":{\"increment\":2}},\"a/b\":{\".sv\":{\"increment\":2}}}",
			`{"a":{".priority":7,"b":3}}`},
		{"PUT /a 5\nPUT /a/b {\".sv\":{\"increment\":2}}", `{"a":{"b":2}}`},
		{"PUT / {\"a\":1,\"b\":1.7e308}\n! PATCH / {\"a\":2,\"b\":{\".sv\":{\"increment\":1.7e308}}}", `{"a":1,"b":1.7e+308}`},
		{`PUT /a/.priority {".sv":{"increment":1}}`, `null`},
	})
}

func TestJSON(t *testing.T) {
	accepted := []string{
		`1`, " \t\r\n1 \t\r\n", `"\ud83d\ude00"`, `"\uD83D\uDE00"`, `"\\ud83d"`, `"\\\\ud83d"`, `"\u0000"`, "\"\x7f\"",
		`{"a":1,"A":2}`, "{\"\u00e9\":1,\"e\u0301\":2}", `"😀"`, `"\/"`, `{"a\\":1}`, `{"\"":1}`, `{"%2F":1}`,
	}
	refused := []string{
		``, ` `, `1 2`, `{}{}`, `null x`, `{"a":1}]`, `{"a":1,}`, `[1,]`, `{'a':1}`, `{a:1}`, `{"a"}`, `[`, `"a`,
		`NaN`, `Infinity`, `-`, `+1`, `01`, `.5`, `1.`, `1e`, `0x1`, `nul`, `True`, `undefined`, "\ufeff1", `//x`,
		"\"\n\"", "\"\x00\"", `"\x"`, `"\u12"`, "\v1", "\u00a01",
		// Repeated keys, also by escape, at any depth, whatever they hold.
		`{"a":1,"a":2}`, `{"a":1,"\u0061":1}`, `[{"x":{"a":null,"a":null}}]`, `{".priority":1,".priority":1,"a":1}`,
		`{".sv":{"increment":1,"increment":1}}`,
		// Invalid UTF-8 and lone surrogates.
		"\"\xff\"", "\"\xc3\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "{\"\xff\":1}", "1\xff",
		`"\ud83d"`, `"\ude00"`, `"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx\ude00"`, `"\uD83D\u0041"`,
		`"\ud83d\\ude00"`, `{"\udfff":1}`, `"\\\ud800"`, `{".priority":"\ud800","a":1}`,
	}
	for _, body := range accepted {
		if !model.ParseOK([]byte(body), 0) {
			t.Errorf("body %q is refused, want accepted", body)
		}
	}
	for _, body := range refused {
		if model.ParseOK([]byte(body), 0) {
			t.Errorf("body %q is accepted, want refused", body)
		}
	}
	tree := run(t, `PUT / {"\u0061":"\ud83d\ude00\u00e9\/"}`)
	if got, want := tree.Plain(nil), `{"a":"😀é/"}`; got != want {
		t.Errorf("escapes read as %s, want %s", got, want)
	}
}

func TestStringSize(t *testing.T) {
	// 10 MiB of UTF-8, by two bytes; the escape shows that the limit is on the
	// string, not on its spelling.
	at := `\u00e9` + strings.Repeat("é", 5<<20-1)
	for _, format := range []string{`[{".value":"%s"}]`, `{".priority":"%s","a":1}`} {
		if !model.ParseOK(fmt.Appendf(nil, format, at), 0) {
			t.Errorf("string of 10 MiB in %s is refused, want accepted", format)
		}
		if model.ParseOK(fmt.Appendf(nil, format, at+"x"), 0) {
			t.Errorf("string of 10 MiB and a byte in %s is accepted, want refused", format)
		}
	}
}

func TestDepth(t *testing.T) {
	nested := func(levels int, inner string) string {
		return strings.Repeat(`{"k":`, levels) + inner + strings.Repeat(`}`, levels)
	}
	for _, test := range []struct {
		depth int
		body  string
		want  bool
	}{
		{0, nested(32, `1`), true},
		{0, nested(33, `1`), false},
		{0, nested(33, `null`), false},
		{0, nested(33, `{}`), false},
		{0, nested(32, `{}`), true},
		{0, nested(32, `[]`), true},
		{0, nested(32, `[1]`), false},
		{0, nested(32, `[null]`), false},
		{0, strings.Repeat(`[`, 32) + strings.Repeat(`]`, 32), true}, // 31 keys
		{0, strings.Repeat(`[`, 33) + strings.Repeat(`]`, 33), true}, // 32 keys
		{0, strings.Repeat(`[`, 34) + strings.Repeat(`]`, 34), false},
		{0, nested(32, `{".value":1,".priority":2}`), true},
		{0, nested(32, `{".sv":"timestamp"}`), true},
		{0, nested(32, `{".sv":{"increment":1}}`), true},
		{10, nested(22, `1`), true},
		{10, nested(23, `1`), false},
		{32, `1`, true},
		{32, `null`, true},
		{32, `{}`, true},
		{32, `{"a":null}`, false},
		{33, `1`, false},
		{33, `null`, false},
		{0, strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000), false},
	} {
		if got := model.ParseOK([]byte(test.body), test.depth); got != test.want {
			t.Errorf("ParseOK(%.300s, %d) = %v, want %v", test.body, test.depth, got, test.want)
		}
	}
}

func TestDepthOfPaths(t *testing.T) {
	at32 := strings.Repeat("/k", 32)
	at31 := strings.Repeat("/k", 31)
	run(t, `
		PUT `+at32+` 1
		PUT `+at32+`/.priority 1
		PATCH `+at31+` {"k":1,".priority":1}
		PATCH `+at31+` {"k/.priority":2}
		PATCH / {"`+at32+`":1}
		PATCH / {"`+at32+`/.priority":1}
		PATCH `+at32+` {".priority":1}
		! PUT `+at32+`/k 1
		! PUT `+at32+`/k/.priority 1
		! PATCH `+at32+` {"k":1}
		! PATCH `+at32+` {"k":null}
		! PATCH `+at31+` {"k":{"k":1}}
		! PATCH `+at31+` {"k/k":1}
		! PATCH `+at31+` {"k/k/.priority":1}
		! PATCH / {"`+at32+`/k":null}
		! PATCH `+at32+`/k null
		! PATCH `+at32+`/k {}
	`)
}
