package rows_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/rows"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

var watchRounds = flag.Int("watch-rounds", 400, "rounds of writes under a page that is fed by a watch")

func newWatcher(t testing.TB, f *enginetest.Fixture, b rows.WatchBound, since string, locations ...rows.Location) *rows.Watcher {
	t.Helper()
	w, err := rows.NewWatcher(f.Database, rows.WatchRequest{Since: since, Locations: locations}, b)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// told returns the events of a look, one per line.
func told(t testing.TB, w *rows.Watcher) string {
	t.Helper()
	events, err := w.Look(nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range events {
		text, err := json.Marshal(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), ",") // without the epoch and the position
		lines = append(lines, e.Name+" {"+after)
	}
	return strings.Join(lines, "\n")
}

// TestWatchTells: each kind of change, once.
func TestWatchTells(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		f.Put("/rooms", `{"a":1,"c":{"d":1},"x":1}`)
		w := newWatcher(t, f, rows.DefaultWatchBound(), "", rows.Location{Path: "/rooms", From: "a", To: "m"})
		defer w.Close()
		for _, step := range []struct{ write, want string }{
			{"PUT /other 1", ""},
			{"PUT /rooms/b true", `rows {"path":"/rooms","rows":[{"key":"b","type":"boolean","value":"true"}]}`},
			{"PUT /rooms/c/d 2", `rows {"path":"/rooms","rows":[{"key":"c","type":"object","value":"{\"d\":2}","children":1}]}`},
			{"PUT /rooms/c null", `rows {"path":"/rooms","rows":[{"key":"c","type":"none"}]}`},
			{"PUT /rooms/a/.priority 5", `rows {"path":"/rooms","rows":[{"key":"a","type":"number","value":"1","priority":"5"}]}`},
			{"PUT /rooms/y 1", `count {"path":"/rooms","added":1,"removed":0}`},
			{"PUT /rooms/y 2", ""},
			{"PUT /rooms/nothing null", ""},
			{`PATCH /rooms {"x":null,"y":null,"z":3,"b":false}`, `count {"path":"/rooms","added":1,"removed":2}` + "\n" +
				`rows {"path":"/rooms","rows":[{"key":"b","type":"boolean","value":"false"}]}`},
			{`PUT /rooms {"a":1}`, `reset {"path":"/rooms"}`},
			{"PUT /rooms/.priority 1", `reset {"path":"/rooms"}`},
			{"PUT /.priority 1", ""},
			{"PUT /rooms/a null", `reset {"path":"/rooms"}`},
			{"PUT /rooms 5", `reset {"path":"/rooms"}`},
			{"PUT /rooms/a/b 1", `reset {"path":"/rooms"}`},
			{"PUT / null", `reset {"path":"/rooms"}`},
		} {
			f.Do(step.write)
			if got := told(t, w); got != step.want {
				t.Errorf("after %s the watch is told\n%s, want\n%s", step.write, got, step.want)
			}
		}
		f.Rule(enginetest.AgeRules)
		if got := told(t, w); got != "" {
			t.Errorf("rules are told as %s", got)
		}
	})
}

// TestWatchGivesUpCounting: to find out which of very many children came and went takes too long, and
// what is watched is reset.
func TestWatchGivesUpCounting(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	f.Put("/a", `{"x":0}`)
	b := rows.DefaultWatchBound()
	b.Time = time.Nanosecond
	w := newWatcher(t, f, b, "", rows.Location{Path: "/a", From: "x", To: "x"})
	defer w.Close()
	var members []string
	for i := range 100 {
		members = append(members, fmt.Sprintf(`"k%d":1`, i))
	}
	f.Patch("/a", "{"+strings.Join(members, ",")+"}")
	if got, want := told(t, w), `reset {"path":"/a"}`; got != want {
		t.Errorf("without time to count, the watch is told\n%s, want\n%s", got, want)
	}
}

