package tree_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

func TestJSONIsReadStrictly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		at         string // line:column of the error
		class      error
	}{
		{"nothing", "", "1:1", tree.ErrNoData},
		{"only white space", " \t\r\n ", "2:2", tree.ErrNoData},
		{"trailing garbage", `{"a":1} x`, "1:9", tree.ErrSyntax},
		{"two values", "1\n2", "2:1", tree.ErrSyntax},
		{"two objects", `{}{}`, "1:3", tree.ErrSyntax},
		{"a comma behind the last element", `[1,]`, "1:4", tree.ErrSyntax},
		{"a comma behind the last member", `{"a":1,}`, "1:8", tree.ErrSyntax},
		{"a comma alone", `[,]`, "1:2", tree.ErrSyntax},
		{"two commas", `[1,,2]`, "1:4", tree.ErrSyntax},
		{"no comma", "[1\n 2]", "2:2", tree.ErrSyntax},
		{"no colon", `{"a" 1}`, "1:6", tree.ErrSyntax},
		{"no value", `{"a":}`, "1:6", tree.ErrSyntax},
		{"no closing brace", `{"a":1`, "1:7", tree.ErrSyntax},
		{"no closing bracket", "[1,\n", "2:1", tree.ErrSyntax},
		{"the wrong bracket", `[1}`, "1:3", tree.ErrSyntax},
		{"a closing bracket alone", `]`, "1:1", tree.ErrSyntax},
		{"a key without quotes", `{a:1}`, "1:2", tree.ErrSyntax},
		{"a number as key", `{1:1}`, "1:2", tree.ErrSyntax},
		{"single quotes", `'a'`, "1:1", tree.ErrSyntax},
		{"a comment", "// x\n1", "1:1", tree.ErrSyntax},
		{"NaN", `NaN`, "1:1", tree.ErrSyntax},
		{"NaN inside", `{"a": NaN}`, "1:7", tree.ErrSyntax},
		{"undefined", `undefined`, "1:1", tree.ErrSyntax},
		{"True", `True`, "1:1", tree.ErrSyntax},
		{"a word cut short", `tru`, "1:4", tree.ErrSyntax},
		{"a misspelt word", `[true, flase]`, "1:8", tree.ErrSyntax},
		{"a word that goes on", `nulll`, "1:5", tree.ErrSyntax},
		{"a malformed number", `[1, 1.e5]`, "1:5", tree.ErrSyntax},
		{"a number out of range", "[1,\n\t1e999]", "2:2", tree.ErrValue},
		{"a byte-order mark", "\ufeff1", "1:1", tree.ErrSyntax},
		{"another white space", "[1,\u00a02]", "1:4", tree.ErrSyntax},
		{"a vertical tab", "\v1", "1:1", tree.ErrSyntax},
		{"a NUL", "\x00", "1:1", tree.ErrSyntax},
		{"a NUL behind the value", "1\x00", "1:2", tree.ErrSyntax},
		{"a NUL in a string", "\"a\x00\"", "1:3", tree.ErrSyntax},
		{"an unfinished string", `"abc`, "1:5", tree.ErrSyntax},
		{"an unfinished escape", `"abc\`, "1:6", tree.ErrSyntax},
		{"a line break in a string", "{\"a\":\"b\nc\"}", "1:8", tree.ErrSyntax},
		{"a tab in a string", "\"\t\"", "1:2", tree.ErrSyntax},
		{"an unknown escape", `"ab\x41"`, "1:4", tree.ErrSyntax},
		{"an escaped quote that is none", `"\'"`, "1:2", tree.ErrSyntax},
		{"an escape of three digits", `"\u041"`, "1:2", tree.ErrSyntax},
		{"a lone surrogate", `["ok", "x\ud800"]`, "1:10", tree.ErrSyntax},
		{"invalid UTF-8", "[\"ok\",\n \"\xff\"]", "2:2", tree.ErrSyntax},
		{"an invalid key", "{\n  \"a\": 1,\n  \"b.c\": 2\n}", "3:3", tree.ErrInvalidKey},
		{"a key too long", `{"` + strings.Repeat("k", 769) + `":1}`, "1:2", tree.ErrInvalidKey},
		{"a repeated key", "{\"b\":1,\"a\":2,\n\"b\":3}", "2:1", tree.ErrValue},
		{"a key repeated twice", "{\"b\":1,\n\"a\":2,\n\"b\":3,\n\"b\":4}", "3:1", tree.ErrValue},
		{"a repeated .value", `{".value":1,".value":2}`, "1:13", tree.ErrValue},
		{"an unknown dotted key", `{"a":{".x":1}}`, "1:7", tree.ErrInvalidKey},
		{".value beside a key", `[ {".value":1,"a":2}]`, "1:3", tree.ErrValue},
		{"a boolean priority", `{"a":1, ".priority": true}`, "1:22", tree.ErrValue},
		{"an unknown server value", `{".sv": "now"}`, "1:9", tree.ErrValue},
		{"too deep", nested(32, `{"x":1}`), "1:162", tree.ErrTooDeep},
		{"columns are bytes", `{"日本":?}`, "1:11", tree.ErrSyntax},
		{"a line ends with a line feed only", "\r\n\r\n?", "3:1", tree.ErrSyntax},
	}
	for _, test := range tests {
		t.Run("JSON/"+test.name, func(t *testing.T) {
			t.Parallel()
			n, err := tree.DecodeBytes([]byte(test.text), tree.DecodeOptions{})
			if !errors.Is(err, test.class) {
				t.Fatalf("DecodeBytes(%.80q) = %s, %v; want the error %v", test.text, export(n), err, test.class)
			}
			if !strings.HasPrefix(err.Error(), test.at+": ") {
				t.Errorf("DecodeBytes(%.80q) failed with %q, want it at %s", test.text, err, test.at)
			}
			problem, ok := errors.AsType[*tree.DecodeError](err)
			if !ok || problem.Problem == "" || strings.Contains(problem.Problem, "%!") {
				t.Errorf("DecodeBytes(%.80q) failed with %#v, want a DecodeError that says why", test.text, err)
			}
			if !n.IsNull() {
				t.Errorf("DecodeBytes(%.80q) failed and returned %s, want no data", test.text, export(n))
			}
		})
	}
}

func TestJSONRepeatedKeyIsNamedWhereItComesAgain(t *testing.T) {
	t.Parallel()
	for keys := 20; keys < 60; keys++ {
		text := "{\n"
		for _, comma := range []string{",", "}"} { // every key in a line of its own, then all of them again
			for i := range keys {
				text += fmt.Sprintf("\"k%d\":1,\n", i*7919%keys)
			}
			text = strings.TrimSuffix(text, ",\n") + comma + "\n"
		}
		_, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
		problem, ok := errors.AsType[*tree.DecodeError](err)
		if !ok || problem.Line <= keys+1 {
			t.Errorf("the %d keys from line 2 are repeated below, but the error is %v", keys, err)
		}
	}
}

func TestJSONErrorsAreSentences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                    `1:1: no data supplied`,
		`{"a":1 "b":2}`:       `1:8: unexpected '"', expected "," or "}"`,
		`{"a":1`:              `1:7: unexpected end of the data, expected "," or "}"`,
		`[1,é]`:               `1:4: unexpected byte 0xc3, expected a value`,
		`1e999`:               `1:1: the number 1e999 is out of range`,
		`{"a":1,"a":2}`:       `1:8: the key "a" is repeated`,
		`{"a/b":1}`:           `1:2: invalid child name: "a/b" holds "/"`,
		`{".sv":"timestmp"}`:  `1:8: a server value is "timestamp" or {"increment": number}`,
		`{".value":{"a":1}}`:  `1:11: .value must be a primitive value`,
		`{"a":{"b":[1,2,}}`:   `1:16: unexpected '}', expected a value`,
		`{".priority":[1]}`:   `1:14: .priority must be a primitive value`,
		"\"" + "a\x01" + "\"": `1:3: unescaped control character 0x1 in a string`,
	} {
		if _, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{}); err == nil || err.Error() != want {
			t.Errorf("DecodeBytes(%s) failed with %v, want %s", text, err, want)
		}
	}
}

func TestJSONWhiteSpaceIsFree(t *testing.T) {
	t.Parallel()
	text := " \t\r\n{ \"a\" \n:\t[ 1 , { \"b\" : null , \"c\" : \"x\" } ] \r, \".priority\" : 5 } \n\n"
	if got, want := export(decode(t, text)), `{".priority":5,"a":{"0":1,"1":{"c":"x"}}}`; got != want {
		t.Errorf("DecodeBytes(%q) = %s, want %s", text, got, want)
	}
}

func TestDecodeKeepsNothingOfTheText(t *testing.T) {
	t.Parallel()
	text := []byte(`{"key":"a string","n":12.5}`)
	n, err := tree.DecodeBytes(text, tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clear(text)
	if got, want := plain(n), `{"key":"a string","n":12.5}`; got != want {
		t.Errorf("when the text is overwritten, the node reads %s, want %s", got, want)
	}
}
