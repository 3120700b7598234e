package store

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// TestKeysAndStand: which children a query selects, in the direction of its limit,
// and where each of them stands, for chunks and split nodes, without an index.
func TestKeysAndStand(t *testing.T) {
	atEveryLimit(t, func(s *stand) {
		rng := rand.New(rand.NewPCG(1, 2))
		orders := []query.Order{query.ByKey(), query.ByPriority(), query.ByValue(), query.ByChild(tree.Path{}.Child("a"))}
		for range 5 {
			s.put("/l", randomList(rng))
			n, err := tree.DecodeBytes([]byte(s.export("/l")), tree.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for range 60 {
				q := query.Query{Order: orders[rng.IntN(len(orders))], Limit: rng.IntN(8), Last: rng.IntN(2) == 0}
				all := query.Select(n, query.Query{Order: q.Order})
				s.compareStands(n, q.Order, all)
				q.Last = q.Last && q.Limit > 0
				edge := func() query.Bound {
					key := all[rng.IntN(len(all))]
					return q.Edge(q.Position(key, n.At(tree.Path{}.Child(key))), rng.IntN(2) == 0)
				}
				if rng.IntN(2) == 0 {
					q.Lower = edge()
				}
				if rng.IntN(2) == 0 {
					q.Upper = edge()
				}
				s.compareKeys(n, q)
			}
		}
	})
}

func (s *stand) compareKeys(n tree.Node, q query.Query) {
	s.Helper()
	want := query.Select(n, q)
	if q.Last {
		slices.Reverse(want)
	}
	view := s.View()
	defer view.Release()
	p := parsePath(s, "/l")
	got, err := view.Tree(s.id).Keys(p, q, nil)
	if err != nil || !slices.Equal(got, want) {
		s.Errorf("Keys(%s, %+v) = %q, %v, want %q", q.Order, q, got, err, want)
	}
	count, last, err := view.Tree(s.id).Measure(p, q, nil, len(want))
	if err != nil || count != len(want) || count > 0 && last != want[count-1] {
		s.Errorf("Measure(%s, %+v) = %d, %q, %v, want the last of %q", q.Order, q, count, last, err, want)
	}
	if _, _, err := view.Tree(s.id).Measure(p, q, nil, len(want)-1); len(want) > 1 && !errors.Is(err, ErrMany) {
		s.Errorf("Measure(%s, %+v) of one less than %d: %v, want %v", q.Order, q, len(want), err, ErrMany)
	}
}

// compareStands compares where the children stand, and one that is not there.
func (s *stand) compareStands(n tree.Node, order query.Order, keys []string) {
	s.Helper()
	view := s.View()
	defer view.Release()
	p := parsePath(s, "/l")
	for _, key := range keys {
		want := query.Query{Order: order}.Position(key, n.At(tree.Path{}.Child(key)))
		got, ok, err := view.Tree(s.id).OrderPosition(p, key, order)
		if err != nil || !ok || got != want {
			s.Errorf("Stand(%q, %s) = %+v, %v, %v, want %+v", key, order, got, ok, err, want)
		}
	}
	if _, ok, err := view.Tree(s.id).OrderPosition(p, "nobody", order); ok || err != nil {
		s.Errorf("a child that is not there stands somewhere: %v", err)
	}
}

func randomList(rng *rand.Rand) string {
	values := []string{`1`, `2`, `true`, `"x"`, `"` + strings.Repeat("long", 400) + `"`, `{"a":1}`, `{"a":{"b":1}}`, `{"a":"x","b":2}`}
	var parts []string
	for i := range 1 + rng.IntN(30) {
		value := values[rng.IntN(len(values))]
		if rng.IntN(3) == 0 && value[0] != '{' {
			value = fmt.Sprintf(`{".value":%s,".priority":%d}`, value, rng.IntN(3))
		}
		key := fmt.Sprint(i * 3)
		if i%2 == 0 {
			key = fmt.Sprintf("k%02d", i)
		}
		parts = append(parts, fmt.Sprintf("%q:%s", key, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// leastAllocations returns how often f allocates when no pool was emptied meanwhile.
func leastAllocations(f func()) int {
	least := math.MaxInt
	for range 5 {
		least = min(least, int(testing.AllocsPerRun(20, f)))
	}
	return least
}

// TestGrowthMeasure: what is allocated to count the children that a query selects,
// or to print a page of their keys, does not grow with their number, and neither
// does what is walked with the number of those that are not selected.
func TestGrowthMeasure(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := newStand(t, Options{})
	sizes := []int{200, 800, 3200}
	for _, n := range sizes {
		s.put(fmt.Sprint("n", n), prioritised(n))
	}
	view := s.View()
	defer view.Release()
	for _, order := range []query.Order{query.ByKey(), query.ByPriority()} {
		for _, last := range []bool{false, true} {
			var allocations, rows []int
			for _, n := range sizes {
				p := parsePath(t, fmt.Sprint("n", n))
				q := query.Query{Order: order, Limit: 1 << 30, Last: last}
				allocations = append(allocations, leastAllocations(func() {
					if count, _, err := view.Tree(s.id).Measure(p, q, nil, 0); err != nil || count != n {
						t.Fatalf("Measure = %d, %v, want %d", count, err, n)
					}
				}))
				q.Limit = 10
				tree, cost := view.Tree(s.id), seek.Cost{}
				tree.reader.Cost = &cost
				if _, _, err := tree.Measure(p, q, nil, 0); err != nil {
					t.Fatal(err)
				}
				rows = append(rows, cost.Rows)
			}
			if slices.Max(allocations) > slices.Min(allocations)+2 { // a pool may be emptied meanwhile
				t.Errorf("by %s, last %t: of %d children, Measure allocates %d times", order, last, sizes, allocations)
			}
			if slices.Max(rows) > 11 {
				t.Errorf("by %s, last %t: of %d children, 10 are measured by %d rows", order, last, sizes, rows)
			}
		}
	}
}

// TestShallowPage compares pages of keys with those of the node, and holds that
// what they allocate does not grow.
func TestShallowPage(t *testing.T) {
	atEveryLimit(t, func(s *stand) {
		rng := rand.New(rand.NewPCG(1, 2))
		for range 5 {
			s.put("/l", randomList(rng))
			n, err := tree.DecodeBytes([]byte(s.export("/l")), tree.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s.comparePages(n)
		}
		for at, want := range map[string]string{"/l/nothing": "null", "/l/leaf": "7"} {
			s.put("/l/leaf", "7")
			if got := s.page(at, "", 2); got != want {
				t.Errorf("the first page of %s is %s, want %s", at, got, want)
			}
			if got := s.page(at, "a", 2); got != "null" {
				t.Errorf("the second page of %s is %s, want null", at, got)
			}
		}
	})
}

// comparePages goes through all keys of /l in pages of every small size.
func (s *stand) comparePages(n tree.Node) {
	s.Helper()
	all := query.Select(n, query.Query{})
	for limit := range 5 {
		after, left := "", all
		for {
			want := left
			if limit > 0 {
				want = left[:min(limit, len(left))]
			}
			page := s.page("/l", after, limit)
			if got := strings.Count(page, ":true"); got != len(want) {
				s.Fatalf("%d keys after %q, limit %d: %s, want %q", got, after, limit, page, want)
			}
			if len(want) == 0 {
				break
			}
			for _, key := range want {
				if !strings.Contains(page, fmt.Sprintf("%q:true", key)) {
					s.Errorf("the page after %q is %s, want %q in it", after, page, key)
				}
			}
			left, after = left[len(want):], want[len(want)-1]
		}
	}
}

func (s *stand) page(at, after string, limit int) string {
	s.Helper()
	view := s.View()
	defer view.Release()
	page, err := view.Tree(s.id).ShallowPage(parsePath(s, at), after, limit)
	if err != nil {
		s.Fatal(err)
	}
	var text strings.Builder
	if err := errors.Join(page.PrintTo(&text), page.Close()); err != nil {
		s.Fatal(err)
	}
	return text.String()
}

// TestGrowthPage: a page of keys takes no memory for each of them.
func TestGrowthPage(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := newStand(t, Options{})
	var allocations []int
	for _, n := range []int{200, 800, 3200} {
		at := fmt.Sprint("n", n)
		s.put(at, prioritised(n))
		view := s.View()
		p := parsePath(t, at)
		allocations = append(allocations, leastAllocations(func() {
			page, err := view.Tree(s.id).ShallowPage(p, "k000001", 1<<30)
			if err == nil {
				err = errors.Join(page.PrintTo(io.Discard), page.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}))
		view.Release()
	}
	if slices.Max(allocations) > slices.Min(allocations)+2 {
		t.Errorf("pages of 200, 800 and 3,200 keys allocate %v times", allocations)
	}
}
