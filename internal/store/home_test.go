package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestSplice: a row that is put together from the old one is the row that
// decoding, editing and encoding give.
func TestSplice(t *testing.T) {
	const chunk = `{"a":1,"b":{"c":"x","d":{"e":true}},"long":"` + "0123456789" + `","q\"\\":2}`
	long := `"` + strings.Repeat("y", MaxChunkBytes) + `"`
	for _, c := range []struct {
		chunk, patch string
		want         bool
	}{
		{chunk, `{"a":2}`, true},
		{chunk, `{"a":"a longer text, with a \" in it"}`, true},
		{chunk, `{"a":{"x":{"y":1}}}`, true},
		{chunk, `{"b":3}`, true},
		{chunk, `{"b/d":"less"}`, true},
		{chunk, `{"b/d/e":null}`, false},
		{chunk, `{"b/d/e":false,"a":0,"long":""}`, true},
		{chunk, `{"q\"\\":-0.5}`, true},
		{chunk, `{"new":1}`, false},
		{chunk, `{"a/below":1}`, false},
		{chunk, `{"a":2,"new":1}`, false},
		{chunk, `{"a":[1,2]}`, false},
		{chunk, `{"a":{".value":1,".priority":2}}`, false},
		{chunk, `{"a/.priority":2}`, false},
		{chunk, `{"a":` + long + `}`, false},
		{`{"a":{"0":1,"1":2},"b":3}`, `{"b":4}`, false}, // it has an array
		{`{"a":1,".priority":5}`, `{"a":2}`, false},
		{`{"7":1,"a":2}`, `{"7":3}`, true},
	} {
		s := newStand(t, Options{})
		s.put("at", c.chunk)
		w, err := tree.DecodePatch(strings.NewReader(c.patch), parsePath(t, "at"), tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b := s.newBuilder(s.id, nil, nil)
		for _, a := range w.Assignments {
			if err := b.assign(a); err != nil {
				t.Fatal(err)
			}
		}
		if len(b.homes.list) != 1 {
			t.Fatalf("%s in %s has %d homes, want one", c.patch, c.chunk, len(b.homes.list))
		}
		h := b.homes.list[0]
		got, spliced := b.splice(nil, h)
		if spliced != c.want {
			t.Errorf("splice of %s into %s: %v, want %v", c.patch, c.chunk, spliced, c.want)
		}
		node, err := b.edited(h)
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := appendRow(nil, node, MaxChunkBytes); spliced && string(got) != string(want) {
			t.Errorf("splice of %s into %s gives %s, want %s", c.patch, c.chunk, got, want)
		}
		_ = b.rows.Close()
		b.free()
	}
}

// TestBuildersForget: a builder that is used again knows nothing of the write
// before, however many homes that had.
func TestBuildersForget(t *testing.T) {
	s := newStand(t, Options{ChunkBytes: -1})
	s.put("many", children(3*fewHomes))
	for range 3 {
		var body strings.Builder
		for i := range 2 * fewHomes {
			fmt.Fprintf(&body, `,"k%06d":1`, i)
		}
		s.patch("many", "{"+body.String()[1:]+"}")
		s.patch("few", `{"a":1,"b/c":2,"d":null}`)
		s.put("few/b", `null`)
		s.put("few/a", `{"x":1}`)
		s.expect("few", `{"a":{"x":1}}`)
		s.put("few", `null`)
	}
	s.expect("few", `null`)
}

// TestBuildAllocations holds small writes to the memory that they take.
func TestBuildAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	s := newStand(t, Options{})
	s.put("users", `{"ann":{"name":"Ann","score":5,"tags":{"a":true}},"ben":{"score":6},"text":"`+strings.Repeat("x", DefaultChunkBytes)+`"}`)
	for name, w := range map[string]struct {
		write tree.Write
		most  float64
	}{
		"a leaf":  {putWrite(t, "users/ann/score", `7`), 4},
		"a child": {putWrite(t, "users/ann", `{"name":"Bea","score":8}`), 4},
	} {
		if got := testing.AllocsPerRun(100, func() { s.build(w.write).Close() }); got > w.most {
			t.Errorf("building a write of %s takes %v allocations, want %v at most", name, got, w.most)
		}
	}
}
