package sdkhash_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/sdkhash"
	"github.com/livetree/livetree/internal/tree"
)

const plenty = 64 << 20

// write returns the hashes that a Writer has for n.
func write(t testing.TB, n tree.Node) (right, js string) {
	t.Helper()
	w := sdkhash.NewWriter(plenty)
	if err := tree.PrintJSON(w, n, tree.Export); err != nil {
		t.Fatal(err)
	}
	right, js, err := w.Sums()
	if err != nil {
		t.Fatal(err)
	}
	return right, js
}

// TestWriterAgreesWithOf writes random trees in random pieces.
func TestWriterAgreesWithOf(t *testing.T) {
	t.Parallel()
	g := newGenerator(t)
	for range 400 {
		n := g.node(4)
		text := tree.AppendJSON(nil, n, tree.Export)
		w := sdkhash.NewWriter(int64(len(text)))
		pieces(t, g.Rand, w, text)
		right, js, err := w.Sums()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if want := sdkhash.Of(n); right != want {
			t.Fatalf("the hash of %s is %s as it is written, want %s", text, right, want)
		}
		if wantRight, wantJS := modelHash(n, false), modelHash(n, true); right != wantRight || js != wantJS {
			t.Fatalf("the hashes of %s are %s and %s, want %s and %s", text, right, js, wantRight, wantJS)
		}
		if ofNode, jsOfNode := sdkhash.Sums(n); ofNode != right || jsOfNode != js {
			t.Fatalf("the hashes of %s in memory are %s and %s, want %s and %s", text, ofNode, jsOfNode, right, js)
		}
	}
}

// pieces writes text to w, cut anywhere.
func pieces(t testing.TB, r *rand.Rand, w *sdkhash.Writer, text []byte) {
	t.Helper()
	longest := 1 + r.IntN(60)
	for len(text) > 0 {
		n := min(r.IntN(longest+1), len(text))
		if _, err := w.Write(text[:n]); err != nil {
			t.Fatalf("write %q: %v", text[:n], err)
		}
		text = text[n:]
	}
}

func TestWriterReadsWhatIsNoData(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`null`, `{}`, `{".priority":1}`, `{"a":{}}`, `{"a":null,"b":{"c":{".priority":"x"}}}`, `{".value":null,".priority":3}`} {
		w := sdkhash.NewWriter(plenty)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Errorf("write %s: %v", text, err)
		} else if right, js, err := w.Sums(); right != "" || js != "" || err != nil {
			t.Errorf("the hashes of %s are %q and %q, %v, want none", text, right, js, err)
		}
	}
}

func TestWriterHasNoMinusZero(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"-0", "-0.0", "-0e3"} {
		w := sdkhash.NewWriter(plenty)
		_, err := w.Write([]byte(text))
		right, _, sumsErr := w.Sums()
		if want := sdkhash.Of(decode(t, "0")); right != want || err != nil || sumsErr != nil {
			t.Errorf("the hash of %s is %q, %v, want that of 0, %q", text, right, errors.Join(err, sumsErr), want)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, tree.MaxDepth+1) + "1" + strings.Repeat("}", tree.MaxDepth+1)
	for _, text := range []string{
		``, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `"abc`, `"abc\`, `"abc\u00`, `1 `, ` 1`, `1,`, `{}{}`, `}`, `[1]`, `[]`, `1"a"`,
		`{"a" :1}`, `{1:1}`, `{"a":}`, `{,}`, `tru`, `nan`, `1e999`, `--1`, `-`, `"\x"`, `"\ud83d\ude00"`, `"\u00zz"`,
		`{"a":1,".priority":2}`, `{".priority":true,"a":1}`, `{".priority":1,".priority":2,"a":1}`, `{".value":1,"a":2}`, `{"a":1,".value":2}`,
		`{".value":{"a":1}}`, `{".priority":{".sv":"timestamp"},"a":1}`, `{".value":1,".priority":2,".priority":3}`, `{".sv":"timestamp"}`, `{"":1}`,
		deep, strings.Repeat("1", 1000),
	} {
		w := sdkhash.NewWriter(plenty)
		_, err := w.Write([]byte(text))
		right, js, sumsErr := w.Sums()
		if sumsErr == nil || right != "" || js != "" {
			t.Errorf("a Writer takes %.100s: hashes %q and %q", text, right, js)
		}
		if _, again := w.Write([]byte("1")); again == nil || err != nil && !errors.Is(again, err) {
			t.Errorf("a Writer goes on after %.100s: %v, then %v", text, err, again)
		}
	}
}

