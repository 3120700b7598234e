package revert_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/compare"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/revert"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

var options = revert.Options{MaxBytes: 1 << 20, Who: enginetest.Admin}

// moment returns the database as it is now.
func moment(t *testing.T, f *enginetest.Fixture) store.Tree {
	t.Helper()
	id, _, err := f.Store.Find("db")
	if err != nil {
		t.Fatal(err)
	}
	view := f.Store.View()
	t.Cleanup(view.Release)
	return view.Tree(id)
}

// TestBack brings back what was deleted, and leaves alone what was written since.
func TestBack(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		f.Put("/users", `{"ada":{"name":"Ada","age":36,".priority":2},"bob":{"name":"Bob"},"cid":1,"dan":2}`)
		then := moment(t, f)
		f.Put("/users", "null")
		f.Put("/users", `{"bob":{"name":"Bobby"},"eve":5}`)
		users := enginetest.Path(t, "/users")
		preview, err := revert.Preview(t.Context(), then, f.Database, users, options)
		if err != nil || preview.String() != "/users: 3 back, 0 replaced, 0 deleted, 2 left as they are" {
			t.Fatalf("preview: %v, %v", preview, err)
		}
		done, err := revert.Do(t.Context(), then, f.Database, users, options)
		if err != nil || done.Position == 0 || len(done.Places) != 5 || done.Places[0] != (revert.Place{Path: "/users/ada", Was: "gone", Done: "back"}) {
			t.Fatalf("revert: %+v, %v", done, err)
		}
		want := `{"ada":{".priority":2,"age":36,"name":"Ada"},"bob":{"name":"Bobby"},"cid":1,"dan":2,"eve":5}`
		if got := f.Export("/users"); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		again, err := revert.Do(t.Context(), then, f.Database, users, options)
		if err != nil || again.Changes() || again.Position != 0 {
			t.Errorf("a second time: %+v, %v", again, err)
		}
	})
}

// TestRandom takes random parts back to random moments.
func TestRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	keys := []string{"a", "b", "7", "007", "é"}
	path := func() string {
		text := ""
		for range r.IntN(4) {
			text += "/" + keys[r.IntN(len(keys))]
		}
		return text
	}
	change := func(f *enginetest.Fixture) {
		at := path()
		switch r.IntN(5) {
		case 0:
			f.Put(at, "null")
		case 1:
			f.Put(at, fmt.Sprintf(`{".value":"a text of some length %d",".priority":%d}`, r.IntN(3), r.IntN(2)))
		default:
			f.Put(at, fmt.Sprintf(`{"a":{"b":%d,"x":"text"},"b":"%s","7":[1,2,{"é":true}]}`, r.IntN(3), strings.Repeat("y", r.IntN(40))))
		}
	}
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		for i := range 60 {
			for range 1 + r.IntN(4) {
				change(f)
			}
			then, text := moment(t, f), f.Export("/")
			for range r.IntN(4) {
				change(f)
			}
			before := moment(t, f)
			p, o := enginetest.Path(t, path()), options
			o.Overwrite = i%2 == 0
			done, err := revert.Do(t.Context(), then, f.Database, p, o)
			if err != nil {
				t.Fatal(err)
			}
			if done.Left == 1 && done.Places[0].Path != p.String() && strings.HasPrefix(p.String(), done.Places[0].Path) {
				continue // it would have replaced a value above it
			}
			after := moment(t, f)
			err = compare.Trees(then, after, p, func(d compare.Difference) error {
				if o.Overwrite || d.Kind == compare.Gone {
					t.Errorf("%s is %s after a revert of %s from\n%s", d.Path, d.Kind, p, text)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			err = compare.Trees(before, after, tree.Path{}, func(d compare.Difference) error {
				if !d.Path.Overlaps(p) || !o.Overwrite && d.Kind != compare.New {
					t.Errorf("the revert of %s made %s %s", p, d.Path, d.Kind)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestAbove leaves a value alone that was written above what is to come back.
func TestAbove(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	f.Put("/a/b", `{"c":1}`)
	then := moment(t, f)
	f.Put("/a", `"a value"`)
	p, o := enginetest.Path(t, "/a/b"), options
	left, err := revert.Do(t.Context(), then, f.Database, p, o)
	if err != nil || left.Changes() || left.Left != 1 || left.Places[0] != (revert.Place{Path: "/a", Was: "changed", Done: "left"}) {
		t.Errorf("%+v, %v", left, err)
	}
	o.Overwrite = true
	if _, err := revert.Do(t.Context(), then, f.Database, p, o); err != nil || f.Export("/") != `{"a":{"b":{"c":1}}}` {
		t.Errorf("%s, %v", f.Export("/"), err)
	}
}

// TestTooLarge refuses what does not fit into one commit, and changes nothing.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	f.Put("/a", `"`+strings.Repeat("x", 5000)+`"`)
	then := moment(t, f)
	f.Put("/a", "null")
	o := options
	o.MaxBytes = 1000
	_, err := revert.Do(t.Context(), then, f.Database, tree.Path{}, o)
	if fault.KindOf(err) != fault.TooLarge || f.Export("/") != "null" {
		t.Errorf("%v; then %s", err, f.Export("/"))
	}
}

// TestRaces takes back what others write at the same time. What they have written is
// never overwritten.
func TestRaces(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	f.Put("/n", `{"k0":-1,"k1":-1,"k2":-1,"k3":-1}`)
	then := moment(t, f)
	f.Put("/n", "null")
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() { f.Put(fmt.Sprintf("/n/k%d", i), "1") })
	}
	result, err := revert.Do(context.Background(), then, f.Database, enginetest.Path(t, "/n"), options)
	clients.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Export("/n"); got != `{"k0":1,"k1":1,"k2":1,"k3":1}` {
		t.Errorf("%s after %v", got, result)
	}
}
