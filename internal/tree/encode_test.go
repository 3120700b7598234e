package tree_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

func TestArraysReading(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, plain string }{
		{"indexes from 0", `{"0":"a","1":"b"}`, `["a","b"]`},
		{"one hole", `{"1":"x"}`, `[null,"x"]`},
		{"too many holes", `{"2":"x"}`, `{"2":"x"}`},
		{"max key 3 of 2 keys", `{"0":1,"3":2}`, `[1,null,null,2]`},
		{"max key 4 of 2 keys", `{"0":1,"4":2}`, `{"0":1,"4":2}`},
		{"only the first", `{"0":1}`, `[1]`},
		{"written as an array", `[1,null,[2,null,null],{"0":3}]`, `[1,null,[2],[3]]`},
		{"a key that is no index", `{"0":1,"1":2,"a":3}`, `{"0":1,"1":2,"a":3}`},
		{"a leading zero", `{"0":1,"01":2}`, `{"0":1,"01":2}`},
		{"a negative key", `{"-1":1,"0":2}`, `{"-1":1,"0":2}`},
		{"minus zero", `{"-0":1}`, `{"-0":1}`},
		{"a key beyond 32 bits", `{"0":1,"2147483648":2}`, `{"0":1,"2147483648":2}`},
		{"deep inside", `{"a":{"b":{"0":{"1":true}}}}`, `{"a":{"b":[[null,true]]}}`},
		{"ten and more", `{"0":0,"1":1,"2":2,"3":3,"4":4,"5":5,"10":10}`, `[0,1,2,3,4,5,null,null,null,null,10]`},
		{"a priority does not matter", `{".priority":1,"0":{".value":"a",".priority":2}}`, `["a"]`},
	} {
		t.Run("Arrays, reading/"+test.name, func(t *testing.T) {
			t.Parallel()
			n := decode(t, test.text)
			if got := plain(n); got != test.plain {
				t.Errorf("%s reads as %s, want %s", test.text, got, test.plain)
			}
			if got := export(n); strings.Contains(got, "[") {
				t.Errorf("%s exports as %s, want no array in it", test.text, got)
			}
		})
	}
}