func TestWriterTakesTheDeepest(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(`{"a":`, tree.MaxDepth) + `{".value":1,".priority":2}` + strings.Repeat("}", tree.MaxDepth)
	n := decode(t, text)
	if right, _ := write(t, n); right != modelHash(n, false) {
		t.Errorf("the hash of the deepest leaf is %s, want %s", right, modelHash(n, false))
	}
}

func TestWriterLimit(t *testing.T) {
	t.Parallel()
	const text = `{"a":"hello"}`
	for limit := range int64(len(text)) {
		w := sdkhash.NewWriter(limit)
		var err error
		for i := range len(text) {
			if _, err = w.Write([]byte{text[i]}); err != nil {
				break
			}
		}
		if !errors.Is(err, sdkhash.ErrTooLarge) {
			t.Errorf("a Writer for %d bytes takes %d: %v", limit, len(text), err)
		}
		if _, _, err := w.Sums(); !errors.Is(err, sdkhash.ErrTooLarge) {
			t.Errorf("a Writer for %d bytes has sums of %d: %v", limit, len(text), err)
		}
	}
}

// TestLongTexts are those that are hashed in several steps.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long\n", 3000)
	var wide strings.Builder
	for i := range 2000 {
		number := "1"
		if i > 900 {
			number = "63.99999999999999" // from here on there are two forms
		}
		wide.WriteString(`,"` + strings.Repeat("k", 1+i%40) + string(rune(0x4e00+i)) + `":` + number)
	}
	for _, text := range []string{
		string(tree.AppendString(nil, long)),
		`{".value":` + string(tree.AppendString(nil, long)) + `,".priority":` + string(tree.AppendString(nil, long+"x")) + `}`,
		`{".priority":` + string(tree.AppendString(nil, long)) + wide.String() + `}`,
		`{` + wide.String()[1:] + `}`,
	} {
		n := decode(t, text)
		want, wantJS := modelHash(n, false), modelHash(n, true)
		if right, js := write(t, n); right != want || js != wantJS || sdkhash.Of(n) != want {
			t.Errorf("the hashes of %.60s… are %s and %s, want %s and %s", text, right, js, want, wantJS)
		}
	}
}

func FuzzWriter(f *testing.F) {
	for _, v := range vectors {
		f.Add([]byte(v.text), 3)
	}
	f.Add([]byte(`{".priority":1,"a":{".value":"\u0001\n","x":2}}`), 1)
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		piece = max(piece, 1)
		w := sdkhash.NewWriter(plenty)
		var err error
		for rest := text; len(rest) > 0 && err == nil; rest = rest[min(piece, len(rest)):] {
			_, err = w.Write(rest[:min(piece, len(rest))])
		}
		right, js, sumsErr := w.Sums()
		if err != nil && sumsErr == nil {
			t.Fatalf("an error of Write is forgotten: %v", err)
		}
		n, decodeErr := tree.DecodeBytes(text, tree.DecodeOptions{})
		if decodeErr != nil || n.HasPlaceholders() || string(tree.AppendJSON(nil, n, tree.Export)) != string(text) {
			return // not as a store prints it
		}
		if sumsErr != nil {
			t.Fatalf("%q is refused: %v", text, sumsErr)
		}
		if right != modelHash(n, false) || js != modelHash(n, true) || right != sdkhash.Of(n) {
			t.Fatalf("the hashes of %q are %s and %s, want %s and %s", text, right, js, modelHash(n, false), modelHash(n, true))
		}
	})
}

// TestWriterCharges: children with priorities are kept until their object ends, and count.
func TestWriterCharges(t *testing.T) {
	t.Parallel()
	const text = `{"a":{"x":{".value":1,".priority":1},"y":{".value":1,".priority":2}},"b":{"z":{".value":1,".priority":1}}}`
	var most int64
	w := sdkhash.NewWriter(plenty)
	w.Charge = func(kept int64) bool { most = max(most, kept); return true }
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if most < 2*200 || most >= 3*260 {
		t.Errorf("two children that are kept at a time count %d bytes", most)
	}
	w = sdkhash.NewWriter(plenty)
	w.Charge = func(kept int64) bool { return kept < 300 }
	if _, err := w.Write([]byte(text)); !errors.Is(err, sdkhash.ErrNoRoom) {
		t.Errorf("without memory: %v", err)
	}
}
