package batch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/query"
	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/store/seek"
	"github.com/livetree/livetree/internal/tree"
)

// TestIndexRowsOfEditedRows writes to parts of children that are one row each: at what is indexed,
// above it, below it and beside it. The index rows must be those of the data.
func TestIndexRowsOfEditedRows(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	s := newStand(t, 200)
	s.indexes = &layout.Indexes{Children: map[string]*layout.Indexes{"users": {Here: []layout.Index{
		{Number: 1, Order: query.ByChild(parsePath(t, "n"))}, {Number: 2, Order: query.ByChild(parsePath(t, "in/n"))}, {Number: 3, Order: query.ByValue()},
	}}}}
	body := func() string {
		return []string{"1", "2", `"s"`, "true", `{"n":1}`, `{"n":2,"o":"x"}`, `{"n":{"n":3}}`, "null"}[rng.IntN(8)]
	}
	for user := range 4 {
		s.put(fmt.Sprintf("users/u%d", user), `{"n":1,"in":{"n":1,"o":2},"other":"a text that makes it too long for one row of all","more":3}`)
	}
	paths := []string{"n", "in", "in/n", "in/n/n", "in/o", "other", "more", "nn", "i"}
	for range 800 {
		user := fmt.Sprintf("users/u%d", rng.IntN(4))
		if rng.IntN(3) > 0 {
			s.put(user+"/"+paths[rng.IntN(len(paths))], body())
		} else {
			s.patch(user, fmt.Sprintf(`{"more":%s,"in/o":%s,"n":%s}`, body(), body(), body()))
		}
		if s.check(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestWritesBesideAnIndexedLongString: a write does not read what is indexed in a child
// and stays as it is.
func TestWritesBesideAnIndexedLongString(t *testing.T) {
	const long = 1 << 20
	for _, c := range []struct {
		at, body string
		reads    bool
	}{
		{"users/u1/age", "2", false},
		{"users/u1/age", "null", false},
		{"users/u1/new", `{"x":1}`, false},
		{"users/u1/in/other", "2", false},
		{"users/u2", "null", false},
		{"users/u1/in/name", "2", true},
		{"users/u1/in/name/x", "2", true},
		{"users/u1/in/name/x", "null", true},
		{"users/u1/in", "null", true},
	} {
		s := newStand(t, 100)
		s.indexes = &layout.Indexes{Children: map[string]*layout.Indexes{"users": {Here: []layout.Index{{Number: 1, Order: query.ByChild(parsePath(t, "in/name"))}}}}}
		s.put("users/u1", fmt.Sprintf(`{"age":1,"in":{"name":"%s","other":1}}`, strings.Repeat("x", long)))
		s.put("users/u2", `{"age":1,"in":{"name":1}}`)
		r := s.live()
		r.Cost = &seek.Cost{}
		b, err := s.Build(r, tree.Change{Write: putWrite(t, c.at, c.body), Position: 9, Millis: 1}, s.indexes, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		if got := r.Cost.Bytes >= long; got != c.reads {
			t.Errorf("a put of %s at %s reads %d bytes, with the indexed string: %v, want %v", c.body, c.at, r.Cost.Bytes, got, c.reads)
		}
		s.put(c.at, c.body)
		s.check()
	}
}
