package rows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/shares"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

var me = shares.Who{Session: "me"}

// find returns the hits of a search, and whether it was complete.
func find(t testing.TB, f *enginetest.Fixture, b rows.FindBound, req rows.FindRequest) (hits []string, complete bool) {
	t.Helper()
	ended := false
	err := rows.NewFinds(b).Find(f.Database, req, me, nil, func(e rows.Event) error {
		switch data := e.Data.(type) {
		case rows.HitEvent:
			hits = append(hits, strings.TrimSpace(data.Path+" "+data.Value))
		case rows.EndEvent:
			complete, ended = data.Complete, true
		}
		return nil
	})
	if err != nil || !ended {
		t.Fatalf("Find(%v) = %v, it has ended: %v", req, err, ended)
	}
	return hits, complete
}

// TestFind: keys and values, of any letter case.
func TestFind(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		f.Put("/", `{"Ann":{"age":42,"says":"my \"key\"","İx":true},"list":[142,"x"],"b":{".value":"ANNA",".priority":"ann"},"names":["al","bo","cy","dee"]}`)
		for _, c := range []struct {
			under, text, in string
			want            string
		}{
			{"/", "ann", "keys values", `/Ann|/b "ANNA"`},
			{"/", "ann", "keys", `/Ann`},
			{"/", "ann", "values", `/b "ANNA"`},
			{"/", "42", "", `/list/0 142|/Ann/age 42`},
			{"/list", "42", "", `/list/0 142`},
			{"/Ann", "ann", "", ``},
			{"/b", "ann", "", `/b "ANNA"`},
			{"/", `"KEY"`, "values", `/Ann/says "my \"key\""`},
			{"/", "ix", "keys", `/Ann/İx true`},
			{"/none", "a", "", ``},
			{"/", "3", "keys", `/names/3 "dee"`}, // which the text of an array does not spell
			{"/names", "1", "", `/names/1 "bo"`},
		} {
			hits, complete := find(t, f, rows.DefaultFindBound(), rows.FindRequest{Under: c.under, Text: c.text, In: strings.Fields(c.in)})
			want := strings.Split(c.want, "|")
			slices.Sort(want)
			slices.Sort(hits)
			if got := strings.Join(hits, "|"); got != strings.Join(want, "|") || !complete {
				t.Errorf("Find(%s, %s, %s) = %s, complete %v, want %s", c.under, c.text, c.in, got, complete, c.want)
			}
		}
	})
}

// TestFindEqualsTheTree: a search of random trees finds what a walk over the node finds.
func TestFindEqualsTheTree(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		r := seeded(t)
		b := rows.DefaultFindBound()
		b.Slice = 1
		for range 60 {
			change(f, r)
			change(f, r)
			req := rows.FindRequest{Under: pick(r, []string{"/", "/a", "/7/b"}), Text: pick(r, []string{"a", "long", "\n", "9", "0", "𝄞", "tr", "q\"", "<"})}
			got, _ := find(t, f, b, req)
			var want []string
			under := enginetest.Path(t, req.Under)
			walkNode(under, node(t, f, under), func(p tree.Path, n tree.Node) {
				text := ""
				if !n.IsObject() {
					text = string(tree.AppendLeaf(nil, n.Leaf()))
				}
				raw := text
				if n.Kind() == tree.String {
					raw = n.Leaf().Text()
				}
				if p != under && strings.Contains(p.Last(), req.Text) || strings.Contains(raw, req.Text) {
					want = append(want, p.String())
				}
			})
			for i := range got {
				got[i], _, _ = strings.Cut(got[i], " ")
			}
			if !slices.Equal(got, want) {
				t.Fatalf("Find(%v) = %q, want %q in %s", req, got, want, f.Export("/"))
			}
		}
	})
}

