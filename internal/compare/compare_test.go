package compare_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/compare"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// naive lists the differences of two nodes, by looking at every node of both.
func naive(p tree.Path, then, now tree.Node) (list []string) {
	tell := func(k compare.Kind) []string { return append(list, fmt.Sprintf("%s %s", p, k)) }
	switch {
	case then.IsNull() && now.IsNull():
		return nil
	case then.IsNull():
		return tell(compare.New)
	case now.IsNull():
		return tell(compare.Gone)
	case then.Kind() != now.Kind() || then.Leaf() != now.Leaf():
		return tell(compare.Changed)
	case then.Priority() != now.Priority():
		list = tell(compare.Priority)
	}
	seen := map[string]bool{}
	for _, n := range []tree.Node{then, now} {
		for key := range n.Children() {
			if !seen[key] {
				seen[key] = true
				list = append(list, naive(p.Child(key), then.Child(key), now.Child(key))...)
			}
		}
	}
	return list
}

// differences lists those that the package finds, and checks that they are in order.
func differences(t *testing.T, then, now store.Tree, p tree.Path) (list []string) {
	t.Helper()
	var last tree.Path
	err := compare.Trees(then, now, p, func(d compare.Difference) error {
		if len(list) > 0 && slices.CompareFunc(slices.Collect(last.Keys()), slices.Collect(d.Path.Keys()), tree.CompareKeys) >= 0 {
			t.Errorf("%s comes behind %s", d.Path, last)
		}
		last = d.Path
		list = append(list, fmt.Sprintf("%s %s", d.Path, d.Kind))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var keys = []string{"a", "b", "7", "007", "-1", "é", "😀", "zz"}

// randomPath returns a path of up to four keys.
func randomPath(r *rand.Rand) string {
	var path strings.Builder
	for range r.IntN(4) {
		path.WriteString("/" + keys[r.IntN(len(keys))])
	}
	return path.String()
}

// randomBody returns a node with up to a few levels.
func randomBody(r *rand.Rand, depth int) string {
	priority := ""
	if r.IntN(5) == 0 {
		priority = fmt.Sprintf(`".priority":%d`, r.IntN(3))
	}
	if depth == 0 || r.IntN(3) == 0 {
		value := []string{"1", "2", `"x"`, "true", `"a longer text than the others"`}[r.IntN(5)]
		if priority == "" {
			return value
		}
		return `{".value":` + value + "," + priority + "}"
	}
	var members []string
	for _, i := range r.Perm(len(keys))[:1+r.IntN(5)] {
		members = append(members, fmt.Sprintf("%q:%s", keys[i], randomBody(r, depth-1)))
	}
	if priority != "" {
		members = append(members, priority)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// change makes a random write.
func change(f *enginetest.Fixture, r *rand.Rand) {
	switch path := randomPath(r); r.IntN(6) {
	case 0:
		f.Put(path, "null")
	case 1:
		if path != "" {
			f.Do(fmt.Sprintf("PUT %s/.priority %d", path, r.IntN(3)))
		}
	default:
		f.Put(path, randomBody(r, 2))
	}
}

// TestTrees compares random moments of a database, with what looking at every node finds.
func TestTrees(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		id, _, err := f.Store.Find("db")
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for range 60 {
			for range r.IntN(8) {
				change(f, r)
			}
			old := f.Store.View()
			for range 1 + r.IntN(3) {
				change(f, r)
			}
			view := f.Store.View()
			then, now := old.Tree(id), view.Tree(id)
			for range 4 {
				p := enginetest.Path(t, randomPath(r))
				got := differences(t, then, now, p)
				a, errA := then.Node(p, 1<<20)
				b, errB := now.Node(p, 1<<20)
				if err := errors.Join(errA, errB); err != nil {
					t.Fatal(err)
				}
				want := naive(p, a, b)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("at %s:\n%s\nwant:\n%s", p, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				told += len(got)
			}
			old.Release()
			view.Release()
		}
		if told < 50 {
			t.Errorf("only %d differences were told", told)
		}
	})
}

// TestTreesEnds returns the error of yield, and tells nothing more.
func TestTreesEnds(t *testing.T) {
	t.Parallel()
	enginetest.EveryLimit(t, func(t *testing.T, f *enginetest.Fixture) {
		f.Put("/a", `{"b":1,"c":2,"d":{"e":3}}`)
		id, _, err := f.Store.Find("db")
		if err != nil {
			t.Fatal(err)
		}
		old := f.Store.View()
		defer old.Release()
		f.Put("/a", `{"b":2,"c":3,"d":{"f":3}}`)
		view := f.Store.View()
		defer view.Release()
		enough, told := errors.New("enough"), 0
		err = compare.Trees(old.Tree(id), view.Tree(id), tree.Path{}, func(compare.Difference) error {
			told++
			return enough
		})
		if !errors.Is(err, enough) || told != 1 {
			t.Errorf("%d were told, error %v", told, err)
		}
	})
}

// TestTreesUnwanted ends when nobody waits any more, in the midst of rows that are alike, too.
func TestTreesUnwanted(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{ChunkBytes: -1})
	var body strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&body, `,"k%06d":%d`, i, i)
	}
	f.Put("/many", "{"+body.String()[1:]+"}")
	id, _, err := f.Store.Find("db")
	if err != nil {
		t.Fatal(err)
	}
	old := f.Store.View()
	defer old.Release()
	f.Put("/many/k000000", "-1")
	f.Put("/many/k001999", "-1")
	view := f.Store.View()
	defer view.Release()
	gone, told := make(chan struct{}), 0
	err = compare.Trees(old.Tree(id), view.Tree(id).Until(gone), tree.Path{}, func(compare.Difference) error {
		if told++; told == 1 {
			close(gone)
		}
		return nil
	})
	if !errors.Is(err, seek.ErrUnwanted) || told != 1 {
		t.Errorf("%d were told, error %v", told, err)
	}
}

// BenchmarkTrees compares two moments of 100,000 children of which one differs.
func BenchmarkTrees(b *testing.B) {
	f := enginetest.Open(b, store.Options{})
	var body strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&body, `,"k%06d":{"name":"somebody","n":%d}`, i, i)
	}
	f.Put("/many", "{"+body.String()[1:]+"}")
	id, _, err := f.Store.Find("db")
	if err != nil {
		b.Fatal(err)
	}
	old := f.Store.View()
	defer old.Release()
	f.Put("/many/k050000/n", "0")
	view := f.Store.View()
	defer view.Release()
	for b.Loop() {
		n := 0
		err := compare.Trees(old.Tree(id), view.Tree(id), tree.Path{}, func(compare.Difference) error { n++; return nil })
		if err != nil || n != 1 {
			b.Fatal(n, err)
		}
	}
}
