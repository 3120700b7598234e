package scan_test

import (
	"bytes"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/scan"
	"github.com/livetree/livetree/internal/store"
	"github.com/livetree/livetree/internal/tree"
)

// parse reads a query that is written like orderBy="a"&limitToFirst=2.
func parse(t testing.TB, parameters string) query.Query {
	t.Helper()
	return *enginetest.Filtered(t, "/", parameters).Query
}

// randomQuery returns a query in an order that an index could have.
func randomQuery(t testing.TB, rng *mathrand.Rand) query.Query {
	order := []string{`"$value"`, `"$priority"`, `"a"`, `"b/c"`}[rng.IntN(4)]
	text := "orderBy=" + order
	bound := func() string {
		if order == `"$priority"` {
			return []string{`null`, `1`, `"p"`}[rng.IntN(3)]
		}
		return []string{`null`, `false`, `1`, `3`, `"a"`, `"m"`}[rng.IntN(6)]
	}
	if rng.IntN(3) == 0 {
		text += "&startAt=" + bound()
	}
	if rng.IntN(3) == 0 {
		text += "&endAt=" + bound() + `,"k7"`
	}
	if n := rng.IntN(12); n > 0 {
		text += fmt.Sprintf("&%s=%d", []string{"limitToFirst", "limitToLast"}[rng.IntN(2)], n)
	}
	return parse(t, text)
}

func randomValue(rng *mathrand.Rand) string {
	return []string{`false`, `true`, `0`, `1`, `2.5`, `3`, `"a"`, `"b"`, `"z"`, `{"deep":1}`}[rng.IntN(10)]
}

func randomChild(rng *mathrand.Rand) string {
	switch rng.IntN(5) {
	case 0:
		return randomValue(rng)
	case 1:
		return fmt.Sprintf(`{".value":%d,".priority":%d}`, rng.IntN(4), rng.IntN(3))
	case 2:
		return fmt.Sprintf(`{"a":%s,"pad":"%s"}`, randomValue(rng), strings.Repeat("x", rng.IntN(200)))
	default:
		return fmt.Sprintf(`{"a":%s,"b":{"c":%s},".priority":"p"}`, randomValue(rng), randomValue(rng))
	}
}

func keysOf(list []query.Position) []string {
	keys := make([]string, 0, len(list))
	for _, p := range list {
		keys = append(keys, p.Key)
	}
	return keys
}

// selected returns the keys that a query selects of a whole node, in the direction of
// its limit.
func selected(n tree.Node, q query.Query) []string {
	keys := append([]string{}, query.Select(n, q)...)
	if q.Last {
		slices.Reverse(keys)
	}
	return keys
}

// printed returns what a query selects of a whole node, as text.
func printed(n tree.Node, q query.Query, form tree.Form) string {
	if !n.IsObject() {
		return "null"
	}
	keys := query.Select(n, q)
	slices.SortFunc(keys, tree.CompareKeys)
	text := []byte{'{'}
	for i, key := range keys {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(tree.AppendString(text, key), ':')
		text = tree.AppendJSON(text, n.Child(key), form)
	}
	return string(append(text, '}'))
}

// TestScanIsSelection compares scans of random nodes with the obvious selection in
// memory: what is found, what is printed, and what is known after a few children changed.
func TestScanIsSelection(t *testing.T) {
	t.Parallel()
	seed := mathrand.Uint64()
	rng := mathrand.New(mathrand.NewPCG(seed, 0))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	histories := 10
	if enginetest.Race {
		histories = 2
	}
	bounds := scan.Bounds{Kept: kept, Reserve: 2, Bytes: 1 << 20}
	short, moved := 0, 0
	for _, chunk := range []int{-1, 64, 4096} {
		f := enginetest.Open(t, store.Options{ChunkBytes: chunk})
		for range histories {
			h := history{T: t, Fixture: f, rng: rng, pool: scan.NewPool(bounds)}
			h.begin()
			for range 12 {
				h.step()
			}
			short, moved = short+h.short, moved+h.moved
		}
	}
	if short == 0 || moved == 0 {
		t.Errorf("%d moves were short and %d were not, want some of each", short, moved)
	}
}

// kept is how many children a history keeps.
const kept = 12

// A history is a node that changes, with what is known of it.
type history struct {
	*testing.T
	*enginetest.Fixture
	rng  *mathrand.Rand
	pool *scan.Pool

	queries      []query.Query
	known        []*scan.Known
	short, moved int
}

// look returns the node for a scan, and as a whole.
func (h *history) look() (n scan.Node, whole tree.Node, done func()) {
	v := h.View()
	at := enginetest.Path(h.T, "/l")
	whole, err := v.Tree().Node(at, 1<<28)
	if err != nil {
		h.Fatal(err)
	}
	return scan.Node{Tree: v.Tree(), Path: at, Pool: h.pool}, whole, v.Close
}

func (h *history) begin() {
	var members []string
	for i := range h.rng.IntN(30) {
		members = append(members, fmt.Sprintf(`"k%d":%s`, i, randomChild(h.rng)))
	}
	h.Do(`DELETE /l`)
	switch h.rng.IntN(10) {
	case 0:
		h.Do(`PUT /l "a leaf"`)
	default:
		h.Do(`PUT /l {` + strings.Join(members, ",") + `}`)
	}
	n, whole, done := h.look()
	defer done()
	for range 6 {
		q := randomQuery(h.T, h.rng)
		h.queries, h.known = append(h.queries, q), append(h.known, h.find(n, whole, q))
	}
}

