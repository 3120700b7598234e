package tree_test

import (
	"fmt"
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
