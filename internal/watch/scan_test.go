package watch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// scanned is filtered for a window that may be found by a scan.
func scanned(t testing.TB, at, parameters string) watch.Request {
	req := filtered(t, at, parameters)
	req.Scan = true
	return req
}

// withScans opens a database whose scans keep a part of what they find.
func withScans(t testing.TB, opts store.Options, bounds scan.Bounds) (*fixture, *scan.Pool) {
	f := open(t, opts)
	pool := scan.NewPool(bounds)
	f.Reopen(engine.Options{Clock: f.Clock, Scans: pool})
	return f, pool
}

// A mirror keeps a cache of a window.
type mirror struct {
	*enginetest.Watcher
	req   watch.Request
	cache cache
}

// take applies all events that there are.
func (m *mirror) take(t testing.TB) {
	for {
		e, ok := m.Next()
		if !ok {
			return
		}
		if e.Kind > watch.Patch {
			t.Fatalf("a watch of %+v ends with %s", m.req.Query, describe(t, e))
		}
		if e.Content == nil {
			if err := m.apply(e); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var text bytes.Buffer
		if err := errors.Join(e.Content.PrintTo(&text), e.Content.Close()); err != nil {
			t.Fatal(err)
		}
		value, err := parseJSON(text.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		m.cache.put("/", value)
	}
}

// apply applies a change. A patch that is told as one event has paths as keys.
func (m *mirror) apply(e *watch.Event) error {
	if !m.req.Whole || e.Kind != watch.Patch {
		return m.cache.apply(e.Kind == watch.Patch, enginetest.Text(e))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(e.Value, &members); err != nil {
		return err
	}
	for _, deletes := range []bool{false, true} {
		for key, value := range members {
			child, err := parseJSON(value)
			if err != nil {
				return err
			}
			if (child == nil) == deletes {
				m.cache.put(strings.TrimSuffix(e.Path.String(), "/")+"/"+key, child)
			}
		}
	}
	return nil
}

// TestScanModel makes the same random writes in a database without indexes, and in one
// with all of them. After every commit the cache of every window, in both, is what the
// query selects of the whole node.
func TestScanModel(t *testing.T) {
	seed := *watchSeed
	if seed == 0 {
		seed = mathrand.Uint64()
	}
	defer func() {
		if t.Failed() {
			t.Logf("-watch.seed=%d", seed)
		}
	}()
	for n := range uint64(12) {
		rng := mathrand.New(mathrand.NewPCG(seed, n))
		opts := store.Options{ChunkBytes: []int{-1, 64, 2048}[n%3]}
		bare, pool := withScans(t, opts, scan.Bounds{Kept: 10 + rng.IntN(20), Reserve: rng.IntN(3), Bytes: 1 << 20})
		indexed := withIndexes(t, opts)
		for _, f := range []*fixture{bare, indexed} {
			f.Watches().BoundWindows([]int{2, 1000}[n%2], []int{1, 20, 10_000}[rng.IntN(3)])
		}
		m := scanModel{T: t, rng: rng, databases: []*fixture{bare, indexed}}
		for range 60 {
			m.step()
		}
		for _, w := range m.mirrors {
			w.Close()
		}
		if used := pool.Used(); used != 0 {
			t.Errorf("%d bytes are claimed when nobody watches", used)
		}
	}
}

type scanModel struct {
	*testing.T
	rng       *mathrand.Rand
	databases []*fixture
	mirrors   []*mirror
}

func (m *scanModel) step() {
	switch m.rng.IntN(6) {
	case 0:
		m.watch()
	case 1:
		if len(m.mirrors) > 8 { // one of each database
			m.mirrors[0].Close()
			m.mirrors[1].Close()
			m.mirrors = m.mirrors[2:]
		}
	}
	request := m.request()
	for _, f := range m.databases {
		f.Do(request)
		f.WaitForWatches()
		for i, w := range m.mirrors {
			if len(m.databases) > 1 && m.databases[i%2] != f {
				continue
			}
			w.take(m)
			m.compare(f, w, request)
		}
	}
}

// watch begins the same window in all databases.
func (m *scanModel) watch() {
	order := []string{`"$value"`, `"a"`}[m.rng.IntN(2)]
	text := "orderBy=" + order
	values := []string{`null`, `false`, `1`, `3`, `"a"`, `"m"`}
	if m.rng.IntN(3) == 0 {
		text += "&startAt=" + values[m.rng.IntN(6)]
	}
	if m.rng.IntN(3) == 0 {
		text += "&endAt=" + values[m.rng.IntN(6)]
	}
	if n := m.rng.IntN(10); n > 0 {
		text += fmt.Sprintf("&%s=%d", []string{"limitToFirst", "limitToLast"}[m.rng.IntN(2)], n)
	}
	req := scanned(m, "/l", text)
	if m.rng.IntN(2) == 0 { // as sockets ask for it
		req.Whole, req.Form = true, tree.Export
	}
	for _, f := range m.databases {
		w := &mirror{req: req}
		w.Watcher = f.Begin(w.req)
		if w.Unindexed() != (f == m.databases[0]) {
			m.Errorf("a watch says that it is unindexed: %t", w.Unindexed())
		}
		m.mirrors = append(m.mirrors, w)
	}
}

func (m *scanModel) request() string {
	child := func() string {
		v := []string{`false`, `0`, `1`, `2.5`, `3`, `"a"`, `"b"`, `"z"`, `{"deep":1}`}[m.rng.IntN(9)]
		switch m.rng.IntN(3) {
		case 0:
			return v
		case 1:
			return fmt.Sprintf(`{"b":%s}`, v)
		}
		return fmt.Sprintf(`{"a":%s,"pad":"%s"}`, v, strings.Repeat("x", m.rng.IntN(100)))
	}
	switch n := m.rng.IntN(12); n {
	case 0, 1, 2:
		return fmt.Sprintf(`PUT /l/k%d %s`, m.rng.IntN(30), child())
	case 3, 4, 5:
		return fmt.Sprintf(`DELETE /l/k%d`, m.rng.IntN(30))
	case 6, 7:
		return fmt.Sprintf(`PUT /l/k%d/a %d`, m.rng.IntN(30), m.rng.IntN(6))
	case 8:
		return fmt.Sprintf(`PUT /l/k%d/b %d`, m.rng.IntN(30), m.rng.IntN(6))
	case 9, 10:
		var members []string
		for i := range m.rng.IntN(12) {
			members = append(members, fmt.Sprintf(`"k%d":%s`, 2*i+m.rng.IntN(2), child()))
		}
		return `PATCH /l {` + strings.Join(members, ",") + `}`
	}
	var members []string
	for i := range m.rng.IntN(30) {
		members = append(members, fmt.Sprintf(`"k%d":%s`, i, child()))
	}
	return []string{`PUT /l {` + strings.Join(members, ",") + `}`, `PUT /l {` + strings.Join(members, ",") + `}`, `PUT /l "leaf"`, `DELETE /l`}[m.rng.IntN(4)]
}

func (m *scanModel) compare(f *fixture, w *mirror, request string) {
	v := f.View()
	defer v.Close()
	var text bytes.Buffer
	if err := printSelected(&text, v, w.req); err != nil {
		m.Fatal(err)
	}
	want, err := parseJSON(text.Bytes())
	if err != nil || !reflect.DeepEqual(w.cache.value, want) {
		m.Fatalf("after %.200s, unindexed %t, %+v\n got %.600s\nwant %.600s %v", request, w.Unindexed(), w.req.Query, w.cache.String(), &text, err)
	}
}

// TestScansAreFew: a window without an index is found once for all who watch it. Changes
// move it, and only when more children have left than are in reserve it is found again: by
// a watch, while the dispatcher tells others what is theirs.
func TestScansAreFew(t *testing.T) {
	f, pool := withScans(t, store.Options{}, scan.Bounds{Kept: 100, Reserve: 10, Bytes: 1 << 20})
	f.Do(`PUT /l ` + children(20_000))
	first := scanned(t, "/l", `orderBy="a"&limitToFirst=5`)
	one, other := f.Watch(first), f.Watch(first)
	within := f.Watch(scanned(t, "/l", `orderBy="a"&startAt=100&endAt=102`))
	beside := f.Watch(whole(t, "/beside"))
	expect := func(scans uint64, why string) {
		t.Helper()
		if n := pool.Passes(); n != scans {
			t.Fatalf("%d scans %s, want %d", n, why, scans)
		}
	}
	expect(2, "to begin two windows")
	for i := range 10 {
		f.Do(fmt.Sprintf(`DELETE /l/k%06d`, i))
		for _, w := range []*enginetest.Watcher{one, other} {
			w.Expect(fmt.Sprintf(`patch {"path":"/","data":{"k%06d":null,"k%06d":{"a":%d,"text":"child %d"}}}`, i, i+5, i+5, i+5))
		}
		f.Do(fmt.Sprintf(`PUT /l/k%06d/a 5000`, 200+i)) // which nobody sees
		f.Do(fmt.Sprintf(`PUT /l/k%06d/a 101`, 300+i))
	}
	if n := len(within.Events()); n != 10 {
		t.Errorf("%d events of a range, want 10", n)
	}
	expect(2, "after as many children have left as are in reserve")
	f.Do(`PUT /l/k000500/a 0`)
	f.Do(`DELETE /l/k000500`)
	one.Events()
	other.Events()
	expect(2, "after a child has come and gone")
	for n := 0; f.Watches().UnknownWindows() == 0; n++ {
		if n > 20 {
			t.Fatal("the reserve lasts for ever")
		}
		f.Do(fmt.Sprintf(`DELETE /l/k%06d`, 10+n))
		f.WaitForWatches()
	}
	f.Do(`PUT /beside 1`)
	beside.Expect(`put {"path":"/","data":1}`)
	expect(2, "before a watch asks for more")
	want := one.Events()
	if len(want) == 0 || !strings.HasPrefix(want[len(want)-1], "first ") {
		t.Errorf("the watch is told %q", want)
	}
	expect(3, "when a watch asks for more")
	other.Events()
	expect(3, "when another one does")
	if n := f.Watches().UnknownWindows(); n != 0 {
		t.Errorf("%d windows are not known", n)
	}
}

// TestStormScansOnce: many watches of one window that begin together scan once.
func TestStormScansOnce(t *testing.T) {
	f, pool := withScans(t, store.Options{}, scan.DefaultBounds())
	f.Do(`PUT /l ` + children(5_000))
	for _, query := range []string{`orderBy="a"&limitToLast=50`, `orderBy="a"&endAt=50`} {
		before := pool.Passes()
		req := scanned(t, "/l", query)
		req.Wake = func() {}
		var begin, end sync.WaitGroup
		begun := make(chan struct{}) // nobody leaves before: the window would be found again for who comes then
		for range 40 {
			begin.Add(1)
			end.Go(func() {
				w, _, err := f.Watches().Open(req)
				if err != nil {
					begin.Done()
					t.Error(err)
					return
				}
				defer w.Close()
				defer func() { <-begun }()
				defer begin.Done()
				if e, ok := w.Next(); !ok || !strings.Contains(describe(t, e), `"a":`) {
					t.Error("a watch is told nothing")
				}
			})
		}
		keep := f.Watch(req)
		begin.Wait()
		close(begun)
		end.Wait()
		keep.Close()
		if n := pool.Passes() - before; n > 1 {
			t.Errorf("%s: %d scans for 41 watches", query, n)
		}
	}
}

// TestScanGoesOnWhateverTheRules: the indexes come and go, and the windows stay right.
func TestScanGoesOnWhateverTheRules(t *testing.T) {
	const with, without = `{"rules": {"l": {".read": true, ".indexOn": "a"}}}`, `{"rules": {"l": {".read": true}}}`
	var noted []string
	f, pool := withScans(t, store.Options{}, scan.Bounds{Kept: 10, Reserve: 1, Bytes: 1 << 20})
	f.Reopen(engine.Options{Clock: f.Clock, Scans: pool, Name: "db",
		Observers: &state.Observers{Unindexed: func(database, path, index string) { noted = append(noted, database+" "+path+" "+index) }}})
	f.Rule(with)
	f.Do(`PUT /l {"k1":{"a":1},"k2":{"a":2},"k3":{"a":3},"k4":{"a":4},"k5":{"a":5},"k6":{"a":6}}`)
	if err := enginetest.WaitForIndexes(context.Background(), f.Database); err != nil {
		t.Fatal(err)
	}
	rules := func(document string) {
		f.Rule(document)
		if err := enginetest.WaitForIndexes(context.Background(), f.Database); err != nil {
			t.Fatal(err)
		}
	}
	limit, bounds := scanned(t, "/l", `orderBy="a"&limitToFirst=1`), scanned(t, "/l", `orderBy="a"&startAt=5`)
	begin := func() []*mirror {
		return []*mirror{{Watcher: f.Begin(limit), req: limit}, {Watcher: f.Begin(bounds), req: bounds}}
	}
	mirrors := begin()
	if mirrors[0].Unindexed() || len(noted) > 0 {
		t.Errorf("a watch with an index says that it has none; noted %q", noted)
	}
	check := func(why string) {
		t.Helper()
		f.WaitForWatches()
		for _, m := range mirrors {
			m.take(t)
			(&scanModel{T: t}).compare(f, m, why)
		}
	}
	rules(without)
	mirrors = append(mirrors, begin()...)
	if !mirrors[2].Unindexed() || !mirrors[3].Unindexed() || len(noted) != 2 || noted[0] != "db /l a" {
		t.Errorf("watches without an index say that they have one; noted %q", noted)
	}
	check("the index went")
	for i, document := range []string{with, without, with} {
		f.Do(fmt.Sprintf(`DELETE /l/k%d`, 2*i+1))
		check("a delete")
		rules(document)
		f.Do(fmt.Sprintf(`DELETE /l/k%d`, 2*i+2))
		check("a delete after the rules changed")
		f.Do(`PUT /l/k0 {"a":5.5}`)
		check("a put")
		f.Do(`DELETE /l/k0`)
		check("a delete of the first")
	}
}

// TestScanRefusals: what cannot be kept is refused, also later.
func TestScanRefusals(t *testing.T) {
	f, _ := withScans(t, store.Options{}, scan.Bounds{Kept: 5, Reserve: 1, Bytes: 1 << 20})
	f.Do(`PUT /l {"k1":1,"k2":2,"k3":3,"k4":4,"k5":5}`)
	req := scanned(t, "/l", `orderBy="$value"&limitToFirst=6`)
	w := f.Watch(req)
	f.Do(`PUT /l/k6 6`)
	w.Expect("cancel")
	req.Wake = func() {}
	if _, _, err := f.Watches().Open(req); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a window of too many children gives %v", err)
	}
	all := f.Begin(scanned(t, "/l", `orderBy="$value"`)) // which is printed as it is found
	all.Expect(`first {"path":"/","data":{"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":6}}`)
	f.Do(`PUT /l/k0 0`)
	all.Expect(`patch {"path":"/","data":{"k0":0}}`)
	f.Do(`PUT /l {"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":7}`)
	all.Expect(`first {"path":"/","data":{"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":7}}`)
}
