package watch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
	"github.com/livetree/livetree/internal/watch"
)

// deliveryQueries are windows of a small list.
var deliveryQueries = []string{
	`orderBy="$key"`, `orderBy="$key"&limitToFirst=2`, `orderBy="$key"&limitToLast=2`, `orderBy="$key"&startAt="b"&endAt="c"`,
	`orderBy="a"&limitToFirst=1`, `orderBy="a"&limitToLast=2`, `orderBy="a"&startAt=2`, `orderBy="a"&equalTo=null`,
	`orderBy="a"&startAt=1&endAt=3&limitToLast=1`, `orderBy="$value"&limitToFirst=2`, `orderBy="$value"&startAt=1&limitToLast=2`,
	`orderBy="$priority"&limitToLast=2`, `orderBy="$priority"&startAt=1&limitToFirst=1`, `orderBy="$priority"&equalTo=null`,
}

// A deliveryWatch is a watch with the cache that its events make.
type deliveryWatch struct {
	f *fixture
	*enginetest.Watcher
	request watch.Request
	what    string
	cache   cache
}

// TestDeliveries holds the dispatcher up while some random commits are made, and
// begins watches of all kinds before, between and behind them. When it has handed
// all on at once, every watch must show what a read gives.
func TestDeliveries(t *testing.T) {
	rounds := 100
	if enginetest.Race || testing.Short() {
		rounds = 25
	}
	seed := mathrand.Uint64()
	rng := mathrand.New(mathrand.NewPCG(seed, 0))
	for _, limit := range []int{-1, 2048} {
		f := withIndexes(t, store.Options{ChunkBytes: limit})
		hold, release := f.holdDispatcher()
		for round := range rounds {
			history := []string{`PUT / ` + deliveryBody(rng)}
			f.Do(history[0])
			var all []*deliveryWatch
			all = f.beginAll(all, "before all")
			hold()
			for i := range 1 + rng.IntN(5) {
				history = append(history, deliveryRequest(rng))
				f.Do(history[i+1])
				all = f.beginAll(all, fmt.Sprintf("behind %d", i+1))
			}
			release()
			for _, w := range all {
				if err := w.settle(); err != nil {
					t.Errorf("chunk limit %d, seed %d, round %d: watch of %s: %v\n%s", limit, seed, round, w.what, err, strings.Join(history, "\n"))
				}
				w.Close()
			}
			if t.Failed() {
				return
			}
		}
	}
}

// TestWindowThatEndsWithItsIndexBuilt: an index is built, and the node is replaced, within one delivery. What the window was before
// must not be looked for in that index, which had nothing then: there would be nothing to tell.
func TestWindowThatEndsWithItsIndexBuilt(t *testing.T) {
	for _, bounds := range []string{`startAt=0&endAt=5`, `startAt=0&limitToFirst=1&endAt=5`, `startAt=0&limitToLast=2&endAt=5`} {
		f := open(t, store.Options{ChunkBytes: -1})
		f.Rule(`{"rules": {"l": {".read": true}}}`)
		f.Do(`PUT /l {"a":0,"b":"x"}`)
		w := &deliveryWatch{f: f, request: scanned(t, "/l", `orderBy="$value"&`+bounds)}
		w.Watcher = f.Begin(w.request)
		if err := w.take(); err != nil {
			t.Fatal(err)
		}
		hold, release := f.holdDispatcher()
		hold()
		f.Rule(`{"rules": {"l": {".read": true, ".indexOn": ".value"}}}`)
		if err := enginetest.WaitForIndexes(context.Background(), f.Database); err != nil {
			t.Fatal(err)
		}
		f.Do(`PUT /l {"c":false}`)
		release()
		if err := w.settle(); err != nil {
			t.Errorf("%s: %v", bounds, err)
		}
	}
}

// holdDispatcher returns functions that hold the dispatcher up, and let it go and
// wait until it has handed on what there is.
func (f *fixture) holdDispatcher() (hold, release func()) {
	reached, held := make(chan bool), make(chan bool)
	var armed atomic.Bool
	blocker := whole(f.T, "/block")
	blocker.Wake = func() {
		if armed.CompareAndSwap(true, false) {
			reached <- true
			<-held
		}
	}
	n := 0
	w := f.Watch(blocker)
	hold = func() {
		f.WaitForWatches()
		n++
		armed.Store(true)
		f.Do(fmt.Sprintf(`PUT /block %d`, n))
		<-reached
	}
	release = func() {
		held <- true
		f.WaitForWatches()
		w.Events()
	}
	return hold, release
}

