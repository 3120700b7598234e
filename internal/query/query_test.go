package query_test

import (
	"flag"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 draws one")

// random returns a source of which a failing test tells the seed.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: go test ./internal/query -run '^%s$' -seed %d", t.Name(), seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// decode reads a body.
func decode(t testing.TB, text string) tree.Node {
	t.Helper()
	n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return n
}

// parse reads the parameters of a request, which must be a query.
func parse(t testing.TB, parameters map[string]string) query.Query {
	t.Helper()
	q, ok, err := query.Parse(in(parameters))
	if err != nil || !ok {
		t.Fatalf("Parse(%v) = %v, %v; want a query", parameters, ok, err)
	}
	return q
}

// in returns a lookup of parameters.
func in(parameters map[string]string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := parameters[name]
		return value, ok
	}
}

// split reads a query string, each parameter of which is there once.
func split(t testing.TB, text string) map[string]string {
	t.Helper()
	values, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	parameters := map[string]string{}
	for name, list := range values {
		parameters[name] = list[0]
	}
	return parameters
}

// checkSelect wants a query string to select keys, separated by spaces.
func checkSelect(t *testing.T, body, text, want string) {
	t.Helper()
	got := query.Select(decode(t, body), parse(t, split(t, text)))
	if !slices.Equal(got, strings.Fields(want)) {
		t.Errorf("of %s\n%s selects %q, want %q", body, text, got, strings.Fields(want))
	}
}

// types has one child of each type that values have, the first of each twice.
const types = `{"o1":{"v":{"a":0}},"o2":{"v":{"a":9}},"s2":{"v":"b"},"s1":{"v":"a"},"s3":{"v":"a"},
	"n1":{"v":1},"n3":{"v":1},"n2":{"v":-2.5},"t2":{"v":true},"t1":{"v":true},"f2":{"v":false},"f1":{"v":false},
	"none":{"x":1},"leaf":7}`

func TestSpecFilteringRules(t *testing.T) {
	t.Parallel()
	const ages = `{"ann":{"age":30,"name":{"last":"Lee"}},"ben":{"age":25,"name":{"last":"Kim"}},"cat":{"age":30},"dan":{"name":"Dan"}}`
	const words = `{"a":"apple","b":"b","c":"ball","d":"b😀","e":"c","f":"b\uf8ff","g":"b\uf900","h":7}`
	const priorities = `{"a":{".value":1,".priority":2},"b":{".value":1,".priority":"x"},"c":3}`
	tests := []struct{ sentence, body, query, want string }{
		{"1 orderBy is combined with one or more", ages, `orderBy="age"&startAt=25&endAt=30&limitToLast=1`, "cat"},
		{"1 orderBy alone, an extension", ages, `orderBy="age"`, "dan ben ann cat"},
		{"3 by child key", ages, `orderBy="age"&equalTo=30`, "ann cat"},
		{"3 by a nested path", ages, `orderBy="name/last"&startAt="Kim"`, "ben ann"},
		{"3 by a nested path with slashes around", ages, `orderBy="/name//last/"&startAt="Kim"`, "ben ann"},
		{"3 by key name", ages, `orderBy="$key"&startAt="b"&endAt="cat"`, "ben cat"},
		{"3 by value", words, `orderBy="$value"&equalTo=7`, "h"},
		{"3 by priority", priorities, `orderBy="$priority"&startAt=0`, "a b"},
		{"4 a node that lacks the child key has null", ages, `orderBy="age"&equalTo=null`, "dan"},
		{"4 also if a leaf is on the path", ages, `orderBy="name/last"&endAt=null`, "cat dan"},
		{"5 startAt is inclusive", ages, `orderBy="age"&startAt=30`, "ann cat"},
		{"5 endAt is inclusive", ages, `orderBy="age"&endAt=25`, "dan ben"},
		{"6 prefix match", words, `orderBy="$value"&startAt="b"&endAt="b\uf8ff"`, "b c d f"},
		{"6 prefix match by key", ages, `orderBy="$key"&startAt="b"&endAt="b\uf8ff"`, "ben"},
		{"7 at most N from the start", ages, `orderBy="age"&limitToFirst=2`, "dan ben"},
		{"7 at most N from the end", ages, `orderBy="age"&limitToLast=2`, "ann cat"},
		{"7 fewer are all returned", ages, `orderBy="age"&limitToFirst=5`, "dan ben ann cat"},
		{"7 fewer from the end are all returned", ages, `orderBy="age"&limitToLast=5`, "dan ben ann cat"},
		{"7 only matching children count", ages, `orderBy="age"&startAt=26&limitToFirst=1`, "ann"},
		{"a filter on a leaf", `7`, `orderBy="$value"&startAt=1`, ""},
		{"a filter on nothing", `null`, `orderBy="$key"&limitToFirst=1`, ""},
		{"a filter on an array", `[5,null,3]`, `orderBy="$value"&limitToFirst=1`, "2"},
	}
	for _, test := range tests {
		t.Run(test.sentence, func(t *testing.T) { checkSelect(t, test.body, test.query, test.want) })
	}
}

