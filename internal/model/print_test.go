package model_test

import (
	"encoding/json"
	"testing"

	"github.com/livetree/livetree/internal/model"
)

func TestReadArray(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{`["a","b"]`, `["a","b"]`},
		{`{"0":"a","1":"b"}`, `["a","b"]`},
		{`{"0":"a"}`, `["a"]`},
		{`{"1":"x"}`, `[null,"x"]`},
		{`{"2":"x"}`, `{"2":"x"}`},
		{`{"0":"a","2":"b"}`, `["a",null,"b"]`},
		{`{"0":"a","3":"b"}`, `["a",null,null,"b"]`},
		{`{"0":"a","4":"b"}`, `{"0":"a","4":"b"}`},
		{`{"2":"a","3":"b"}`, `[null,null,"a","b"]`},
		{`{"3":"a","4":"b"}`, `{"3":"a","4":"b"}`},
		{`{"0":"a","01":"b"}`, `{"0":"a","01":"b"}`},
		{`{"00":"a"}`, `{"00":"a"}`},
		{`{"-1":"a","0":"b"}`, `{"-1":"a","0":"b"}`},
		{`{"-0":"a"}`, `{"-0":"a"}`},
		{`{"0":"a","x":"b"}`, `{"0":"a","x":"b"}`},
		{`{"99999999999999999999":"a"}`, `{"99999999999999999999":"a"}`},
		{`{"2147483648":"a"}`, `{"2147483648":"a"}`},
		{`{"٠":"a"}`, `{"٠":"a"}`},
		{`[null,null,1]`, `{"2":1}`},
		{`[1,null,null]`, `[1]`},
		{`[[0],{"1":[1]},{"a":[2]}]`, `[[0],[null,[1]],{"a":[2]}]`},
		{`{"0":{".value":1,".priority":2},".priority":3}`, `[1]`},
	} {
		tree := run(t, `PUT /list `+test.body)
		if got := tree.Plain(path("/list")); got != test.want {
			t.Errorf("%s reads %s, want %s", test.body, got, test.want)
		}
		if got, want := tree.Plain(nil), `{"list":`+test.want+`}`; got != want {
			t.Errorf("%s reads %s from above, want %s", test.body, got, want)
		}
	}
}

func TestForms(t *testing.T) {
	tree := run(t, `PUT / {"leaf":"v","rated":{".value":true,".priority":1.5},"list":["a",{"x":1,".priority":"p"}],".priority":0}`)
	for _, test := range []struct{ at, plain, export, shallow, priority string }{
		{"/",
			`{"leaf":"v","list":["a",{"x":1}],"rated":true}`,
			`{".priority":0,"leaf":"v","list":{"0":"a","1":{".priority":"p","x":1}},"rated":{".value":true,".priority":1.5}}`,
			`{"leaf":true,"list":true,"rated":true}`, `0`},
		{"/leaf", `"v"`, `"v"`, `"v"`, `null`},
		{"/rated", `true`, `{".value":true,".priority":1.5}`, `true`, `1.5`},
		{"/list", `["a",{"x":1}]`, `{"0":"a","1":{".priority":"p","x":1}}`, `{"0":true,"1":true}`, `null`},
		{"/list/1", `{"x":1}`, `{".priority":"p","x":1}`, `{"x":true}`, `"p"`},
		{"/list/2", `null`, `null`, `null`, `null`},
		{"/leaf/x", `null`, `null`, `null`, `null`},
	} {
		at := path(test.at)
		got := [4]string{tree.Plain(at), tree.Export(at), tree.Shallow(at), tree.Priority(at)}
		want := [4]string{test.plain, test.export, test.shallow, test.priority}
		if got != want {
			t.Errorf("plain, export, shallow, priority of %s =\n%q, want\n%q", test.at, got, want)
		}
	}
}

// PUT answers the data as stored: what a plain read of the same path gives.
func TestEcho(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":{".sv":"timestamp"}}`:                `{"a":1700000000123}`,
		`{"0":1,"1":2}`:                            `[1,2]`,
		`[1,null]`:                                 `[1]`,
		`{"a":null,"b":{},"c":1.0}`:                `{"c":1}`,
		`{".value":1,".priority":2}`:               `1`,
		`{".priority":2,"b":1,"a":{".value":"x"}}`: `{"a":"x","b":1}`,
		`{".priority":2}`:                          `null`,
	} {
		if got := run(t, `PUT /p `+body).Plain(path("/p")); got != want {
			t.Errorf("PUT %s reads back %s, want %s", body, got, want)
		}
	}
}

func TestStringsInOutput(t *testing.T) {
	for body, want := range map[string]string{
		`"\"\\\/\b\f\n\r\t"`:         `"\"\\/\b\f\n\r\t"`,
		`"\u0000\u0001\u000b\u001F"`: `"\u0000\u0001\u000b\u001f"`,
		`"\u007f\u0080"`:             "\"\x7f\u0080\"",
		`"<>&'\u2028\u2029"`:         "\"<>&'\u2028\u2029\"",
		`"\u00e9\ud83d\ude00\ufffd"`: "\"é😀\ufffd\"",
		`"\uffff\ufeff"`:             "\"\uffff\ufeff\"",
		`{"a\"\\ é":1}`:              `{"a\"\\ é":1}`,
	} {
		if got := run(t, `PUT / `+body).Plain(nil); got != want {
			t.Errorf("%s prints as %q, want %q", body, got, want)
		}
	}
}

// FuzzPut checks that whatever is accepted prints as JSON, and that the export of
// a tree, written back, is the same tree.
func FuzzPut(f *testing.F) {
	for _, body := range []string{
		`{"a":[1,null,{"b":1e-7}],".priority":"p"}`, `{".value":1.5,".priority":{".sv":"timestamp"}}`, `{"x":{".sv":{"increment":2}}}`,
		`"\ud83d\ude00\u0000"`, `-0`, `1e400`, `{"a":1,"\u0061":2}`, "\"\xff\"", `[[[[]]]]`, `{"10":1,"9":2,"-0":3}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		tree := model.New()
		if err := tree.Put(nil, body, nowMillis); err != nil {
			if got := tree.Export(nil); got != "null" {
				t.Fatalf("%q is refused, but leaves %s", body, got)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is accepted, but is not JSON", body)
		}
		export := tree.Export(nil)
		again := model.New()
		if err := again.Put(nil, []byte(export), 0); err != nil {
			t.Fatalf("export %s of %q is refused: %v", export, body, err)
		}
		for _, form := range []func(*model.Tree) string{
			func(t *model.Tree) string { return t.Export(nil) },
			func(t *model.Tree) string { return t.Plain(nil) },
			func(t *model.Tree) string { return t.Shallow(nil) },
			func(t *model.Tree) string { return t.Priority(nil) },
		} {
			got, want := form(again), form(tree)
			if got != want || !json.Valid([]byte(want)) {
				t.Fatalf("%q reads %s, and after export and PUT %s", body, want, got)
			}
		}
	})
}
