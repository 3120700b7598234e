package query_test

import (
	"math"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

func path(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParse(t *testing.T) {
	t.Parallel()
	at := func(l tree.Leaf) query.Bound { return query.Bound{Set: true, Value: l} }
	number := tree.IntegerLeaf
	n := query.ByChild(path(t, "n"))
	tests := []struct {
		text string
		want query.Query
	}{
		{`orderBy="$key"`, query.Query{}},
		{`orderBy="$value"`, query.Query{Order: query.ByValue()}},
		{`orderBy="$priority"`, query.Query{Order: query.ByPriority()}},
		{`orderBy="n"`, query.Query{Order: n}},
		{`orderBy="a/b/c"`, query.Query{Order: query.ByChild(path(t, "a/b/c"))}},
		{`orderBy= "\u006e" `, query.Query{Order: n}},
		{`orderBy="n"&limitToFirst=1`, query.Query{Order: n, Limit: 1}},
		{`orderBy="n"&limitToLast=2147483647`, query.Query{Order: n, Limit: math.MaxInt32, Last: true}},
		{`orderBy="n"&startAt=5`, query.Query{Order: n, Lower: at(number(5))}},
		{`orderBy="n"&startAt=5.0`, query.Query{Order: n, Lower: at(number(5))}},
		{`orderBy="n"&startAfter=-1.5`, query.Query{Order: n, Lower: query.Bound{Set: true, Value: tree.DoubleLeaf(-1.5), Exclusive: true}}},
		{`orderBy="n"&endAt=true`, query.Query{Order: n, Upper: at(tree.BooleanLeaf(true))}},
		{`orderBy="n"&endBefore=null`, query.Query{Order: n, Upper: query.Bound{Set: true, Exclusive: true}}},
		{`orderBy="n"&equalTo="x"`, query.Query{Order: n, Lower: at(tree.StringLeaf("x")), Upper: at(tree.StringLeaf("x"))}},
		{`orderBy="n"&startAt=9223372036854775807`, query.Query{Order: n, Lower: at(number(math.MaxInt64))}},
		{`orderBy="n"&startAt=1,"k"`, query.Query{Order: n, Lower: query.Bound{Set: true, Value: number(1), Key: "k"}}},
		{`orderBy="n"&endBefore= "a" , "k" `, query.Query{Order: n, Upper: query.Bound{Set: true, Value: tree.StringLeaf("a"), Key: "k", Exclusive: true}}},
		{`orderBy="$key"&startAt="not/a.key"`, query.Query{Lower: at(tree.StringLeaf("not/a.key"))}},
		{`orderBy="$priority"&startAt=null`, query.Query{Order: query.ByPriority(), Lower: at(tree.Leaf{})}},
		{`orderBy="n"&print=pretty&auth=x`, query.Query{Order: n}},
	}
	for _, test := range tests {
		if got := parse(t, split(t, test.text)); got != test.want {
			t.Errorf("Parse(%s) = %+v, want %+v", test.text, got, test.want)
		}
	}
}

func TestParseOfNoQuery(t *testing.T) {
	t.Parallel()
	q, ok, err := query.Parse(in(split(t, `print=pretty&shallow=true`)))
	if q != (query.Query{}) || ok || err != nil {
		t.Errorf("Parse without orderBy = %+v, %v, %v; want no query", q, ok, err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const (
		noOrder    = "orderBy must be defined when other query parameters are defined"
		badOrder   = "orderBy must be a valid JSON encoded path"
		badValue   = "Constraint index field must be a JSON primitive"
		badKey     = "Constraint key field must be a valid key name"
		bothLimits = "Only one of limitToFirst and limitToLast may be specified"
		equalRange = "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore"
		keyType    = "Provided key index type is invalid, must be string"
	)
	long := strings.Repeat("x", query.MaxParameterBytes)
	tests := []struct{ text, want string }{
		{`limitToFirst=1`, noOrder},
		{`limitToLast=x`, noOrder},
		{`startAt=1`, noOrder},
		{`startAfter=1`, noOrder},
		{`endAt=1`, noOrder},
		{`endBefore=1`, noOrder},
		{`equalTo=`, noOrder},

		{`orderBy=`, badOrder},
		{`orderBy=name`, badOrder},
		{`orderBy='name'`, badOrder},
		{`orderBy=5`, badOrder},
		{`orderBy=null`, badOrder},
		{`orderBy=["a"]`, badOrder},
		{`orderBy={".value":"a"}`, badOrder},
		{`orderBy="a`, badOrder},
		{`orderBy="a""b"`, badOrder},
		{`orderBy="\ud83d"`, badOrder},
		{`orderBy=""`, badOrder},
		{`orderBy="/"`, badOrder},
		{`orderBy="$foo"`, badOrder},
		{`orderBy="a/$key"`, badOrder},
		{`orderBy=".priority"`, badOrder},
		{`orderBy="a.b"`, badOrder},
		{`orderBy="a%00"`, badOrder},
		{`orderBy="` + strings.Repeat("a/", 33) + `"`, badOrder},
		{`orderBy="` + strings.Repeat("a/", 1000) + `"`, badOrder},
		{`orderBy="` + strings.Repeat("a", 769) + `"`, badOrder},
		{`orderBy="` + long + `"`, "orderBy is longer than 65536 bytes"},

		{`orderBy="a"&limitToFirst=1&limitToLast=1`, bothLimits},
		{`orderBy="a"&limitToFirst=0`, "limitToFirst must be positive"},
		{`orderBy="a"&limitToFirst=-1`, "limitToFirst must be positive"},
		{`orderBy="a"&limitToLast=0`, "limitToLast must be positive"},
		{`orderBy="a"&limitToLast=1.5`, "limitToLast must be an integer"},
		{`orderBy="a"&limitToFirst="5"`, "limitToFirst must be an integer"},
		{`orderBy="a"&limitToFirst=`, "limitToFirst must be an integer"},
		{`orderBy="a"&limitToFirst=1e3`, "limitToFirst must be an integer"},
		{`orderBy="a"&limitToFirst=2147483648`, "limitToFirst must be an integer"},
		{`orderBy="a"&limitToFirst=9223372036854775808`, "limitToFirst must be an integer"},

		{`orderBy="a"&equalTo=1&startAt=1`, equalRange},
		{`orderBy="a"&equalTo=1&startAfter=1`, equalRange},
		{`orderBy="a"&equalTo=1&endAt=1`, equalRange},
		{`orderBy="a"&equalTo=1&endBefore=1`, equalRange},
		{`orderBy="a"&startAt=1&startAfter=1`, "Only one of startAt and startAfter may be specified"},
		{`orderBy="a"&endAt=1&endBefore=1`, "Only one of endAt and endBefore may be specified"},

		{`orderBy="a"&startAt=`, badValue},
		{`orderBy="a"&startAt=abc`, badValue},
		{`orderBy="a"&endAt=abc,"k"`, badValue},
		{`orderBy="a"&equalTo={}`, badValue},
		{`orderBy="a"&equalTo=[]`, badValue},
		{`orderBy="a"&equalTo={".value":1}`, badValue},
		{`orderBy="a"&equalTo={".sv":"timestamp"}`, badValue},
		{`orderBy="a"&startAfter=1 2`, badValue},
		{`orderBy="a"&startAfter="x`, badValue},
		{`orderBy="a"&startAfter="x"y`, badValue},
		{`orderBy="a"&endBefore=1e999`, badValue},
		{`orderBy="a"&endBefore=01`, badValue},
		{`orderBy="a"&endBefore=NaN`, badValue},
		{`orderBy="a"&startAt="\ud83d"`, badValue},
		{`orderBy="a"&startAt="%ff"`, badValue},
		{`orderBy="a"&startAt=,"k"`, badValue},
		{`orderBy="a"&startAt="` + long + `"`, "startAt is longer than 65536 bytes"},
		{`orderBy="a"&equalTo="` + strings.Repeat("x", 1<<20) + `"`, "equalTo is longer than 65536 bytes"},

		{`orderBy="a"&startAt=1,`, badKey},
		{`orderBy="a"&startAt=1,k`, badKey},
		{`orderBy="a"&startAt=1,5`, badKey},
		{`orderBy="a"&startAt=1,""`, badKey},
		{`orderBy="a"&startAt=1,"a/b"`, badKey},
		{`orderBy="a"&startAt=1,"a","b"`, badKey},
		{`orderBy="a"&startAt="x","[MAX_NAME"`, badKey},

		{`orderBy="$key"&startAt=5`, keyType},
		{`orderBy="$key"&endAt=null`, keyType},
		{`orderBy="$key"&equalTo=true`, keyType},
		{`orderBy="$key"&equalTo=abc`, badValue},
		{`orderBy="$key"&equalTo="a","b"`, `equalTo takes no second key when orderBy is "$key"`},
		{`orderBy="$priority"&equalTo=true`, "Provided priority index type is invalid, must be null, number or string"},
	}
	for _, test := range tests {
		_, ok, err := query.Parse(in(split(t, test.text)))
		if got := fault.Public(err); ok || fault.KindOf(err) != fault.Invalid || got != test.want {
			t.Errorf("Parse(%.80s) = %v, %v: %q; want invalid: %q", test.text, ok, fault.KindOf(err), got, test.want)
		}
	}
}

// FuzzQueryParse holds that no parameters crash the parser, that what it
// accepts is a query in itself, and what it refuses is the client's mistake.
func FuzzQueryParse(f *testing.F) {
	f.Add(`"$key"`, "1", `"a"`, `"b"`, uint8(0))
	f.Add(`"a/b"`, "-1", `1,"k"`, `"a,b","[MAX_NAME]"`, uint8(0xFF))
	f.Add(`"$value"`, "99999999999", `null`, `{"a":1}`, uint8(0x15))
	f.Add(`"$priority"`, "", `"\ud83d"`, ` "x\\" , "k" `, uint8(0x2A))
	f.Fuzz(func(t *testing.T, order, limit, from, to string, present uint8) {
		names := []string{"orderBy", "limitToFirst", "limitToLast", "startAt", "startAfter", "endAt", "endBefore", "equalTo"}
		values := []string{order, limit, limit, from, from, to, to, to}
		parameters := map[string]string{}
		for i, name := range names {
			if present&(1<<i) != 0 || i == 0 {
				parameters[name] = values[i]
			}
		}
		q, ok, err := query.Parse(in(parameters))
		if ok != (err == nil) || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Fatalf("Parse(%q) = %v, %v; want a query or an invalid fault", parameters, ok, err)
		}
		checkQuery(t, q)
	})
}

// checkQuery holds what every parsed query, or none, is like.
func checkQuery(t *testing.T, q query.Query) {
	t.Helper()
	if q.Limit < 0 || q.Limit > math.MaxInt32 || q.Last && q.Limit == 0 {
		t.Errorf("%+v has no proper limit", q)
	}
	for _, b := range []query.Bound{q.Lower, q.Upper} {
		if !b.Set && b != (query.Bound{}) {
			t.Errorf("%+v has half a bound", q)
		}
		if b.Key != "" && tree.CheckKey(b.Key) != nil {
			t.Errorf("%+v has an invalid key", q)
		}
		if b.Set && q.Order == query.ByKey() && (b.Value.Kind() != tree.String || b.Key != "") {
			t.Errorf("%+v is ordered by key, but its bound is none", q)
		}
	}
	for _, n := range []string{`{"a":1,"b":{"b":"x"},"7":null,"07":true}`, `5`} {
		query.Select(decode(t, n), q)
	}
}
