package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

func (f *fixture) ready() {
	f.T.Helper()
	if err := enginetest.WaitForIndexes(context.Background(), f.Database); err != nil {
		f.T.Fatal(err)
	}
}

func (f *fixture) check() {
	f.T.Helper()
	s := f.View()
	defer s.Close()
	if err := checkIndexes(s); err != nil {
		f.T.Error(err)
	}
}

// people returns n records with ages that are not in the order of their keys.
func people(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"p%06d":{"age":%d,"name":"person %d"}`, i, (i*7919)%n, i)
	}
	return "{" + b.String()[1:] + "}"
}

func byAge(t testing.TB, change func(*query.Query)) query.Query {
	t.Helper()
	q := query.Query{Order: query.ByChild(path(t, "age"))}
	change(&q)
	return q
}

// run returns what a query at a path prints.
func (f *fixture) run(at string, q query.Query) (string, error) {
	f.T.Helper()
	s := f.View()
	defer s.Close()
	selection, err := s.Select(path(f.T, at), q, tree.Plain)
	if err != nil {
		return "", err
	}
	defer func() { _ = selection.Close() }()
	var out bytes.Buffer
	err = selection.PrintTo(&out)
	return out.String(), err
}

func TestIndexIsBuiltOverARestart(t *testing.T) {
	count := 5000
	if enginetest.Race {
		count = 500
	}
	fs := vfs.NewMem()
	f := open(t, store.Options{FS: fs, ChunkBytes: 64})
	f.Put("users", people(count))
	f.Rule(enginetest.AgeRules)
	f.Database.Close() // in the middle of building
	if err := f.Store.Close(); err != nil {
		t.Fatal(err)
	}

	f = open(t, store.Options{FS: fs, ChunkBytes: 64})
	f.Put("users/new", `{"age":-1}`)
	f.ready()
	f.check()
	got, err := f.run("users", byAge(t, func(q *query.Query) { q.Limit = 1 }))
	if want := `{"new":{"age":-1}}`; err != nil || got != want {
		t.Errorf("the youngest is %s, %v, want %s", got, err, want)
	}
}

func TestIndexIsBuiltWhileOthersWrite(t *testing.T) {
	count := 3000
	if enginetest.Race {
		count = 600
	}
	f := open(t, store.Options{ChunkBytes: 64})
	f.Put("users", people(count))
	f.Put("users/group", people(2000))
	f.Rule(enginetest.AgeRules)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 200 {
				at := fmt.Sprintf("users/p%06d", (i*31+w*977)%count)
				switch i % 4 {
				case 0:
					f.Put(at, `null`)
				case 1:
					f.Put(at+"/age", fmt.Sprint(i))
				case 2:
					f.Patch("users", fmt.Sprintf(`{"new%d-%d":{"age":%d},"group/p%06d":null}`, w, i, i, i))
				default:
					f.Put(at, fmt.Sprintf(`{"age":"%d"}`, i))
				}
			}
		})
	}
	writers.Wait()
	f.ready()
	f.check()
}

func TestQueryOnAnIndexThatIsNotReady(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64})
	f.Put("users", people(20_000))
	f.Put("users/group", people(20))
	f.Rule(enginetest.AgeRules)
	oldest := byAge(t, func(q *query.Query) { q.Limit, q.Last = 1, true })
	// A small collection is looked through, a large one is not.
	if got, err := f.run("users/group", oldest); err != nil || !strings.Contains(got, `"age":19`) {
		t.Errorf("the query of a small collection gives %s, %v", got, err)
	}
	s := f.View()
	building := indexStates(s)["building"] > 0
	_, err := s.Select(path(t, "users"), oldest, tree.Plain)
	s.Close()
	if building && fault.KindOf(err) != fault.Unavailable {
		t.Errorf("the query of a large collection gives %v, want that it is not available yet", err)
	}
	f.ready()
	if got, err := f.run("users", oldest); err != nil || !strings.Contains(got, `"age":19999`) {
		t.Errorf("when the index is ready the query gives %s, %v", got, err)
	}
}

func TestDroppedIndexLeavesNothing(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64})
	f.Put("users", people(2000))
	f.Rule(enginetest.AgeRules)
	f.ready()
	before := f.indexRows()
	f.Rule(`{"rules": {".read": true}}`)
	f.ready()
	if after := f.indexRows(); before < 2000 || after != 0 {
		t.Errorf("there were %d index rows, and %d are left", before, after)
	}
	_, err := f.run("users", byAge(t, func(q *query.Query) { q.Limit = 1 }))
	if want := `Index not defined, add ".indexOn": "age", for path "/users", to the rules`; err == nil || fault.Public(err) != want {
		t.Errorf("a query without its index says %v, want %s", err, want)
	}
	// The same rules again are another index: nothing of the old one is used.
	f.Put("users/p000000/age", `-5`)
	f.Rule(enginetest.AgeRules)
	f.ready()
	f.check()
}

func (f *fixture) indexRows() int {
	view := f.Store.View()
	defer view.Release()
	id, _, err := f.Store.Find("db")
	if err != nil {
		f.T.Fatal(err)
	}
	rows, err := view.Tree(id).Reader().Space(layout.SpaceIndex)
	if err != nil {
		f.T.Fatal(err)
	}
	n := 0
	for ok := rows.First(); ok; ok = rows.Next() {
		n++
	}
	if err := errors.Join(rows.Error(), rows.Close()); err != nil {
		f.T.Fatal(err)
	}
	return n
}

// TestLiteralTakesALocationFromTheWildcard: an index does not extend to keys
// with rules of their own, and when those go, it is built again.
func TestLiteralTakesALocationFromTheWildcard(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64})
	f.Put("users/ann", people(50))
	f.Put("users/ben", people(50))
	f.Rule(`{"rules": {"users": {"$g": {".indexOn": "age"}}}}`)
	f.ready()
	f.Rule(`{"rules": {"users": {"$g": {".indexOn": "age"}, "ann": {".read": true}}}}`)
	f.ready()
	first := byAge(t, func(q *query.Query) { q.Limit = 1 })
	if _, err := f.run("users/ann", first); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a query at the literal gives %v, want that it has no index", err)
	}
	f.Put("users/ann/p000001/age", `-9`) // no index sees this
	f.Rule(`{"rules": {"users": {"$g": {".indexOn": "age"}}}}`)
	f.ready()
	f.check()
	if got, err := f.run("users/ann", first); err != nil || !strings.Contains(got, `-9`) {
		t.Errorf("the youngest is %s, %v", got, err)
	}
}

// TestLongStringsThatBeginAlike: an index row holds 1,024 bytes of a string; the
// data decides about the rest.
func TestLongStringsThatBeginAlike(t *testing.T) {
	f := open(t, store.Options{ChunkBytes: 64})
	f.Rule(`{"rules": {"s": {".indexOn": ".value"}}}`)
	long := strings.Repeat("x", 2000)
	for i, tail := range []string{"m", "a", "z", "", "k"} {
		f.Put(fmt.Sprintf("s/k%d", i), `"`+long+tail+`"`)
	}
	f.Put("s/short", `"x"`)
	f.ready()
	value := func(text string) query.Bound { return query.Bound{Set: true, Value: tree.StringLeaf(text)} }
	for _, c := range []struct {
		q    query.Query
		want string
	}{
		{query.Query{Limit: 2, Last: true}, "k0 k2"},
		{query.Query{Limit: 3}, "k1 k3 short"},
		{query.Query{Lower: value(long + "b"), Upper: value(long + "m")}, "k0 k4"},
		{query.Query{Lower: value(long), Limit: 1}, "k3"},
	} {
		c.q.Order = query.ByValue()
		got, err := f.run("s", c.q)
		if keys := strings.Join(childKeys(got), " "); err != nil || keys != c.want {
			t.Errorf("%+v selects %s, %v, want %s", c.q.Limit, keys, err, c.want)
		}
	}
}
