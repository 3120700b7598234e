package rows

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/store"
)

// TestHistory lists who did what to a node, with what it was before and after.
func TestHistory(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	for _, request := range []string{
		`PUT /users/ada {"name":"Ada","age":36}`, `PUT /users/bob 1`, `PATCH /users {"ada/age":37,"bob":2}`, `PUT /users/ada/.priority 5`, `DELETE /users`,
	} {
		f.Do(request)
	}
	h, err := ReadHistory(t.Context(), f.Database, HistoryRequest{Path: enginetest.Path(t, "/users/ada")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range h.Entries {
		got = append(got, fmt.Sprintf("%s by %s: %s -> %s", e.Path, e.Who.By, e.Before.Value, e.After.Value))
	}
	want := []string{
		`/users/ada by secret: null -> {"age":36,"name":"Ada"}`,
		`/users by secret: {"age":36,"name":"Ada"} -> {"age":37,"name":"Ada"}`,
		`/users/ada by secret: {"age":37,"name":"Ada"} -> {".priority":5,"age":37,"name":"Ada"}`,
		`/users by secret: {".priority":5,"age":37,"name":"Ada"} -> null`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if h.More || h.Reaches != 0 {
		t.Errorf("it says %+v", h)
	}
	first, err := ReadHistory(t.Context(), f.Database, HistoryRequest{Path: enginetest.Path(t, "/users/ada"), Limit: 2})
	if err != nil || !first.More || len(first.Entries) != 2 {
		t.Fatalf("%+v, %v", first, err)
	}
	rest, err := ReadHistory(t.Context(), f.Database, HistoryRequest{Path: enginetest.Path(t, "/users/ada"), Behind: first.To})
	if err != nil || rest.More || len(rest.Entries) != 2 || rest.Entries[0].Before != nil || rest.Entries[1].After.Value != "null" {
		t.Errorf("%+v, %v", rest, err)
	}
}

// TestHistoryIsTrue compares what a history says of a node after each commit with what was
// there.
func TestHistoryIsTrue(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	f := enginetest.Open(t, store.Options{ChunkBytes: 24})
	paths := []string{"/", "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/e", "/f"}
	bodies := []string{"null", "1", `"text"`, `{"b":{"c":2}}`, `{"c":{"d":true},"x":1}`, `{".value":1,".priority":2}`}
	const watched = "/a/b"
	seen := map[uint64]string{}
	last := f.Export(watched)
	for range 300 {
		path := paths[r.IntN(len(paths))]
		commit := f.Put(path, bodies[r.IntN(len(bodies))])
		if now := f.Export(watched); now != last {
			seen[commit.Position], last = now, now
		}
	}
	h, err := ReadHistory(t.Context(), f.Database, HistoryRequest{Path: enginetest.Path(t, watched)})
	if err != nil {
		t.Fatal(err)
	}
	before := "null"
	for _, e := range h.Entries {
		_, position, _ := ParseID(e.At)
		if now, ok := seen[position]; ok {
			if e.After.Value != now || e.Before.Value != before {
				t.Fatalf("commit %d: %s -> %s, but it was %s -> %s", position, e.Before.Value, e.After.Value, before, now)
			}
			before = now
			delete(seen, position)
		} else if e.After.Value != before {
			t.Fatalf("commit %d changed nothing, and is said to lead to %s", position, e.After.Value)
		}
	}
	if len(seen) > 0 {
		t.Errorf("commits are missing: %v", seen)
	}
}

// TestHistoryGoesOn reads a log of which little can be read at once, and lists all the same.
func TestHistoryGoesOn(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	for i := range 50 {
		f.Do(fmt.Sprintf(`PUT /other/%d "%s"`, i, strings.Repeat("x", 100)))
		if i%10 == 9 {
			f.Do(fmt.Sprintf(`PUT /a %d`, i))
		}
	}
	req := HistoryRequest{Path: enginetest.Path(t, "/a"), maxBytes: 700}
	var got []string
	pages := 0
	for more := true; more; pages++ {
		h, err := ReadHistory(t.Context(), f.Database, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range h.Entries {
			got = append(got, e.After.Value)
		}
		more, req.Behind = h.More, h.To
	}
	if fmt.Sprint(got) != "[9 19 29 39 49]" || pages < 5 {
		t.Errorf("%d histories list %v", pages, got)
	}
}

// TestHistoryCuts shows the beginning of what is long.
func TestHistoryCuts(t *testing.T) {
	t.Parallel()
	f := enginetest.Open(t, store.Options{})
	for _, text := range []string{strings.Repeat("x", 998), strings.Repeat("x", 999), strings.Repeat("ö", 998), strings.Repeat("𝄞", 2000)} {
		f.Put("/a", `"`+text+`"`)
		h, err := ReadHistory(t.Context(), f.Database, HistoryRequest{Path: enginetest.Path(t, "/a")})
		if err != nil {
			t.Fatal(err)
		}
		want := []rune(`"` + text + `"`)
		got := h.Entries[len(h.Entries)-1].After
		if got.Value != string(want[:min(len(want), historyCut)]) || got.Cut != (len(want) > historyCut) {
			t.Errorf("of %d characters it shows %d, cut %t", len(want), len([]rune(got.Value)), got.Cut)
		}
	}
}
