package denials_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/denials"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

func node(t testing.TB, text string) tree.Node {
	t.Helper()
	n, err := tree.Decode(strings.NewReader(text), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func path(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const shop = 7 // an epoch

// denied has a request judged that the witness of a board sees.
func denied(t testing.TB, b *denials.Board, document string, q denials.Request, auth string) {
	t.Helper()
	ruleset, err := rules.Compile(document)
	if err != nil {
		t.Fatal(err)
	}
	w := b.Witness(shop, q)
	request := rules.Request{Auth: node(t, auth), NowMillis: 1000, Observe: w.Observe()}
	var d rules.Decision
	if q.Verb == denials.Read {
		d, err = ruleset.Read(request, rules.InNode(tree.Node{}), q.Path, rules.Query{})
	} else {
		d, err = ruleset.Write(request, rules.InNode(tree.Node{}), q.Write)
	}
	if err != nil || d.Allowed {
		t.Fatalf("%+v is allowed, %v", q, err)
	}
	w.Denied(request.Auth, 1000, d.Rule)
}

// TestEntries: an entry has what the rules saw, and the rules.
func TestEntries(t *testing.T) {
	t.Parallel()
	const document = "{\"rules\":{\"a\":{\n\".read\":\"auth.uid == 'bob'\",\n\".write\":\"true\",\".validate\":\"newData.isString()\"}}}"
	patch, err := tree.DecodePatch(strings.NewReader(`{"x/y":1,"z":{".sv":"timestamp"}}`), path(t, "/b"), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q, _, err := query.Parse(func(name string) (string, bool) {
		value, ok := map[string]string{"orderBy": `"n"`, "limitToLast": "3"}[name]
		return value, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	deep := path(t, "/a"+strings.Repeat("/"+strings.Repeat("k", 700), 4))
	const readTrace = `"trace":[{"path":"/a","kind":".read","line":2,"column":9,"text":"auth.uid == 'bob'","outcome":"false"}]`
	for _, test := range []struct {
		request    denials.Request
		auth, want string
	}{
		{denials.Request{Verb: denials.Read, Path: path(t, "/a/b"), Query: &q}, `{"uid":"eve"}`,
			`{"time":1000,"verb":"read","path":"/a/b","auth":"{\"uid\":\"eve\"}","query":{"limitToLast":"3","orderBy":"\"n\""},` + readTrace + `}`},
		{denials.OfWrite(tree.Put(path(t, "/a"), node(t, `{".value":9007199254740993,".priority":1}`)), false), `null`,
			`{"time":1000,"verb":"put","path":"/a","auth":"null","data":"{\".value\":9007199254740993,\".priority\":1}",` +
				`"by":{"path":"/a","kind":".validate","line":3,"column":29},` +
				`"trace":[{"path":"/a","kind":".validate","line":3,"column":29,"text":"newData.isString()","outcome":"false"}]}`},
		{denials.OfWrite(patch, false), `null`, `{"time":1000,"verb":"patch","path":"/b","auth":"null","data":"{\"x/y\":1,\"z\":{\".sv\":\"timestamp\"}}","trace":[]}`},
		{denials.OfWrite(tree.Put(path(t, "/b"), node(t, `1`)), true), `null`, `{"time":1000,"verb":"post","path":"/b","auth":"null","data":"1","trace":[]}`},
		{denials.OfWrite(tree.Put(path(t, "/b"), tree.Node{}), false), `null`, `{"time":1000,"verb":"delete","path":"/b","auth":"null","trace":[]}`},
		{denials.OfWrite(tree.PutPriority(path(t, "/b"), node(t, `1`)), false), `null`, `{"time":1000,"verb":"put","path":"/b","auth":"null","trace":[]}`},
		{denials.OfWrite(tree.Put(path(t, "/b"), node(t, `"`+strings.Repeat("x", 5000)+`"`)), false), `null`,
			`{"time":1000,"verb":"put","path":"/b","auth":"null","cut":true,"trace":[]}`},
		{denials.Request{Verb: denials.Read, Path: path(t, "/b")}, `{"uid":"` + strings.Repeat("u", 3000) + `"}`,
			`{"time":1000,"verb":"read","path":"/b","auth":"","cut":true,"trace":[]}`},
		{denials.Request{Verb: denials.Read, Path: deep}, `null`,
			`{"time":1000,"verb":"read","path":"` + deep.String()[:2048] + `…","auth":"null","cut":true,` +
				strings.ReplaceAll(readTrace, "false", "error\",\"error\":\"No such method/property 'uid'.") + `}`},
	} {
		b := &denials.Board{}
		look := b.Look(shop, 0)
		denied(t, b, document, test.request, test.auth)
		entries, skipped := look.Next()
		if len(entries) != 1 || skipped != 0 {
			t.Errorf("%+v is told as %d entries, %d skipped", test.request, len(entries), skipped)
			continue
		}
		var got strings.Builder
		e := json.NewEncoder(&got)
		e.SetEscapeHTML(false)
		if err := e.Encode(entries[0]); err != nil {
			t.Fatal(err)
		}
		want, text := test.want, strings.TrimSpace(got.String())
		if test.request.Path == deep { // how a failure is worded is not ours to say
			want, text = want[:2100], text[:2100]
		}
		if text != want {
			t.Errorf("%s %.60s is told as\n%s, want\n%s", test.request.Verb, test.request.Path, text, want)
		}
		look.Close()
	}
}

// TestUnwatched: while nobody looks nobody sees, and nothing is kept of before.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	b := &denials.Board{}
	request := denials.Request{Verb: denials.Read, Path: path(t, "/a")}
	if w := b.Witness(shop, request); w != nil || w.Observe() != nil {
		t.Errorf("a board that nobody looks at has the witness %v", w)
	}
	look := b.Look(shop, 0)
	if w := b.Witness(shop+1, request); w != nil {
		t.Error("a database that nobody looks at has a witness")
	}
	late := b.Witness(shop, request)
	denied(t, b, `{"rules":{}}`, request, "null")
	look.Close()
	late.Denied(tree.Node{}, 1000, rules.DecidingRule{})
	if b.Watched() {
		t.Error("somebody looks after all have gone")
	}
	look = b.Look(shop, 0)
	defer look.Close()
	if entries, skipped := look.Next(); len(entries) != 0 || skipped != 0 {
		t.Errorf("of before somebody looked, %d entries are there", len(entries))
	}
}

// TestGoingOn: who comes back while others look is told what is new.
func TestGoingOn(t *testing.T) {
	t.Parallel()
	b := &denials.Board{}
	stays := b.Look(shop, 0)
	defer stays.Close()
	request := denials.Request{Verb: denials.Read, Path: path(t, "/a")}
	for range 3 {
		denied(t, b, `{"rules":{}}`, request, "null")
	}
	first, _ := stays.Next()
	for since, want := range map[uint64]int{0: 3, first[1].Number: 1, first[2].Number: 0, first[2].Number + 100: 3} {
		look := b.Look(shop, since)
		if entries, skipped := look.Next(); len(entries) != want || skipped != 0 {
			t.Errorf("since %d there are %d entries and %d skipped, want %d", since, len(entries), skipped, want)
		}
		if want > 0 && look.Told() != first[2].Number {
			t.Errorf("it was told up to %d, want %d", look.Told(), first[2].Number)
		}
		look.Close()
	}
}

// TestNobodyWashesTheList: a user who is denied all the time does not push out what happens to
// others, nor takes all that is noted in a second.
func TestNobodyWashesTheList(t *testing.T) {
	t.Parallel()
	b := &denials.Board{}
	look := b.Look(shop, 0)
	defer b.Look(shop, 0).Close()
	deny := func(user string, millis int64) {
		w := b.Witness(shop, denials.Request{Verb: denials.Read, Path: path(t, "/a")})
		w.Denied(node(t, `{"uid":"`+user+`"}`), millis, rules.DecidingRule{})
	}
	for range 50 {
		deny("eve", 0)
	}
	deny("ann", 0)
	if entries, skipped := look.Next(); len(entries) != 25+1 || skipped != 25 {
		t.Errorf("of 50 denials of a user in a second, and one of another, %d are listed and %d skipped", len(entries), skipped)
	}
	again := b.Look(shop, 0)
	defer again.Close()
	look = again
	for i := range int64(2000) {
		deny("eve", 1000+i*20)
	}
	deny("bob", 1000)
	entries, skipped := look.Next()
	mine := slices.IndexFunc(entries, func(e denials.Entry) bool { return e.Auth == `{"uid":"ann"}` })
	if last := entries[len(entries)-1].Auth; mine < 0 || last != `{"uid":"bob"}` || len(entries) != 200 {
		t.Errorf("of %d entries one is of ann: %v, and the last of %s", len(entries), mine >= 0, last)
	}
	if got := len(entries) + int(skipped); got != 25+1+2000+1 {
		t.Errorf("%d entries and %d skipped are not all of 2027", len(entries), skipped)
	}
}

// TestAllAreToldOrSkipped: with bounds of all sizes, everybody who looks is told of every denial
// once, in order, or that it is missing.
func TestAllAreToldOrSkipped(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		b := &denials.Board{}
		bound := denials.Bound{Kept: 1 + r.IntN(6), Bytes: 600 + r.IntN(8000), Rate: 1 + r.IntN(10), UserRate: 1 + r.IntN(5)}
		b.SetBound(bound)
		type viewer struct {
			*denials.Look
			since, total int
			last         uint64
		}
		stays := &viewer{Look: b.Look(shop, 0)}
		viewers, all, millis := []*viewer{stays}, 0, int64(0)
		tell := func(v *viewer) {
			entries, skipped := v.Next()
			for _, e := range entries {
				if e.Number <= v.last {
					t.Fatalf("%d is told after %d", e.Number, v.last)
				}
				v.last = e.Number
			}
			if len(entries) > bound.Kept {
				t.Fatalf("%d entries are kept, with the bound %+v", len(entries), bound)
			}
			v.total += len(entries) + int(skipped)
		}
		for range 60 {
			switch n := r.IntN(10); {
			case n < 6:
				w := b.Witness(shop, denials.Request{Verb: denials.Read, Path: path(t, "/"+strings.Repeat("k", 1+r.IntN(700)))})
				w.Denied(node(t, fmt.Sprintf(`{"uid":"u%d"}`, r.IntN(3))), millis, rules.DecidingRule{})
				all++
				millis += r.Int64N(300)
			case n < 9:
				tell(viewers[r.IntN(len(viewers))])
			default:
				v := &viewer{Look: b.Look(shop, 0)}
				tell(v) // what was before may be missing
				v.since, v.total = all, 0
				viewers = append(viewers, v)
			}
		}
		for _, v := range viewers {
			if tell(v); v.total != all-v.since {
				t.Fatalf("with %+v, %d of %d denials are told or skipped", bound, v.total, all-v.since)
			}
			v.Close()
		}
	}
}

// BenchmarkWitness is what a judgement costs: while nobody looks, while somebody looks at another
// database, and with a denial while somebody looks at this one.
func BenchmarkWitness(b *testing.B) {
	request := denials.Request{Verb: denials.Read, Path: path(b, "/a")}
	for name, database := range map[string]uint64{"nobody": 0, "elsewhere": shop + 1, "here": shop} {
		b.Run(name, func(b *testing.B) {
			board := &denials.Board{}
			if database != 0 {
				defer board.Look(database, 0).Close()
			}
			auth, millis := node(b, `{"uid":"eve"}`), int64(0)
			b.ReportAllocs()
			for b.Loop() {
				millis += 100
				w := board.Witness(shop, request)
				_ = w.Observe()
				w.Denied(auth, millis, rules.DecidingRule{})
			}
		})
	}
}
