package batch

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/store/layout"
	"github.com/livetree/livetree/internal/tree"
)

// TestSplice: a row that is put together from the old one is the row that
// decoding, editing and encoding give.
func TestSplice(t *testing.T) {
	const chunk = `{"a":1,"b":{"c":"x","d":{"e":true}},"long":"` + "0123456789" + `","q\"\\":2}`
	long := `"` + strings.Repeat("y", layout.MaxChunkBytes) + `"`
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
		s := newStand(t, 2<<10)
		s.put("at", c.chunk)
		w, err := tree.DecodePatch(strings.NewReader(c.patch), parsePath(t, "at"), tree.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b := s.newBuilder(s.live(), nil)
		for _, a := range w.Assignments {
			if err := b.plan.assign(a); err != nil {
				t.Fatal(err)
			}
		}
		if len(b.plan.homes.list) != 1 {
			t.Fatalf("%s in %s has %d homes, want one", c.patch, c.chunk, len(b.plan.homes.list))
		}
		h := b.plan.homes.list[0]
		got, spliced := b.plan.splice(nil, h)
		if spliced != c.want {
			t.Errorf("splice of %s into %s: %v, want %v", c.patch, c.chunk, spliced, c.want)
		}
		node, err := b.plan.edited(h)
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := layout.AppendChunk(nil, node, layout.MaxChunkBytes, nil); spliced && string(got) != string(want) {
			t.Errorf("splice of %s into %s gives %s, want %s", c.patch, c.chunk, got, want)
		}
		_ = b.writer.rows.Close()
		b.free()
	}
}
