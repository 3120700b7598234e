package tree_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/livetree/livetree/internal/tree"
)

// chunkReader hands out its text in pieces of random sizes, some of them empty.
type chunkReader struct {
	text string
	rand *rand.Rand
}

func (c *chunkReader) Read(p []byte) (int, error) {
	if c.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.rand.IntN(50))], c.text)
	c.text = c.text[n:]
	return n, nil
}

// outcome is a decoded node, or why there is none, as text.
func outcome(n tree.Node, err error) string {
	if err != nil {
		return "error " + err.Error()
	}
	return export(n)
}

func TestDecodeDoesNotDependOnHowTheReaderCutsTheText(t *testing.T) {
	t.Parallel()
	r := random(t)
	texts := []string{
		"", " \n", "1", "-12.5e-3", "12345678901234567890", "true", "fals", "nulll", `"😀\ud83d\ude00\n"`, `"\ud83d`, "\"\xff\"",
		`{"a":{"b":[1,2,{".sv":"timestamp"}]},".priority":"x"}`, "[1,\n2,\n3,\n?]", record,
		string(records(200)), `["` + strings.Repeat("é", 40_000) + `",1]`, "[" + strings.Repeat(" ", 70_000) + "?]",
	}
	g := generator{r}
	for range 200 {
		text := g.body()
		texts = append(texts, text, g.damage(text))
	}
	for _, text := range texts {
		want := outcome(tree.DecodeBytes([]byte(text), tree.DecodeOptions{}))
		for name, reader := range map[string]io.Reader{
			"all at once":          strings.NewReader(text),
			"with the end at once": iotest.DataErrReader(strings.NewReader(text)),
			"byte by byte":         iotest.OneByteReader(strings.NewReader(text)),
			"in random pieces":     &chunkReader{text, r},
		} {
			if got := outcome(tree.Decode(reader, tree.DecodeOptions{})); got != want {
				t.Errorf("%.100q, read %s, gives\n%.300s, want\n%.300s", text, name, got, want)
			}
		}
	}
}

var errBroken = errors.New("connection reset")

// dataAndError returns the text and the error in one call, and then nothing.
type dataAndError struct{ text string }

func (d *dataAndError) Read(p []byte) (int, error) {
	if d.text == "" {
		return 0, io.EOF
	}
	n := copy(p, d.text)
	d.text = ""
	return n, errBroken
}