// TestWatchGathers: a row that is written many times is told once, and too many rows reset.
func TestWatchGathers(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	f.Put("/a", `{"x":0}`)
	b := rows.DefaultWatchBound()
	b.Rows = 3
	w := newWatcher(t, f, b, "", rows.Location{Path: "/a"})
	defer w.Close()
	for i := range 20 {
		f.Put("/a/x", fmt.Sprint(i))
	}
	if got, want := told(t, w), `rows {"path":"/a","rows":[{"key":"x","type":"number","value":"19"}]}`; got != want {
		t.Errorf("20 writes are told as %s, want %s", got, want)
	}
	f.Patch("/a", `{"p":1,"q":1,"r":1,"s":1}`)
	if got, want := told(t, w), `reset {"path":"/a"}`; got != want {
		t.Errorf("4 rows are told as %s, want %s", got, want)
	}
	f.Put("/a/long", `"`+strings.Repeat("x", 100_000)+`"`) // not in the log
	if got := told(t, w); !strings.Contains(got, `"cut":true,"bytes":100000`) {
		t.Errorf("a long text is told as %s", got)
	}
	b.LogBytes = 10
	tight := newWatcher(t, f, b, "", rows.Location{Path: "/a"})
	defer tight.Close()
	f.Put("/a/x", "5")
	if got, want := told(t, tight), `reset {"path":"/a"}`; got != want {
		t.Errorf("more log than may be read is told as %s, want %s", got, want)
	}
}

// TestWatchRefuses what it cannot do.
func TestWatchRefuses(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	for _, locations := range [][]rows.Location{nil, make([]rows.Location, 201), {{Path: "/a$b"}}, {{Path: strings.Repeat("/a", 40)}}} {
		if _, err := rows.NewWatcher(f.Database, rows.WatchRequest{Locations: locations}, rows.DefaultWatchBound()); fault.KindOf(err) != fault.Invalid {
			t.Errorf("a watch of %d locations is %v", len(locations), err)
		}
	}
	w := newWatcher(t, f, rows.DefaultWatchBound(), "", rows.Location{Path: "/"})
	defer w.Close()
	if err := f.Drop(); err != nil {
		t.Fatal(err)
	}
	if events, err := w.Look(nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a look at a dropped database is %v, %v", events, err)
	}
}

// A shown is a node in the console, with one or two ranges of its rows.
type shown struct {
	path   string
	ranges []rows.Location
	rows   map[string]rows.Row
	count  int // of all children
}

func within(l rows.Location) query.Query {
	q := query.Query{Order: query.ByKey()}
	if l.From != "" {
		q.Lower = query.Bound{Set: true, Value: tree.StringLeaf(l.From)}
	}
	if l.To != "" {
		q.Upper = query.Bound{Set: true, Value: tree.StringLeaf(l.To)}
	}
	return q
}

// reads returns the rows of the location as the tree has them, and the number of children.
func (s *shown) reads(t testing.TB, f *enginetest.Fixture, b rows.WatchBound) (map[string]rows.Row, int) {
	t.Helper()
	n := node(t, f, enginetest.Path(t, s.path))
	list := map[string]rows.Row{}
	for _, l := range s.ranges {
		for _, row := range expectedRows(t, n, within(l), b.Cut, b.Counted) {
			list[row.Key] = row
		}
	}
	return list, n.Len()
}

// takes changes the page as an event says.
func (s *shown) takes(t testing.TB, f *enginetest.Fixture, b rows.WatchBound, e rows.Event) {
	switch data := e.Data.(type) {
	case rows.ResetEvent:
		s.rows, s.count = s.reads(t, f, b)
	case rows.CountEvent:
		s.count += data.Added - data.Removed
	case rows.RowsEvent:
		for _, row := range data.Rows {
			_, was := s.rows[row.Key]
			switch is := row.Type != rows.TypeNone; {
			case is:
				s.rows[row.Key] = row
				if !was {
					s.count++
				}
			case was:
				delete(s.rows, row.Key)
				s.count--
			}
		}
	}
}

