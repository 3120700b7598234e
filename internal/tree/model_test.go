package tree_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/tree"
)

// This file compares whole bodies with two oracles: the model, which knows the
// contract, and jsontext, which knows JSON.

// isJSON reports whether text is one JSON value without repeated names and
// invalid strings.
func isJSON(text []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
	if _, err := d.ReadValue(); err != nil {
		return false
	}
	_, err := d.ReadValue()
	return errors.Is(err, io.EOF)
}

// checkBody wants a PUT of text to be judged and stored as the oracles say.
func checkBody(t *testing.T, text []byte) {
	t.Helper()
	n, err := tree.DecodeBytes(text, tree.DecodeOptions{})
	if err == nil && !isJSON(text) {
		t.Fatalf("%q is read as %s, but it is not JSON", text, export(n))
	}
	m := model.New()
	wantErr := m.Put(nil, text, nowMillis)
	if (err == nil) != (wantErr == nil) && !errors.Is(err, tree.ErrTooLarge) {
		t.Fatalf("%q: %v, but the model says %v", text, err, wantErr)
	}
	if err != nil {
		if _, ok := errors.AsType[*tree.DecodeError](err); !ok {
			t.Fatalf("%q fails with %#v, want a DecodeError", text, err)
		}
		return
	}
	w, err := tree.Resolve(tree.Put(tree.Path{}, n), nowMillis, looker{})
	if err != nil {
		t.Fatalf("%q does not resolve: %v", text, err)
	}
	n = w.Assignments[0].Node
	if got, want := export(n), m.Export(nil); got != want {
		t.Fatalf("%q is stored as\n%s, but the model says\n%s", text, got, want)
	}
	if got, want := plain(n), m.Plain(nil); got != want {
		t.Fatalf("%q reads as\n%s, but the model says\n%s", text, got, want)
	}
	if again := export(decode(t, export(n))); again != export(n) {
		t.Fatalf("%q exports as\n%s, which reads back as\n%s", text, export(n), again)
	}
	if copied := export(tree.NewEditor(n).Node()); copied != export(n) {
		t.Fatalf("an editor copies %s as %s", export(n), copied)
	}
}

func TestBodiesAsTheModel(t *testing.T) {
	t.Parallel()
	g := generator{random(t)}
	accepted := 0
	const bodies = 20_000
	for range bodies {
		text := g.body()
		if model.ParseOK([]byte(text), 0) {
			accepted++
		}
		checkBody(t, []byte(text))
		checkBody(t, []byte(g.damage(text)))
	}
	if accepted < bodies/4 {
		t.Errorf("of %d random bodies only %d are valid: the test tests too little", bodies, accepted)
	}
}

func TestDepthAsTheModel(t *testing.T) {
	t.Parallel()
	g := generator{random(t)}
	for range 2000 {
		depth := 27 + g.IntN(6)
		text := g.body()
		_, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{Depth: depth})
		if ok := model.ParseOK([]byte(text), depth); ok != (err == nil) {
			t.Fatalf("below %d keys, %s: %v, but the model accepts it: %v", depth, text, err, ok)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		record, `null`, `{}`, `[]`, `[null,{"a":[]}]`, `{"0":1,"1":2}`, `{"2":1,"10":[1,2]}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
		`{"b":1,"a":2,"😀":3,"` + "\uffff" + `":4}`, `1e999`, `-0`, `1.0`, `9007199254740993`, `[01]`, `[1.]`, `[-]`, `[1e]`,
		`"\ud800"`, `"\ud83d\ude00"`, `"\udc00\ud800"`, "\"\xff\"", "\"\xed\xa0\x80\"", "\"a\x00b\"", `"\u0000"`, `"\x"`, `"abc`,
		`{".value":1,".priority":2}`, `{".value":1,"a":2}`, `{".priority":null,"a":1}`, `{".priority":true,"a":1}`, `{".foo":1}`,
		`{".sv":"timestamp"}`, `{"a":{".sv":{"increment":1.5}}}`, `{".sv":"timestamp","a":1}`, `{".value":{".sv":"timestamp"}}`,
		`tru`, `nulll`, `[1,]`, `{"a":1,}`, `{"a"}`, `{a:1}`, `[1 2]`, `1 2`, "\ufeff1", " \t\r\n1 ", "[1,\v2]", `[`, `{"a":`, ``,
		nested(32, "1"), nested(33, "1"), strings.Repeat("[", 10_001), `{"a/b":1}`, `{"":1}`, `{"$":1}`, `{"-0":1,"00":2,"0":3}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checkBody(t, text)
		want := outcome(tree.DecodeBytes(text, tree.DecodeOptions{}))
		if got := outcome(tree.Decode(iotest.OneByteReader(bytes.NewReader(text)), tree.DecodeOptions{})); got != want {
			t.Errorf("%q, read byte by byte, gives\n%s, want\n%s", text, got, want)
		}
	})
}