// find scans and compares.
func (h *history) find(n scan.Node, whole tree.Node, q query.Query) *scan.Known {
	known, err := scan.Find(n, q)
	if err != nil {
		h.Fatalf("Find(%+v) = %v", q, err)
	}
	h.compare(n, whole, q, known)
	if q.Limit == 0 {
		if n := len(query.Select(whole, q)); known.Many() != (n > kept) {
			h.Fatalf("%+v of %d children is too many: %t", q, n, known.Many())
		}
		var text bytes.Buffer
		if err := scan.Print(&text, n, q, tree.Export); err != nil || text.String() != printed(whole, q, tree.Export) {
			h.Fatalf("Print(%+v)\n got %s\nwant %s (%v)", q, &text, printed(whole, q, tree.Export), err)
		}
	}
	return known
}

// compare compares what is known with the selection.
func (h *history) compare(n scan.Node, whole tree.Node, q query.Query, known *scan.Known) {
	want := selected(whole, q)
	if known.Many() { // they may be fewer by now
		if q.Limit > 0 {
			h.Fatalf("%+v is too many", q)
		}
		return
	}
	got := keysOf(known.Shown(q))
	if q.Limit == 0 { // in no order that matters
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		h.Fatalf("%+v\n got %q\nwant %q", q, got, want)
	}
	var text bytes.Buffer
	if err := known.Print(&text, n, q, tree.Plain); err != nil || text.String() != printed(whole, q, tree.Plain) {
		h.Fatalf("Known.Print(%+v)\n got %s\nwant %s (%v)", q, &text, printed(whole, q, tree.Plain), err)
	}
}

// step changes some children, and moves what is known.
func (h *history) step() {
	var touched, members []string
	for range []int{1, 2, 4, 20}[h.rng.IntN(4)] {
		key := fmt.Sprintf("k%d", h.rng.IntN(32))
		if slices.Contains(touched, key) {
			continue
		}
		body := "null"
		if h.rng.IntN(3) > 0 {
			body = randomChild(h.rng)
		}
		touched, members = append(touched, key), append(members, fmt.Sprintf(`"%s":%s`, key, body))
	}
	h.Do(`PATCH /l {` + strings.Join(members, ",") + `}`)
	n, whole, done := h.look()
	defer done()
	for i, q := range h.queries {
		stand := func(key string) (*query.Position, error) {
			p, ok, err := n.Tree.OrderPosition(n.Path, key, q.Order)
			if !ok {
				return nil, err
			}
			return &p, err
		}
		known, err := h.known[i].Moved(q, touched, stand)
		switch {
		case err != nil:
			h.Fatal(err)
		case known.Short(q):
			h.short++
			known = h.find(n, whole, q)
		default:
			h.moved++
			h.compare(n, whole, q, known)
		}
		h.known[i] = known
	}
}

// TestRefusals: what cannot be kept is refused before it takes memory.
func TestRefusals(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{ChunkBytes: -1})
	var members []string
	for i := range 40 {
		members = append(members, fmt.Sprintf(`"k%d":{"a":%d,"text":"%s"}`, i, i, strings.Repeat("x", 100)))
	}
	f.Do(`PUT /l {` + strings.Join(members, ",") + `}`)
	v := f.View()
	defer v.Close()
	node := scan.Node{Tree: v.Tree(), Path: enginetest.Path(t, "/l")}
	cases := []struct {
		query  string
		bounds scan.Bounds
		most   int
		want   error // nil for fault.Invalid
		shown  int
	}{
		{`orderBy="a"&limitToFirst=20`, scan.Bounds{Kept: 20, Bytes: 1 << 20}, 0, nil, 20},
		{`orderBy="a"&limitToFirst=21`, scan.Bounds{Kept: 20, Bytes: 1 << 20}, 0, nil, -1},
		{`orderBy="a"&limitToFirst=21&startAt=30`, scan.Bounds{Kept: 20, Bytes: 1 << 20}, 0, nil, 10},
		{`orderBy="text"&limitToLast=20`, scan.Bounds{Kept: 20, Bytes: 20 * 180}, 0, nil, 20},
		{`orderBy="text"&limitToLast=20`, scan.Bounds{Kept: 20, Reserve: 9, Bytes: 20 * 180}, 0, nil, 20},
		{`orderBy="text"&limitToLast=20`, scan.Bounds{Kept: 20, Bytes: 10 * 180}, 0, nil, -1},
		{`orderBy="a"&limitToFirst=2`, scan.Bounds{Kept: 20, Bytes: 1 << 20}, 39, store.ErrMany, -1},
		{`orderBy="a"&limitToFirst=2`, scan.Bounds{Kept: 20, Bytes: 1 << 20}, 1000, nil, 2},
	}
	for _, c := range cases {
		node.Pool, node.Most = scan.NewPool(c.bounds), c.most
		q := parse(t, c.query)
		known, err := scan.Find(node, q)
		switch {
		case c.shown >= 0:
			if err != nil || len(known.Shown(q)) != c.shown {
				t.Errorf("%s within %+v: %v, want %d children", c.query, c.bounds, err, c.shown)
			}
		case c.want != nil && !errors.Is(err, c.want), c.want == nil && fault.KindOf(err) != fault.Invalid:
			t.Errorf("%s within %+v, %d: %v is no refusal", c.query, c.bounds, c.most, err)
		}
	}
}
