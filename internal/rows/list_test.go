package rows_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// TestListPrintsWhatTheConsoleReads: the example of the manual.
func TestListPrintsWhatTheConsoleReads(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		f.Put("/rooms", `{"-5":9007199254740993,"bio":{".value":"`+strings.Repeat("x<", 100)+`",".priority":4},"lobby":{"topic":"hi"},"big":{`+
			`"a":"`+strings.Repeat("y", 60)+`","b":true}}`)
		page, err := rows.List(f.Database, enginetest.Path(t, "/rooms"), params{"cut": "16", "limitToFirst": "3"}.request(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"at":"%d-1","path":"/rooms","type":"object","before":false,"after":true,"rows":[`+
			`{"key":"-5","type":"number","value":"9007199254740993"},`+
			`{"key":"big","type":"object","children":2},`+
			`{"key":"bio","type":"string","value":"\"x<x<x<x<x<x<x<x","cut":true,"bytes":200,"priority":"4"}]}`, f.Epoch())
		if got := string(page.AppendJSON(nil)); got != want {
			t.Errorf("a page is\n%s, want\n%s", got, want)
		}
	})
}

// TestListShowsLeavesAndNothing: neither has rows.
func TestListShowsLeavesAndNothing(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	f.Put("/a", `{".value":"text",".priority":1}`)
	for at, want := range map[string]string{
		"/a":   `"type":"string","value":"\"text\"","priority":"1","before":false,"after":false,"rows":[]}`,
		"/a/b": `"type":"none","before":false,"after":false,"rows":[]}`,
		"/c":   `"type":"none","before":false,"after":false,"rows":[]}`,
	} {
		page, err := rows.List(f.Database, enginetest.Path(t, at), params{}.request(t), nil)
		if got := string(page.AppendJSON(nil)); err != nil || !strings.HasSuffix(got, want) {
			t.Errorf("List(%s) = %s, %v, want …%s", at, got, err, want)
		}
	}
	if page, err := rows.List(nil, tree.Path{}, params{}.request(t), nil); err != nil || page.Type != rows.TypeNone {
		t.Errorf("a database that is not there is shown as %v, %v", page, err)
	}
}

// TestListRefusesBadParameters, each with a text that says what is wrong.
func TestListRefusesBadParameters(t *testing.T) {
	t.Parallel()
	for _, p := range []params{
		{"limitToFirst": "1001"}, {"limitToFirst": "0"}, {"limitToFirst": "1", "limitToLast": "1"}, {"cut": "15"}, {"cut": "4097"},
		{"cut": "x"}, {"orderBy": `"$key"`}, {"equalTo": `"a"`}, {"startAt": "5"}, {"startAt": "a"}, {"startAt": `"a"`, "startAfter": `"b"`},
	} {
		if _, err := rows.ParseList(func(name string) (string, bool) { v, ok := p[name]; return v, ok }); err == nil {
			t.Errorf("ParseList(%v) is accepted", p)
		}
	}
}

// TestListEqualsTheNode: pages of random trees by random ranges show what the whole node
// has, whatever rows it is stored in.
func TestListEqualsTheNode(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		r := seeded(t)
		for round := range 150 {
			change(f, r)
			if round%3 > 0 {
				continue
			}
			at := tree.Path{}
			if r.IntN(3) > 0 {
				at = at.Child(pick(r, keys))
			}
			p, q, outer := randomParams(r)
			bound := rows.DefaultPageBound()
			bound.Counted, bound.Time = 1+r.IntN(5), time.Minute
			checkPage(t, f, at, p, q, outer, bound)
		}
	})
}

// randomParams returns parameters, with the query by key that they say, and the one without
// the bounds at which a page goes on.
func randomParams(r *rand.Rand) (p params, q, outer query.Query) {
	p = params{"cut": fmt.Sprint(16 + r.IntN(30))}
	q = query.Query{Order: query.ByKey(), Limit: 1 + r.IntN(6), Last: r.IntN(2) == 0}
	p["limitToFirst"] = fmt.Sprint(q.Limit)
	if q.Last {
		p["limitToLast"] = p["limitToFirst"]
		delete(p, "limitToFirst")
	}
	outer = query.Query{Order: query.ByKey()}
	edges := append([]string{"", "zz", "\uf8ff", "08"}, keys...)
	if key := pick(r, edges); r.IntN(2) == 0 {
		exclusive := r.IntN(2) == 0
		q.Lower = query.Bound{Set: true, Value: tree.StringLeaf(key), Exclusive: exclusive}
		p[map[bool]string{true: "startAfter", false: "startAt"}[exclusive]] = quote(key)
	}
	if key := pick(r, edges); r.IntN(2) == 0 {
		exclusive := r.IntN(2) == 0
		q.Upper = query.Bound{Set: true, Value: tree.StringLeaf(key), Exclusive: exclusive}
		p[map[bool]string{true: "endBefore", false: "endAt"}[exclusive]] = quote(key)
	}
	if !q.Lower.Exclusive {
		outer.Lower = q.Lower
	}
	if !q.Upper.Exclusive {
		outer.Upper = q.Upper
	}
	return p, q, outer
}

func checkPage(t *testing.T, f *enginetest.Fixture, at tree.Path, p params, q, outer query.Query, bound rows.PageBound) {
	t.Helper()
	page, err := rows.List(f.Database, at, p.request(t).Bounded(bound), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := node(t, f, at)
	var cut int
	_, _ = fmt.Sscan(p["cut"], &cut)
	want := expectedRows(t, n, q, cut, bound.Counted)
	if !reflect.DeepEqual(page.Rows, want) {
		t.Fatalf("List(%s, %v) of %s has the rows\n%+v, want\n%+v", at, p, tree.AppendJSON(nil, n, tree.Export), page.Rows, want)
	}
	if len(want) == 0 {
		return // where an empty page is cannot be said
	}
	all := query.Select(n, outer)
	before, after := all[0] != want[0].Key, all[len(all)-1] != want[len(want)-1].Key
	if page.Before != before || page.After != after {
		t.Fatalf("List(%s, %v) of %v says before %v, after %v, want %v, %v", at, p, all, page.Before, page.After, before, after)
	}
}

// TestListEndsEarly: a page that has read much ends, and the next goes on after it.
func TestListEndsEarly(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		var members []string
		for i := range 50 {
			members = append(members, fmt.Sprintf(`"k%02d":{"text":"%s"}`, i, strings.Repeat("x", 100)))
		}
		f.Put("/a", "{"+strings.Join(members, ",")+"}")
		for name, bound := range map[string]rows.PageBound{
			"bytes": {Bytes: 500, Time: time.Minute, Counted: 10},
			"time":  {Bytes: 1 << 20, Time: time.Nanosecond, Counted: 10},
		} {
			seen, pages := 0, 0
			p := params{"limitToFirst": "1000"}
			for more := true; more; pages++ {
				page, err := rows.List(f.Database, enginetest.Path(t, "/a"), p.request(t).Bounded(bound), nil)
				if err != nil || len(page.Rows) == 0 {
					t.Fatalf("%s: a page has %d rows, %v", name, len(page.Rows), err)
				}
				for _, row := range page.Rows {
					if want := fmt.Sprintf("k%02d", seen); row.Key != want {
						t.Fatalf("%s: row %d is %s, want %s", name, seen, row.Key, want)
					}
					seen++
				}
				more = page.After
				p["startAfter"] = quote(page.Rows[len(page.Rows)-1].Key)
			}
			if seen != 50 || pages < 5 {
				t.Errorf("%s: %d rows came on %d pages, want 50 on several", name, seen, pages)
			}
		}
	})
}

// TestListEndsWhenNobodyWaits.
func TestListEndsWhenNobodyWaits(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{ChunkBytes: -1})
	f.Put("/a", `{"b":1,"c":2}`)
	done := make(chan struct{})
	close(done)
	if page, err := rows.List(f.Database, enginetest.Path(t, "/a"), params{}.request(t), done); err == nil {
		t.Errorf("List for nobody = %v", page)
	}
}