func TestDecodeReturnsTheErrorOfTheReader(t *testing.T) {
	t.Parallel()
	const text = `{"a":["x\u0041\ud83d\ude00y",-12.5e3,true,{".value":1,".priority":{".sv":{"increment":1}}}],"b":null}  `
	for cut := range len(text) {
		for name, reader := range map[string]io.Reader{
			"alone":              io.MultiReader(strings.NewReader(text[:cut]), iotest.ErrReader(errBroken)),
			"after single bytes": io.MultiReader(iotest.OneByteReader(strings.NewReader(text[:cut])), iotest.ErrReader(errBroken)),
			"with the data":      &dataAndError{text[:cut]},
		} {
			if cut == 0 && name == "with the data" {
				continue
			}
			if _, err := tree.Decode(reader, tree.DecodeOptions{}); !errors.Is(err, errBroken) {
				t.Errorf("when the reader fails behind %q, %s, Decode fails with %v, want %v", text[:cut], name, err, errBroken)
			}
		}
	}
	stuck := readerFunc(func([]byte) (int, error) { return 0, nil })
	if _, err := tree.Decode(stuck, tree.DecodeOptions{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("from a reader that returns nothing, Decode fails with %v, want no progress", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// bodies returns texts whose decoded forms differ much in size from them.
func bodies() map[string]string {
	var indexes, keys strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&indexes, `,"%d":0`, i)
		fmt.Fprintf(&keys, `,"k%d":{}`, i)
	}
	return map[string]string{
		"records":       string(records(500)),
		"a leaf":        "1",
		"a long string": `"` + strings.Repeat("x", 1<<20) + `"`,
		"small numbers": "[0" + strings.Repeat(",0", 100_000) + "]",
		"small objects": `[{"a":0}` + strings.Repeat(`,{"a":0}`, 50_000) + "]",
		"indexes":       "{" + indexes.String()[1:] + "}",
		"dropped keys":  "{" + keys.String()[1:] + "}",
		"priorities":    `[0` + strings.Repeat(`,{".value":0,".priority":0}`, 20_000) + "]",
	}
}

func TestChargeCoversTheSlab(t *testing.T) {
	t.Parallel()
	for name, text := range bodies() {
		var charged int64
		n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{Charge: func(bytes int64) error {
			if bytes <= 0 {
				t.Errorf("decoding %s charged %d bytes, want more than none", name, bytes)
			}
			charged += bytes
			return nil
		}})
		if err != nil {
			t.Errorf("decoding %s: %v", name, err)
		}
		if taken := tree.SlabBytes(n); charged < taken {
			t.Errorf("decoding %s charged %d bytes, but the slab has %d", name, charged, taken)
		}
		if most := int64(50*len(text) + 2000); charged > most { // a stack that was kept counts, with 1,536 bytes
			t.Errorf("decoding %s of %d bytes charged %d bytes, want at most %d", name, len(text), charged, most)
		}
	}
}

// TestChargeCoversAPatch counts what a PATCH of many small assignments leaves on
// the heap: paths and names are outside the slab. It is not parallel, so that
// nothing else allocates meanwhile.
func TestChargeCoversAPatch(t *testing.T) {
	var body strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&body, `,"a/%d":0`, i)
	}
	text := "{" + body.String()[1:] + "}"
	var charged int64
	charge := func(bytes int64) error { charged += bytes; return nil }
	before := heapBytes()
	w, err := tree.DecodePatch(strings.NewReader(text), path(t, "/x/y"), tree.DecodeOptions{Charge: charge})
	if err != nil {
		t.Fatal(err)
	}
	if taken := heapBytes() - before; charged < taken {
		t.Errorf("a PATCH of %d assignments charged %d bytes, but takes %d", len(w.Assignments), charged, taken)
	}
	runtime.KeepAlive(w)
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestChargeEndsDecoding(t *testing.T) {
	t.Parallel()
	errFull := errors.New("too many bodies in flight")
	for name, text := range bodies() {
		if name == "a leaf" {
			continue
		}
		var charged int64
		refuse := func(bytes int64) error {
			if charged += bytes; charged > 1000 {
				return errFull
			}
			return nil
		}
		read := 0
		reader := readerFunc(func(p []byte) (int, error) {
			n := copy(p, text[read:])
			read += n
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		})
		if _, err := tree.Decode(reader, tree.DecodeOptions{Charge: refuse}); !errors.Is(err, errFull) {
			t.Errorf("when the charge is refused, decoding %s fails with %v, want that error", name, err)
		}
		if name != "a long string" && read > 64<<10 {
			t.Errorf("when the charge is refused, decoding %s goes on for %d bytes", name, read)
		}
	}
}

func TestDecodePatchChargesAndFailsAsDecode(t *testing.T) {
	t.Parallel()
	errFull := errors.New("too many bodies in flight")
	refuse := tree.DecodeOptions{Charge: func(int64) error { return errFull }}
	if _, err := tree.DecodePatch(strings.NewReader(`{"a":1}`), tree.Path{}, refuse); !errors.Is(err, errFull) {
		t.Errorf("when the charge is refused, DecodePatch fails with %v, want that error", err)
	}
	broken := io.MultiReader(strings.NewReader(`{"a":1`), iotest.ErrReader(errBroken))
	if _, err := tree.DecodePatch(broken, tree.Path{}, tree.DecodeOptions{}); !errors.Is(err, errBroken) {
		t.Errorf("when the reader fails, DecodePatch fails with %v, want that error", err)
	}
	if _, err := tree.DecodePriority(iotest.ErrReader(errBroken), tree.DecodeOptions{}); !errors.Is(err, errBroken) {
		t.Errorf("when the reader fails, DecodePriority fails with %v, want that error", err)
	}
}