// TestPageFedByWatchEqualsTheTree: whatever is written, a page that is fed by a watch is what
// a fresh one would be, after each look; also over clients that come back, and with tiny
// bounds.
func TestPageFedByWatchEqualsTheTree(t *testing.T) {
	t.Parallel()
	usual, tiny := rows.DefaultWatchBound(), rows.DefaultWatchBound()
	usual.Time = time.Minute
	tiny.Rows, tiny.Time, tiny.LogBytes, tiny.Cut, tiny.Counted = 3, 1, 200, 16, 2
	for name, b := range map[string]rows.WatchBound{"usual": usual, "tiny": tiny} {
		t.Run(name, func(t *testing.T) {
			enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) { feed(t, f, seeded(t), b) })
		})
	}
}

func feed(t *testing.T, f *enginetest.Fixture, r *rand.Rand, b rows.WatchBound) {
	pages := randomPages(t, f, r, b)
	w := newWatcher(t, f, b, "", locationsOf(pages)...)
	since := w.ID()
	for round := range *watchRounds {
		for range r.IntN(4) {
			change(f, r)
		}
		switch r.IntN(20) {
		case 0, 2, 3: // the connection ends in the middle of what is told, and the client comes back
			events, err := w.Look(nil)
			if err != nil {
				t.Fatal(err)
			}
			deliver(t, f, b, events[:r.IntN(len(events)+1)], pages, &since)
			for range r.IntN(3) {
				change(f, r)
			}
			w.Close()
			w = newWatcher(t, f, b, since, locationsOf(pages)...)
		case 1: // it looks at something else
			w.Close()
			pages = randomPages(t, f, r, b)
			w = newWatcher(t, f, b, "", locationsOf(pages)...)
			since = w.ID()
		}
		settled := lookUntilSettled(t, f, w, b, pages, &since)
		for _, page := range pages {
			want, count := page.reads(t, f, b)
			if !reflect.DeepEqual(page.rows, want) || page.count != count {
				t.Fatalf("round %d: the page %v is\n%v (%d children), want\n%v (%d children), after\n%v", round, page.ranges, page.rows, page.count, want, count, settled)
			}
		}
	}
	w.Close()
}

// lookUntilSettled hands the events of looks to the pages, until there are none.
func lookUntilSettled(t *testing.T, f *enginetest.Fixture, w *rows.Watcher, b rows.WatchBound, pages []*shown, since *string) (all []rows.Event) {
	t.Helper()
	for looks := 0; ; looks++ {
		events, err := w.Look(nil)
		if err != nil || looks > 100 {
			t.Fatal(looks, err)
		}
		if len(events) == 0 {
			return all
		}
		all = append(all, events...)
		deliver(t, f, b, events, pages, since)
	}
}

// deliver hands events to the pages.
func deliver(t *testing.T, f *enginetest.Fixture, b rows.WatchBound, events []rows.Event, pages []*shown, since *string) {
	for _, e := range events {
		if e.ID != "" {
			*since = e.ID
		}
		for _, page := range pages {
			if reflect.ValueOf(e.Data).FieldByName("Path").String() == page.path {
				page.takes(t, f, b, e)
			}
		}
	}
}

// randomPages returns pages of different locations, with what is there.
func randomPages(t *testing.T, f *enginetest.Fixture, r *rand.Rand, b rows.WatchBound) (pages []*shown) {
	paths := []string{"/", "/a", "/7", "/a/b", "/é"}
	r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, path := range paths[:1+r.IntN(4)] {
		page := &shown{path: path}
		for range 1 + r.IntN(2) {
			l := rows.Location{Path: path}
			if edges := []string{pick(r, keys), pick(r, keys)}; r.IntN(2) == 0 {
				slices.SortFunc(edges, tree.CompareKeys)
				l.From, l.To = edges[0], edges[1]
			}
			page.ranges = append(page.ranges, l)
		}
		page.rows, page.count = page.reads(t, f, b)
		pages = append(pages, page)
	}
	return pages
}

func locationsOf(pages []*shown) (list []rows.Location) {
	for _, page := range pages {
		list = append(list, page.ranges...)
	}
	return list
}