func TestExportReadsBackTheSame(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{".priority":"p","0":{".value":"a",".priority":2},"a":{"b":1.5,"c":true}}`,
		`{".value":1e+300,".priority":-1e-7}`,
		`"\u0000\u001f\"\\é😀"`,
		`false`,
		`null`,
	} {
		if got := export(decode(t, text)); got != text {
			t.Errorf("%s exports as %s, want the same text", text, got)
		}
	}
}

func TestPlainLeavesPrioritiesOut(t *testing.T) {
	t.Parallel()
	text := `{".priority":1,"a":{".value":2,".priority":3},"b":{".priority":4,"c":5}}`
	if got, want := plain(decode(t, text)), `{"a":2,"b":{"c":5}}`; got != want {
		t.Errorf("%s reads as %s, want %s", text, got, want)
	}
}

func TestAppendStringEscapesOnlyWhatItMust(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                 `""`,
		"a/b<&>'":          `"a/b<&>'"`,
		"\b\f\n\r\t":       `"\b\f\n\r\t"`,
		"\x00\x0b\x1f":     `"\u0000\u000b\u001f"`,
		"\"\\":             `"\"\\"`,
		"\x7f\u2028\u2029": "\"\x7f\u2028\u2029\"",
		"é😀":               `"é😀"`,
	} {
		if got := string(tree.AppendString([]byte("x"), s)); got != "x"+want {
			t.Errorf("AppendString(x, %q) = %s, want x%s", s, got, want)
		}
	}
}

func TestAppendWithin(t *testing.T) {
	t.Parallel()
	r := random(t)
	g := generator{r}
	for range 300 {
		text := g.body()
		n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
		if err != nil || n.HasPlaceholders() {
			continue
		}
		for _, form := range []tree.Form{tree.Plain, tree.Export} {
			whole := tree.AppendJSON([]byte("before "), n, form)
			size := len(whole) - len("before ")
			for limit := range size + 2 {
				got, _, ok := tree.AppendWithin([]byte("before "), n, form, limit)
				if ok != (limit >= size) {
					t.Fatalf("AppendWithin(%s, %d) = %v, but it takes %d bytes", whole, limit, ok, size)
				}
				want := "before "
				if ok {
					want = string(whole)
				}
				if string(got) != want {
					t.Fatalf("AppendWithin(%s, %d) appended %q, want %q", whole, limit, got, want)
				}
			}
		}
	}
}

// flakyWriter fails once it has taken some bytes.
type flakyWriter struct {
	text []byte
	room int
}

func (f *flakyWriter) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, errBroken
	}
	f.room -= len(p)
	f.text = append(f.text, p...)
	return len(p), nil
}

func TestPrintJSONWritesWhatAppendJSONAppends(t *testing.T) {
	t.Parallel()
	g := generator{random(t)}
	texts := []string{"null", "1", "[1,null,2]", string(records(300)), "[" + strings.Repeat("[null,1],", 20_000) + "[]]"}
	for range 200 {
		texts = append(texts, g.body())
	}
	for _, text := range texts {
		n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
		if err != nil {
			continue
		}
		for _, form := range []tree.Form{tree.Plain, tree.Export} {
			want := string(tree.AppendJSON(nil, n, form))
			w := flakyWriter{room: len(want)}
			if err := tree.PrintJSON(&w, n, form); err != nil || string(w.text) != want {
				t.Fatalf("PrintJSON(%.100s) = %v and writes %d bytes, want %d", text, err, len(w.text), len(want))
			}
			w = flakyWriter{room: g.IntN(len(want))}
			if err := tree.PrintJSON(&w, n, form); !errors.Is(err, errBroken) || !strings.HasPrefix(want, string(w.text)) {
				t.Fatalf("PrintJSON(%.100s) to a broken connection = %v, want that error", text, err)
			}
		}
	}
}

func TestTraits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]tree.Traits{
		`null`:                                   {},
		`{"a":{"b":1}}`:                          {},
		`{"a":{".value":1,".priority":2}}`:       {Priorities: true},
		`{".priority":2,"a":1}`:                  {Priorities: true},
		`{"a":{"0":1}}`:                          {Arrays: true},
		`{"a":{"2":1}}`:                          {},
		`{"a":[1],"b":{".priority":"p","c":[]}}`: {Arrays: true},
		`[{".value":1,".priority":2}]`:           {Arrays: true, Priorities: true},
	} {
		for _, form := range []tree.Form{tree.Plain, tree.Export} {
			if _, got, ok := tree.AppendWithin(nil, decode(t, text), form, 1000); got != want || !ok {
				t.Errorf("the traits of %s are %+v, want %+v", text, got, want)
			}
		}
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	n := decode(t, record)
	buf := make([]byte, 0, 1000)
	if allocs := testing.AllocsPerRun(100, func() { buf = tree.AppendJSON(buf[:0], n, tree.Export) }); allocs > 0 {
		t.Errorf("printing a record allocates %v times, want none", allocs)
	}
}

func TestKindNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"null": "null", "true": "boolean", "1": "integer", "1.5": "double", `"a"`: "string", "[1]": "object",
		`{".sv":"timestamp"}`: "server value",
	} {
		if got := fmt.Sprint(decode(t, text).Kind()); got != want {
			t.Errorf("the kind of %s is %s, want %s", text, got, want)
		}
	}
}

// TestServerValuesPrint: what waits to be resolved prints as a client writes it, and reads back
// as the same.
func TestServerValuesPrint(t *testing.T) {
	for _, text := range []string{
		`{".sv":"timestamp"}`,
		`{".sv":{"increment":-3}}`,
		`{".sv":{"increment":0.5}}`,
		`{".sv":{"increment":1e+21}}`,
		`{".value":{".sv":"timestamp"},".priority":{".sv":{"increment":1}}}`,
		`{".priority":{".sv":"timestamp"},"a":{"b":{".sv":"timestamp"}}}`,
	} {
		n := decode(t, text)
		if got := string(tree.AppendJSON(nil, n, tree.Export)); got != text || !n.HasPlaceholders() {
			t.Errorf("%s prints as %s", text, got)
		}
	}
}
