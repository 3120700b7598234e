package tree_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// A looker shows Resolve what is in a node.
type looker struct{ tree.Node }

func (l looker) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	n := l.At(p)
	return n.Leaf(), n.Priority(), nil
}

const nowMillis = 1_767_225_600_123

func TestServerValues(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, old, body, want string }{
		{"timestamp", `null`, `{".sv":"timestamp"}`, `1767225600123`},
		{"timestamp over a number", `5`, `{".sv":"timestamp"}`, `1767225600123`},
		{"all timestamps of one request are one time", `null`, `{"a":{".sv":"timestamp"},"b":[{".sv":"timestamp"}]}`,
			`{"a":1767225600123,"b":{"0":1767225600123}}`},
		{"timestamp as priority", `null`, `{"a":1,".priority":{".sv":"timestamp"}}`, `{".priority":1767225600123,"a":1}`},
		{"timestamp as .value with priority", `null`, `{".value":{".sv":"timestamp"},".priority":"p"}`,
			`{".value":1767225600123,".priority":"p"}`},
		{"timestamp as both", `null`, `{"a":{".value":{".sv":"timestamp"},".priority":{".sv":"timestamp"}}}`,
			`{"a":{".value":1767225600123,".priority":1767225600123}}`},
		{"priority beside a deep timestamp", `null`, `{".priority":{".sv":"timestamp"},"a":{"b":{".sv":"timestamp"},"c":"x"}}`,
			`{".priority":1767225600123,"a":{"b":1767225600123,"c":"x"}}`},
		{"a priority without data stays nothing", `null`, `{"a":{".priority":{".sv":"timestamp"}},"b":1}`, `{"b":1}`},

		{"increment of an integer", `5`, `{".sv":{"increment":2}}`, `7`},
		{"increment by a negative", `5`, `{".sv":{"increment":-7}}`, `-2`},
		{"increment by zero", `5`, `{".sv":{"increment":0}}`, `5`},
		{"increment of a double", `0.5`, `{".sv":{"increment":2}}`, `2.5`},
		{"increment by a double", `5`, `{".sv":{"increment":0.25}}`, `5.25`},
		{"two doubles make an integer", `0.5`, `{".sv":{"increment":0.5}}`, `1`},
		{"increment of nothing", `null`, `{".sv":{"increment":2.0}}`, `2`},
		{"increment of a string", `"5"`, `{".sv":{"increment":2}}`, `2`},
		{"increment of a boolean", `true`, `{".sv":{"increment":2}}`, `2`},
		{"increment of an object", `{"a":1}`, `{".sv":{"increment":2}}`, `2`},
		{"increment of an object with priority", `{".priority":40,"a":1}`, `{".sv":{"increment":2}}`, `2`},
		{"increment below a leaf", `5`, `{"a":{".sv":{"increment":2}}}`, `{"a":2}`},
		{"increment inside", `{"a":{"b":1},"c":2}`, `{"a":{"b":{".sv":{"increment":1}},"x":0},"c":{".sv":{"increment":1}}}`,
			`{"a":{"b":2,"x":0},"c":3}`},
		{"increment in an array", `[10,20]`, `[{".sv":{"increment":1}},{".sv":{"increment":1}}]`, `{"0":11,"1":21}`},
		{"increment of a priority", `{".value":1,".priority":10}`, `{".value":{".sv":{"increment":1}},".priority":{".sv":{"increment":5}}}`,
			`{".value":2,".priority":15}`},
		{"increment of an object's priority", `{".priority":10,"a":7}`, `{".priority":{".sv":{"increment":5}},"a":1}`, `{".priority":15,"a":1}`},
		{"a priority does not add to the value", `{".value":1,".priority":10}`, `{".sv":{"increment":1}}`, `2`},
		{"increment and timestamp together", `1`, `{".value":{".sv":{"increment":1}},".priority":{".sv":"timestamp"}}`,
			`{".value":2,".priority":1767225600123}`},
		{"increment up to the largest int64", `9223372036854775806`, `{".sv":{"increment":1}}`, `9223372036854775807`},
		{"beyond int64 it is a double", `9223372036854775807`, `{".sv":{"increment":1}}`, `9.223372036854776e+18`},
		{"below int64 too", `-9223372036854775808`, `{".sv":{"increment":-1}}`, `-9.223372036854776e+18`},
		{"exact beyond 2^53", `9007199254740993`, `{".sv":{"increment":2}}`, `9007199254740995`},
		{"the largest double", `1.7976931348623157e308`, `{".sv":{"increment":1}}`, `1.7976931348623157e+308`},
		{"the largest double and the largest increment", `1.7976931348623157e308`, `{".sv":{"increment":9.979201547673598e291}}`, `1.7976931348623157e+308`},
		{"the least double and the least increment", `-1.7976931348623157e308`, `{".sv":{"increment":-9.979201547673598e291}}`, `-1.7976931348623157e+308`},
	} {
		t.Run(".sv/"+test.name, func(t *testing.T) {
			t.Parallel()
			sent := decode(t, test.body)
			if !sent.IsNull() && !sent.HasPlaceholders() {
				t.Errorf("%s has no server values, want some", test.body)
			}
			w, err := tree.Resolve(tree.Put(tree.Path{}, sent), nowMillis, looker{decode(t, test.old)})
			if err != nil {
				t.Fatalf("over %s, %s fails with %v", test.old, test.body, err)
			}
			got := w.Assignments[0].Node
			if export(got) != test.want || got.HasPlaceholders() || len(w.Increments()) > 0 {
				t.Errorf("over %s, %s becomes %s, want %s", test.old, test.body, export(got), test.want)
			}
			if again := decode(t, test.want); again.Kind() != got.Kind() {
				t.Errorf("over %s, %s becomes a %v, want a %v", test.old, test.body, got.Kind(), again.Kind())
			}
		})
	}
}

func TestServerValuesRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{".sv":"now"}`, `{".sv":""}`, `{".sv":"Timestamp"}`, `{".sv":1}`, `{".sv":null}`, `{".sv":true}`, `{".sv":[]}`, `{".sv":["timestamp"]}`,
		`{".sv":{}}`, `{".sv":{"increment":"1"}}`, `{".sv":{"increment":null}}`, `{".sv":{"increment":{}}}`, `{".sv":{"decrement":1}}`,
		`{".sv":{"increment":1,"x":1}}`, `{".sv":{"increment":1,"increment":1}}`, `{".sv":{"x":1,"increment":1}}`,
		`{".sv":{"increment":9.9792015476736e291}}`, `{".sv":{"increment":-1e308}}`, `{".priority":{".sv":{"increment":1e308}},".value":1}`,
		`{".sv":{"increment":1e999}}`, `{".sv":{"increment":01}}`, `{".sv":{"increment":{".sv":"timestamp"}}}`,
		`{".sv":"timestamp","a":1}`, `{"a":1,".sv":"timestamp"}`, `{".sv":"timestamp","a":null}`, `{".sv":"timestamp",".priority":1}`,
		`{".sv":"timestamp",".value":1}`, `{".sv":"timestamp",".sv":"timestamp"}`, `{".value":{".sv":"timestamp","a":1}}`,
		`{".value":{"a":1,".sv":"timestamp"}}`, `{".priority":{".sv":"now"},"a":1}`, `{".value":{".sv":"timestamp"}`,
	} {
		if n, err := tree.DecodeBytes([]byte(body), tree.DecodeOptions{}); err == nil {
			t.Errorf("%s is accepted as %v, want it refused", body, n.Kind())
		}
	}
}

func TestResolvePatch(t *testing.T) {
	t.Parallel()
	old := decode(t, `{"p":{".priority":7,"n":1,"m":{"k":10,"l":"x"}}}`)
	body := `{"n":{".sv":{"increment":1}},"m/k":{".sv":{"increment":1}},"t":{".sv":"timestamp"},"s":"plain",` +
		`".priority":{".sv":{"increment":1}},"gone":null}`
	w, err := tree.DecodePatch(strings.NewReader(body), path(t, "/p"), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%+v", w)
	got, err := tree.Resolve(w, nowMillis, looker{old})
	if err != nil {
		t.Fatal(err)
	}
	want := `/p/n = 2; /p/m/k = 11; /p/t = 1767225600123; /p/s = "plain"; /p/.priority = 8; /p/gone = null`
	if assignments(got) != want {
		t.Errorf("the patch resolves to %s, want %s", assignments(got), want)
	}
	if after := fmt.Sprintf("%+v", w); after != before || !w.Assignments[0].Node.HasPlaceholders() {
		t.Errorf("Resolve changed the write it was given from %s to %s", before, after)
	}
	if again, err := tree.Resolve(w, nowMillis+1, looker{}); err != nil || assignments(again) == want {
		t.Errorf("resolved a second time, with other data, the patch is %s, %v", assignments(again), err)
	}
}

func TestResolvePutPriority(t *testing.T) {
	t.Parallel()
	n, err := tree.DecodePriority(strings.NewReader(`{".sv":{"increment":5}}`), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := tree.PutPriority(path(t, "/a"), n)
	if got := w.Increments(); !slices.Equal(got, []tree.Path{path(t, "/a")}) {
		t.Errorf("the increments are below %v, want /a", got)
	}
	w, err = tree.Resolve(w, nowMillis, looker{decode(t, `{"a":{".value":100,".priority":1}}`)})
	if err != nil || assignments(w) != "/a/.priority = 6" {
		t.Errorf("the priority 1, incremented by 5, is %s, %v; want 6", assignments(w), err)
	}
}

func TestResolveWithoutServerValuesLooksAtNothing(t *testing.T) {
	t.Parallel()
	w := tree.Put(path(t, "/a"), decode(t, `{"b":1}`))
	got, err := tree.Resolve(w, nowMillis, nil)
	if err != nil || assignments(got) != assignments(w) || len(w.Increments()) != 0 {
		t.Errorf("Resolve = %s, %v; want the write itself", assignments(got), err)
	}
	w = tree.Put(path(t, "/a"), decode(t, `{".sv":"timestamp"}`))
	if got, err := tree.Resolve(w, nowMillis, nil); err != nil || assignments(got) != "/a = 1767225600123" {
		t.Errorf("Resolve = %s, %v; want the time", assignments(got), err)
	}
}

type brokenLooker struct{ error }

func (b brokenLooker) Look(tree.Path) (leaf, priority tree.Leaf, err error) {
	return leaf, priority, b.error
}

func TestResolveReturnsTheErrorOfLook(t *testing.T) {
	t.Parallel()
	errDisk := errors.New("disk")
	for _, body := range []string{
		`{".sv":{"increment":1}}`, `{"a":{"b":{".sv":{"increment":1}}}}`, `{".value":{".sv":{"increment":1}},".priority":1}`,
		`{".value":1,".priority":{".sv":{"increment":1}}}`,
	} {
		if _, err := tree.Resolve(tree.Put(tree.Path{}, decode(t, body)), 0, brokenLooker{errDisk}); !errors.Is(err, errDisk) {
			t.Errorf("when Look fails, Resolve(%s) fails with %v, want that error", body, err)
		}
	}
}

// TestResolveTakesLinearTime would take half a minute if every assignment meant
// another look at all nodes.
func TestResolveTakesLinearTime(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	const assigned = 100_000
	for i := range assigned {
		fmt.Fprintf(&body, `"k%d":0,`, i)
	}
	w, err := tree.DecodePatch(strings.NewReader(`{`+body.String()+`"n":{".sv":{"increment":1}}}`), tree.Path{}, tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(w.Increments()); got == 0 {
		t.Error("the write has no increments, want one")
	}
	if w, err = tree.Resolve(w, nowMillis, looker{}); err != nil || plain(w.Assignments[assigned].Node) != "1" {
		t.Errorf("the last assignment is %s, %v; want 1", plain(w.Assignments[assigned].Node), err)
	}
}

// TestRedate: a write with another time is the write that was resolved at that time,
// and the one before stays as it was.
func TestRedate(t *testing.T) {
	t.Parallel()
	const laterMillis = nowMillis + 5
	old := looker{decode(t, `{"n":7}`)}
	for _, body := range []string{
		`{".sv":"timestamp"}`, `{"a":{".sv":"timestamp"},"n":{".sv":{"increment":1}},"s":"x"}`,
		`{".value":{".sv":"timestamp"},".priority":{".sv":"timestamp"}}`, `{".priority":{".sv":"timestamp"},"a":[1,{".sv":"timestamp"}]}`,
		`{"a":1767225600123}`, `null`,
	} {
		resolve := func(millis int64) tree.Write {
			w, err := tree.Resolve(tree.Put(tree.Path{}, decode(t, body)), millis, old)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		w := resolve(nowMillis)
		before := assignments(w)
		got, want := w.Redate(laterMillis), resolve(laterMillis)
		if assignments(got) != assignments(want) || !tree.Equal(got.Assignments[0].Node, want.Assignments[0].Node) {
			t.Errorf("%s of another time is %s, want %s", body, assignments(got), assignments(want))
		}
		if assignments(w) != before {
			t.Errorf("Redate changed what %s was from %s to %s", body, before, assignments(w))
		}
		editor := tree.NewEditor(decode(t, `{"x":1}`))
		editor.Set(path(t, "/y"), got.Assignments[0].Node)
		copied := editor.Node()
		if n := copied.Child("y"); !tree.Equal(n, want.Assignments[0].Node) {
			t.Errorf("%s of another time is %s in another node, want %s", body, export(n), assignments(want))
		}
	}
}

// TestRedateTakesNoCopy of the nodes: it is done at the turn of a large write.
func TestRedateTakesNoCopy(t *testing.T) {
	sizes := map[int]float64{}
	for _, n := range []int{1, 10_000} {
		body := `{"a":[{".sv":"timestamp"}` + strings.Repeat(`,{".sv":"timestamp"}`, n-1) + `]}`
		w, err := tree.Resolve(tree.Put(tree.Path{}, decode(t, body)), nowMillis, looker{})
		if err != nil {
			t.Fatal(err)
		}
		sizes[n] = testing.AllocsPerRun(10, func() { w.Redate(nowMillis + 1) })
	}
	if sizes[1] != sizes[10_000] || sizes[1] > 2 {
		t.Errorf("Redate takes %v allocations for one timestamp and %v for 10,000, want 2 for each", sizes[1], sizes[10_000])
	}
}

// TestAppendNoting: a timestamp is noted where its text begins, and nothing else is.
func TestAppendNoting(t *testing.T) {
	t.Parallel()
	body := `{"a":{".sv":"timestamp"},"b":1767225600123,"c":{".value":{".sv":"timestamp"},".priority":{".sv":"timestamp"}},` +
		`"d":[{".sv":"timestamp"},{".sv":"timestamp"}],"e":{".priority":{".sv":"timestamp"},"x":{".sv":{"increment":1767225600123}}}}`
	w, err := tree.Resolve(tree.Put(tree.Path{}, decode(t, body)), nowMillis, looker{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		form tree.Form
		want string
	}{
		{tree.Plain, `{"a":T,"b":1767225600123,"c":T,"d":[T,T],"e":{"x":1767225600123}}`},
		{tree.Export, `{"a":T,"b":1767225600123,"c":{".value":T,".priority":T},"d":{"0":T,"1":T},"e":{".priority":T,"x":1767225600123}}`},
	} {
		const start = "before "
		var times []int
		text, _, fits := tree.AppendNoting([]byte(start), w.Assignments[0].Node, c.form, 1000, &times)
		if !fits {
			t.Fatal("the text does not fit")
		}
		for _, at := range slices.Backward(times) { // they are in the order of the text here
			text = slices.Replace(text, at, at+len("1767225600123"), 'T')
		}
		if got := string(text); got != start+c.want {
			t.Errorf("with T for each noted time the text is %s, want %s", got, start+c.want)
		}
	}
}