// beginAll begins a watch of every kind and lets it take what is ready.
func (f *fixture) beginAll(all []*deliveryWatch, when string) []*deliveryWatch {
	begin := func(req watch.Request, what string) {
		w := &deliveryWatch{f: f, Watcher: f.Begin(req), request: req, what: what + ", begun " + when}
		if err := w.take(); err != nil {
			f.T.Fatal(err)
		}
		all = append(all, w)
	}
	for _, at := range []string{"/", "/l", "/l/a", "/l/a/a"} {
		req := whole(f.T, at)
		begin(req, at)
		req.Form = tree.Export
		begin(req, at+" in export form")
		req.Priority = true
		begin(req, at+"/.priority")
	}
	for i, q := range deliveryQueries {
		req := filtered(f.T, "/l", q)
		if i%4 == 0 {
			req.Form = tree.Export
		}
		begin(req, "/l?"+q)
	}
	return all
}

// take applies the events that are there.
func (w *deliveryWatch) take() error {
	for {
		e, ok := w.Next()
		if !ok {
			return nil
		}
		if e.Kind > watch.Patch {
			return fmt.Errorf("it has ended: %s", describe(w.f.T, e))
		}
		if e.Content == nil {
			if err := w.cache.apply(e.Kind == watch.Patch, enginetest.Text(e)); err != nil {
				return err
			}
			continue
		}
		var text bytes.Buffer
		if err := errors.Join(e.Content.PrintTo(&text), e.Content.Close()); err != nil {
			return err
		}
		value, err := parseJSON(text.Bytes())
		if err != nil {
			return err
		}
		w.cache.put("/", value)
	}
}

// settle takes the rest and compares with a read.
func (w *deliveryWatch) settle() error {
	if err := w.take(); err != nil {
		return err
	}
	s := w.f.View()
	defer s.Close()
	var text bytes.Buffer
	if err := printWatched(&text, s, w.request); err != nil {
		return err
	}
	want, err := parseJSON(text.Bytes())
	if err == nil && !reflect.DeepEqual(w.cache.value, want) {
		err = fmt.Errorf("\n got %s\nwant %s", w.cache.String(), (&cache{want}).String())
	}
	return err
}

func deliveryValue(rng *mathrand.Rand) string {
	return []string{"null", "false", "1", "2", "3", `"x"`, `{"a":1}`, `{"a":2,"b":1}`, `{"a":3,".priority":1}`,
		`{".value":2,".priority":2}`, `{"a":{"b":1}}`}[rng.IntN(11)]
}

func deliveryBody(rng *mathrand.Rand) string {
	return fmt.Sprintf(`{"l":{"a":%s,"b":%s,"c":%s,"1":%s,"e":{"a":2}}}`,
		deliveryValue(rng), deliveryValue(rng), deliveryValue(rng), deliveryValue(rng))
}

// deliveryRequest returns a request that concerns the list, mostly one child.
func deliveryRequest(rng *mathrand.Rand) string {
	key := []string{"a", "b", "c", "d", "1"}[rng.IntN(5)]
	switch rng.IntN(16) {
	case 0, 1, 2:
		return fmt.Sprintf(`PUT /l/%s %s`, key, deliveryValue(rng))
	case 3, 4:
		return fmt.Sprintf(`DELETE /l/%s`, key)
	case 5, 6, 7:
		return fmt.Sprintf(`PUT /l/%s/a %d`, key, rng.IntN(4))
	case 8, 9:
		return fmt.Sprintf(`PUT /l/%s/b %d`, key, rng.IntN(4))
	case 10:
		return fmt.Sprintf(`PUT /l/%s/.priority %d`, key, rng.IntN(3))
	case 11:
		return fmt.Sprintf(`PATCH /l {"%s/a":%d,"%s":%s}`, key, rng.IntN(4), "z"+key, deliveryValue(rng))
	case 12:
		return fmt.Sprintf(`PATCH / {"l/%s":%s,"l/.priority":%d,"m":1}`, key, deliveryValue(rng), rng.IntN(3))
	case 13:
		return fmt.Sprintf(`PATCH /l {"%s/.priority":%d,"%s/b":%d}`, key, rng.IntN(3), key, rng.IntN(3))
	case 14:
		return fmt.Sprintf(`PUT /l/%s/a/deep/er %d`, key, rng.IntN(3))
	default:
		return []string{`DELETE /l`, `PUT /l "leaf"`, `PUT / ` + deliveryBody(rng), `PUT /l/.priority 5`}[rng.IntN(4)]
	}
}