func TestSpecOrderingRules(t *testing.T) {
	t.Parallel()
	const keys = `{"10":1,"9":1,"-3":1,"007":1,"7":1,"-0":1,"b":1,"2147483648":1,"B":1,"é":1}`
	const priorities = `{"z":1,"2":1,"10":1,"p":{".value":1,".priority":10},"q":{".value":1,".priority":9.5},
		"r":{".value":1,".priority":"9"},"s":{".value":1,".priority":"10"},"1":{".value":1,".priority":10}}`
	tests := []struct{ sentence, body, query, want string }{
		{"null, false, true, numbers, strings, objects", types, `orderBy="v"`, "leaf none f1 f2 t1 t2 n2 n1 n3 s1 s3 s2 o1 o2"},
		{"1 null values first", types, `orderBy="v"&limitToFirst=2`, "leaf none"},
		{"2 false, ties sorted by key", types, `orderBy="v"&equalTo=false`, "f1 f2"},
		{"3 true, ties sorted by key", types, `orderBy="v"&equalTo=true`, "t1 t2"},
		{"4 numbers ascending, ties by key", types, `orderBy="v"&startAt=-100&endBefore=""`, "n2 n1 n3"},
		{"5 strings, ties by key", types, `orderBy="v"&startAt=""&endAt="z"`, "s1 s3 s2"},
		{"6 objects last, by key", types, `orderBy="v"&limitToLast=2`, "o1 o2"},
		{"6 objects are behind every bound", types, `orderBy="v"&startAfter="z"`, "o1 o2"},
		{"$value takes the node's own value", `{"o":{"a":1},"s":"1","n":1,"t":true,"f":false}`, `orderBy="$value"`, "f t n s o"},
		{"$key: integers first, then the others", keys, `orderBy="$key"`, "-3 -0 7 007 9 10 2147483648 B b é"},
		{"$key: bounds are compared as keys", keys, `orderBy="$key"&startAt="8"&endAt="B"`, "9 10 2147483648 B"},
		{"$priority: none, numbers, strings, ties by key", priorities, `orderBy="$priority"`, "2 10 z q 1 p s r"},
		{"exact integers", `{"a":9007199254740993,"b":9007199254740992,"c":9007199254740992.0,"d":9007199254740994}`,
			`orderBy="$value"&startAfter=9007199254740992`, "a d"},
	}
	for _, test := range tests {
		t.Run(test.sentence, func(t *testing.T) { checkSelect(t, test.body, test.query, test.want) })
	}
}

// TestBoundsThatTheSpecLacks are the extensions, as the SDKs have them.
func TestBoundsThatTheSpecLacks(t *testing.T) {
	t.Parallel()
	const ties = `{"a":5,"b":5,"c":5,"7":5,"d":6,"e":4}`
	tests := []struct{ name, body, query, want string }{
		{"startAfter leaves out all of the value", ties, `orderBy="$value"&startAfter=5`, "d"},
		{"endBefore leaves out all of the value", ties, `orderBy="$value"&endBefore=5`, "e"},
		{"startAt with a key", ties, `orderBy="$value"&startAt=5,"b"`, "b c d"},
		{"startAfter with a key", ties, `orderBy="$value"&startAfter=5,"b"`, "c d"},
		{"endAt with a key", ties, `orderBy="$value"&endAt=5,"b"`, "e 7 a b"},
		{"endBefore with a key", ties, `orderBy="$value"&endBefore=5,"b"`, "e 7 a"},
		{"equalTo with a key", ties, `orderBy="$value"&equalTo=5,"b"`, "b"},
		{"equalTo with the key of another value", ties, `orderBy="$value"&equalTo=5,"d"`, ""},
		{"a key that is not there", ties, `orderBy="$value"&startAt=5,"bb"`, "c d"},
		{"a comma and a quote within the value", `{"x":"a,\"","y":"b"}`, `orderBy="$value"&equalTo="a,\"","x"`, "x"},
		{"the least name of the SDKs", ties, `orderBy="$value"&endBefore=5,"[MIN_NAME]"`, "e"},
		{"the greatest name of the SDKs", ties, `orderBy="$value"&startAfter=5,"[MAX_NAME]"`, "d"},
		{"the least name in front", ties, `orderBy="$value"&startAfter=5,"[MIN_NAME]"`, "7 a b c d"},
		{"the greatest name behind", ties, `orderBy="$value"&endBefore=5,"[MAX_NAME]"`, "e 7 a b c"},
		{"bounds out of order", ties, `orderBy="$value"&startAt=6&endAt=5`, ""},
		{"startAt null", types, `orderBy="v"&startAt=null&limitToFirst=3`, "leaf none f1"},
		{"startAfter null", types, `orderBy="v"&startAfter=null&limitToFirst=1`, "f1"},
		{"endAt of a value has the nulls", types, `orderBy="v"&endAt=false`, "leaf none f1 f2"},
		{"endBefore of a value has the nulls", types, `orderBy="v"&endBefore=false`, "leaf none"},
		{"endBefore null", types, `orderBy="v"&endBefore=null`, ""},
		{"null with a key", types, `orderBy="v"&startAfter=null,"leaf"&limitToFirst=1`, "none"},
		{"startAfter a key", ties, `orderBy="$key"&startAfter="7"&endBefore="c"`, "a b"},
		{"the empty key is behind the integers", ties, `orderBy="$key"&endAt=""`, "7"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { checkSelect(t, test.body, test.query, test.want) })
	}
}
