package tree_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// largeText returns an object of so many bytes with so long strings.
func largeText(bytes, fill int) string {
	var text strings.Builder
	text.WriteByte('{')
	for i := 0; text.Len() < bytes; i++ {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `"k%07d":"%s"`, i, strings.Repeat("x", fill))
	}
	text.WriteByte('}')
	return text.String()
}

// TestLargeTextsLeaveLittleGarbage is not parallel: it counts what the process allocates.
func TestLargeTextsLeaveLittleGarbage(t *testing.T) {
	if testing.Short() {
		t.Skip("it counts bytes, which the race detector changes, and takes long with it")
	}
	for fill, times := range map[int]uint64{1000: 2, 10: 5} {
		text := largeText(48<<20, fill)
		bytes := []byte(text)
		for name, decode := range map[string]func() (tree.Node, error){
			"in memory": func() (tree.Node, error) { return tree.DecodeBytes(bytes, tree.DecodeOptions{}) },
			"of known length": func() (tree.Node, error) {
				return tree.Decode(strings.NewReader(text), tree.DecodeOptions{Bytes: int64(len(text))})
			},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, err := decode()
			runtime.ReadMemStats(&after)
			if err != nil || n.IsNull() {
				t.Fatal(err)
			}
			took := after.TotalAlloc - before.TotalAlloc
			if most := uint64(len(text)) * times; took > most {
				t.Errorf("%d bytes with strings of %d, %s: decoding took %d bytes, want at most %d", len(text), fill, name, took, most)
			}
			runtime.KeepAlive(n)
		}
	}
}

// TestWrongLengths decodes texts that are shorter or longer than they were said to be.
func TestWrongLengths(t *testing.T) {
	t.Parallel()
	text := largeText(36<<20, 500)
	want, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sum := tree.AppendJSON(nil, want, tree.Export)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, said := range []int64{-1, 0, 1, 17 << 20, int64(len(text)) - 1, rng.Int64N(80 << 20), 100 << 20} {
		charged := int64(0)
		n, err := tree.Decode(strings.NewReader(text), tree.DecodeOptions{Bytes: said, Charge: func(bytes int64) error {
			charged += bytes
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.AppendJSON(nil, n, tree.Export); string(got) != string(sum) {
			t.Errorf("a text that was said to have %d bytes is another one", said)
		}
		if most := max(said, int64(len(text)))*3/2 + 64<<20; charged > most {
			t.Errorf("a text of %d bytes that was said to have %d is charged %d, want at most %d", len(text), said, charged, most)
		}
	}
}