func walkNode(p tree.Path, n tree.Node, yield func(tree.Path, tree.Node)) {
	if n.IsNull() {
		return
	}
	yield(p, n)
	for key, child := range n.Children() {
		walkNode(p.Child(key), child, yield)
	}
}

// TestFindEnds: after enough hits, after some time, and when its client does not take them.
func TestFindEnds(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{ChunkBytes: -1})
	fill(f, 1000)
	if hits, complete := find(t, f, rows.DefaultFindBound(), rows.FindRequest{Text: "hello", Limit: 7}); len(hits) != 7 || complete {
		t.Errorf("a search for 7 has %d hits, complete %v", len(hits), complete)
	}
	b := rows.DefaultFindBound()
	b.Time = 1
	if hits, complete := find(t, f, b, rows.FindRequest{Text: "hello"}); len(hits) == 0 || len(hits) == 1000 || complete {
		t.Errorf("a search without time has %d hits, complete %v", len(hits), complete)
	}
	gone := errors.New("gone")
	finds := rows.NewFinds(rows.DefaultFindBound())
	err := finds.Find(f.Database, rows.FindRequest{Text: "hello"}, me, nil, func(rows.Event) error { return gone })
	if !errors.Is(err, gone) {
		t.Errorf("a search whose client has gone is %v", err)
	}
	progress := 0
	b = rows.DefaultFindBound()
	b.Every = time.Nanosecond
	err = rows.NewFinds(b).Find(f.Database, rows.FindRequest{Text: "nowhere"}, me, nil, func(e rows.Event) error {
		if data, ok := e.Data.(rows.ProgressEvent); ok && data.Bytes > 0 {
			progress++
		}
		return nil
	})
	if err != nil || progress == 0 {
		t.Errorf("a search tells of its progress %d times, %v", progress, err)
	}
}

// TestFindRunsOneByOne for the same client, and refuses bad requests.
func TestFindRunsOneByOne(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	f.Put("/a", `{"x":1,"y":2}`)
	finds := rows.NewFinds(rows.DefaultFindBound())
	err := finds.Find(f.Database, rows.FindRequest{Text: "x"}, me, nil, func(rows.Event) error {
		for who, want := range map[shares.Who]fault.Kind{me: fault.Unavailable, {Session: "another"}: fault.Internal} {
			err := finds.Find(f.Database, rows.FindRequest{Text: "x"}, who, nil, func(rows.Event) error { return nil })
			if fault.KindOf(err) != want || who != me && err != nil {
				return fmt.Errorf("another search of %v is %w", who, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, req := range []rows.FindRequest{{}, {Text: strings.Repeat("x", 2000)}, {Text: "x", Under: "/a.b"}, {Text: "x", In: []string{"rows"}}} {
		if err := finds.Find(f.Database, req, me, nil, nil); fault.KindOf(err) != fault.Invalid {
			t.Errorf("Find(%.50v) = %v", req, err)
		}
	}
}

// TestSearchesAreShared: who signs in again and again has few searches of a database, and
// leaves the operator one.
func TestSearchesAreShared(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	f.Put("/", `{"x":1}`)
	finds := rows.NewFinds(rows.DefaultFindBound())
	running := 0
	var begin func(who shares.Who) error
	begin = func(who shares.Who) error {
		return finds.Find(f.Database, rows.FindRequest{Text: "x", In: []string{"keys"}}, who, nil, func(e rows.Event) error {
			if e.Name != "hit" {
				return nil
			}
			running++
			if who.Group == "" {
				return nil
			}
			// While this one runs, another session of the same secret begins one.
			if err := begin(shares.Who{Session: fmt.Sprint(running), Group: "shop"}); fault.KindOf(err) == fault.Unavailable {
				return begin(shares.Who{Session: "operator"})
			}
			return nil
		})
	}
	if err := begin(shares.Who{Session: "first", Group: "shop"}); err != nil || running != 4+1 {
		t.Errorf("%d searches run at a time, want 4 and one of the operator: %v", running, err)
	}
}
