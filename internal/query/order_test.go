package query_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/tree"
)

func TestOrderString(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"$key", "$value", "$priority", "a", "a/b"} {
		if got := parse(t, map[string]string{"orderBy": `"` + text + `"`}).Order.String(); got != text {
			t.Errorf("the order by %s is called %s", text, got)
		}
	}
	if p, ok := query.ByChild(path(t, "a/b")).Child(); p != path(t, "a/b") || !ok {
		t.Errorf("Child of the order by a/b = %v, %v; want /a/b", p, ok)
	}
	if p, ok := query.ByValue().Child(); ok {
		t.Errorf("Child of the order by value = %v, want none", p)
	}
}

// TestSpecIndexes holds rule 9 of filtering: by child and by $value need an
// index, and how .indexOn spells it.
func TestSpecIndexes(t *testing.T) {
	t.Parallel()
	for orderBy, want := range map[string]string{
		"a": "a", "/a/b/": "a/b", "$value": ".value", "$priority": ".priority",
	} {
		order := parse(t, map[string]string{"orderBy": `"` + orderBy + `"`}).Order
		index, ok := order.Index()
		if got := index.String(); !ok || got != want {
			t.Errorf("the order by %s needs the index %q, %v; want %q", orderBy, got, ok, want)
		}
		parsed, err := query.ParseIndex(want)
		if parsed != index || parsed.Order() != order || err != nil {
			t.Errorf("ParseIndex(%q) = %v, %v; want the index of the order by %s", want, parsed, err, orderBy)
		}
	}
	if index, ok := query.ByKey().Index(); ok {
		t.Errorf("the order by key needs the index %v, want none", index)
	}
}

func TestParseIndexRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "/", ".key", ".foo", "$key", "$value", "a.b", "a/.value", "a\n", strings.Repeat("a/", 33)} {
		if index, err := query.ParseIndex(text); !errors.Is(err, query.ErrInvalidIndex) {
			t.Errorf("ParseIndex(%.20q) = %v, %v; want invalid", text, index, err)
		}
	}
}

func TestValueOfChild(t *testing.T) {
	t.Parallel()
	n := decode(t, `{".priority":"p","a":{"b":5,"c":{"d":1}}}`)
	tests := []struct {
		order query.Order
		want  query.Value
	}{
		{query.ByKey(), query.Value{}},
		{query.ByValue(), query.ObjectValue()},
		{query.ByPriority(), query.LeafValue(tree.StringLeaf("p"))},
		{query.ByChild(path(t, "a")), query.ObjectValue()},
		{query.ByChild(path(t, "a/b")), query.LeafValue(tree.IntegerLeaf(5))},
		{query.ByChild(path(t, "a/b/c")), query.Value{}},
		{query.ByChild(path(t, "x")), query.Value{}},
	}
	for _, test := range tests {
		if got := test.order.Value(n); got != test.want {
			t.Errorf("ordered by %v, the value is %v, want %v", test.order, got, test.want)
		}
	}
}

// checkTotalOrder holds that three positions have an order.
func checkTotalOrder(t *testing.T, a, b, c query.Position) {
	t.Helper()
	ab, ba, bc, ac := query.Compare(a, b), query.Compare(b, a), query.Compare(b, c), query.Compare(a, c)
	if ab != -ba {
		t.Errorf("Compare(%v, %v) = %d, but %d the other way round", a, b, ab, ba)
	}
	if (ab == 0) != (a.Key == b.Key && query.CompareValues(a.Value, b.Value) == 0) {
		t.Errorf("Compare(%v, %v) = %d", a, b, ab)
	}
	if ab <= 0 && bc <= 0 && (ac > 0 || ac == 0 && (ab < 0 || bc < 0)) {
		t.Errorf("%v, %v, %v ascend, but Compare of the first and the last is %d", a, b, c, ac)
	}
	if query.Compare(a, a) != 0 {
		t.Errorf("%v is not equal to itself", a)
	}
}

func TestPositionsAreTotallyOrdered(t *testing.T) {
	t.Parallel()
	g := generator{random(t)}
	for range 20_000 {
		checkTotalOrder(t, g.position(), g.position(), g.position())
	}
}

// FuzzPositions holds the total order, and that index values keep it, for
// what the generator makes of a seed and for the two strings.
func FuzzPositions(f *testing.F) {
	f.Add(uint64(1), "a\x00b", "a")
	f.Add(uint64(2), "😀", "\uffee")
	f.Add(uint64(3), strings.Repeat("x", query.MaxIndexedText), strings.Repeat("x", query.MaxIndexedText+1))
	f.Fuzz(func(t *testing.T, seed uint64, x, y string) {
		g := generator{rand.New(rand.NewPCG(seed, 0))}
		a, b, c := g.position(), g.position(), g.position()
		a.Value = query.LeafValue(tree.StringLeaf(strings.ToValidUTF8(x, "")))
		b.Value = query.LeafValue(tree.StringLeaf(strings.ToValidUTF8(y, "")))
		checkTotalOrder(t, a, b, c)
		checkIndexOrder(t, a.Value, b.Value)
		checkIndexOrder(t, a.Value, c.Value)
	})
}
