package tree_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestDecodeShapes: objects that repeat the keys of the one before, or nearly so,
// are put into order each for itself.
func TestDecodeShapes(t *testing.T) {
	var many, sorted strings.Builder
	for i := range 40 { // more than are remembered
		fmt.Fprintf(&many, `,"k%02d":%d`, 39-i, i)
		fmt.Fprintf(&sorted, `,"k%02d":%d`, i, 39-i)
	}
	long, longSorted := "{"+many.String()[1:]+"}", "{"+sorted.String()[1:]+"}"
	for _, c := range []struct{ text, want string }{
		{`{"c":1,"b":2,"a":3}`, `{"a":3,"b":2,"c":1}`},
		{`{"c":1,"a":3}`, `{"a":3,"c":1}`},
		{`{"b":2,"c":1,"a":3}`, `{"a":3,"b":2,"c":1}`},
		{`{"c":1,"b":null,"a":3}`, `{"a":3,"c":1}`},
		{`{"c":{"z":1,"y":2},"b":2,"a":3}`, `{"a":3,"b":2,"c":{"y":2,"z":1}}`},
		{`{"c":1,"b":2,"7":3}`, `{"7":3,"b":2,"c":1}`},
		{`{"c":1,"8":2,"7":3}`, `{"7":3,"8":2,"c":1}`},
		{`{"c":1,"b":2,"a":3,".priority":4}`, `{".priority":4,"a":3,"b":2,"c":1}`},
		{long, longSorted},
	} {
		for before, other := range map[string]string{`{"c":9,"b":8,"a":7}`: `{"a":7,"b":8,"c":9}`, long: longSorted} {
			text := fmt.Sprintf(`{"r0":%s,"r1":%s,"r2":%s,"r3":%s,"r4":%s}`, before, before, c.text, c.text, before)
			want := fmt.Sprintf(`{"r0":%s,"r1":%s,"r2":%s,"r3":%s,"r4":%s}`, other, other, c.want, c.want, other)
			n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(tree.AppendJSON(nil, n, tree.Export)); got != want {
				t.Errorf("%s decodes as\n%s, want\n%s", text, got, want)
			}
		}
	}
	repeated := `{"r0":{"c":1,"b":2,"a":3},"r1":{"c":1,"b":2,"a":3},"r2":{"c":1,"b":2,"c":3}}`
	if _, err := tree.DecodeBytes([]byte(repeated), tree.DecodeOptions{}); err == nil || !strings.Contains(err.Error(), `"c" is repeated`) {
		t.Errorf("a repeated key behind objects of one shape: %v", err)
	}
}

// TestDecodeShapesTraps: a text that begins like an expected key is not that key.
func TestDecodeShapesTraps(t *testing.T) {
	for _, text := range []string{
		`{"r0":{"a\"":1,"b":2},"r1":{"a"":1,"b":2}}`,
		`{"r0":{"a\\":1,"b":2},"r1":{"a\":1,"b":2}}`,
		`{"r0":{"a":1,"b":2},"r1":{"a" 1,"b":2}}`,
		`{"r0":{"a":1,"b":2},"r1":{"a":1,"b`,
		`{"r0":{"a":1,"b":2},"r1":{"a":1,"b"`,
	} {
		if n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{}); !errors.Is(err, tree.ErrSyntax) {
			t.Errorf("%s decodes as %s, %v", text, tree.AppendJSON(nil, n, tree.Export), err)
		}
	}
	// An index has no text, and 65,535 for the length of it.
	long := strings.Repeat("x", 0xFFFF)
	text := fmt.Sprintf(`{"r0":{"s":"%sxxxxxxxx","7":1},"r1":{"s":1,"%s":1}}`, long, long)
	if _, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{}); !errors.Is(err, tree.ErrInvalidKey) {
		t.Errorf("a key of 65,535 bytes where an index is expected: %v", err)
	}
}

// TestDecodeShapesAtRandom: whatever objects come before, each decodes as it does
// by itself, where there is no shape to follow.
func TestDecodeShapesAtRandom(t *testing.T) {
	g := shapeGenerator{random: rand.New(rand.NewPCG(1, 2))}
	refused := 0
	for range 5000 {
		var text, want strings.Builder
		var problem error
		for i := 0; i < 8 && problem == nil; i++ {
			object := g.object()
			fmt.Fprintf(&text, `,"r%d":%s`, i, object)
			n, err := tree.DecodeBytes([]byte(object), tree.DecodeOptions{})
			fmt.Fprintf(&want, `,"r%d":%s`, i, tree.AppendJSON(nil, n, tree.Export))
			problem = err
		}
		body := "{" + text.String()[1:] + "}"
		n, err := tree.DecodeBytes([]byte(body), tree.DecodeOptions{})
		if (err == nil) != (problem == nil) {
			t.Fatalf("%s decodes with %v, its last object alone with %v", body, err, problem)
		}
		if err != nil {
			refused++
			continue
		}
		alone := decode(t, "{"+want.String()[1:]+"}")
		if !tree.Equal(n, alone) {
			t.Fatalf("%s decodes as\n%s, want\n%s", body, tree.AppendJSON(nil, n, tree.Export), want.String())
		}
	}
	if refused < 100 || refused > 4900 {
		t.Errorf("%d of 5000 bodies were refused, want some and not all", refused)
	}
}

// A shapeGenerator makes objects, many of which resemble the one before.
type shapeGenerator struct {
	random *rand.Rand
	last   []string // keys
}

func (g *shapeGenerator) object() string {
	all := []string{`"a"`, `"b"`, `"c"`, `"cc"`, `"d\""`, `"d\\"`, `"d"`, `"\u0065"`, `"f"`, `"é"`, `"7"`, `"07"`, `"10"`, `".priority"`}
	switch g.random.IntN(10) {
	case 0, 1:
		g.last = nil
		for _, place := range g.random.Perm(len(all))[:1+g.random.IntN(len(all))] {
			g.last = append(g.last, all[place])
		}
	case 2, 3:
		if len(g.last) > 0 {
			drop := g.random.IntN(len(g.last))
			g.last = append(g.last[:drop:drop], g.last[drop+1:]...)
		}
	case 4:
		g.last = append(g.last, all[g.random.IntN(len(all))]) // may be there already
	}
	var members []string
	for _, key := range g.last {
		value := []string{`1`, `null`, `"text"`, `{"z":1,"y":2}`}[g.random.IntN(4)]
		if key == `".priority"` {
			value = "5"
		}
		members = append(members, key+":"+value)
	}
	return "{" + strings.Join(members, ",") + "}"
}
