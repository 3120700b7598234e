package layout

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// componentBytes is the format: these bytes are on people's disks. Key by key
// it is also in the order of tree.CompareKeys.
var componentBytes = []struct{ key, hex string }{
	{"-2147483648", "0c 80000000"},
	{"-16777217", "0c feffffff"},
	{"-16777216", "0d 000000"},
	{"-65537", "0d feffff"},
	{"-65536", "0e 0000"},
	{"-257", "0e feff"},
	{"-256", "0f 00"},
	{"-7", "0f f9"},
	{"-07", "0f f9 ff 0001 00"},
	{"-1", "0f ff"},
	{"-01", "0f ff ff 0001 00"},
	{"0", "11 00"},
	{"-0", "11 00 ff 0001 00"},
	{"00", "11 00 ff 0001 01"},
	{"-00", "11 00 ff 0002 00"},
	{"000", "11 00 ff 0002 01"},
	{"7", "11 07"},
	{"07", "11 07 ff 0001 01"},
	{"007", "11 07 ff 0002 01"},
	{strings.Repeat("0", 767) + "7", "11 07 ff 02ff 01"},
	{"8", "11 08"},
	{"255", "11 ff"},
	{"0255", "11 ff ff 0001 01"},
	{"256", "12 0100"},
	{"65535", "12 ffff"},
	{"65536", "13 010000"},
	{"16777215", "13 ffffff"},
	{"16777216", "14 01000000"},
	{"2147483647", "14 7fffffff"},
	{" ", "20 00"},
	{"-", "2d 00"},
	{"--1", "2d2d31 00"},
	{"-2147483649", "2d32313437343833363439 00"},
	{"2147483648", "32313437343833363438 00"},
	{"7a", "3761 00"},
	{"a", "61 00"},
	{"ab", "6162 00"},
	{"é", "c3a9 00"},
	{"\ud7ff", "ed9fbf 00"},
	{"\U00010000", "ee908080 00"},
	{"😀", "ee9f9880 00"},
	{"\U0010ffff", "f28fbfbf 00"},
	{"\ue000", "f38080 00"},
	{"\uffff", "f4bfbf 00"},
}

// unhex reads hexadecimal digits; blanks are for the reader.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// short makes long keys readable in messages.
func short(key string) string {
	if len(key) > 40 {
		return fmt.Sprintf("%q...(%d bytes)", key[:20], len(key))
	}
	return strconv.Quote(key)
}

func TestComponentBytes(t *testing.T) {
	for i, c := range componentBytes {
		want := unhex(t, c.hex)
		if got := AppendComponent(nil, c.key); !bytes.Equal(got, want) {
			t.Errorf("component of %s = % x, want % x", short(c.key), got, want)
		}
		key, rest, err := CutComponent(append(want, "\x11\x05"...))
		if key != c.key || string(rest) != "\x11\x05" || err != nil {
			t.Errorf("cutComponent(% x) = %s, % x, %v; want %s", want, short(key), rest, err, short(c.key))
		}
		if i > 0 && tree.CompareKeys(componentBytes[i-1].key, c.key) >= 0 {
			t.Errorf("the table is out of order at %s", short(c.key))
		}
	}
}

func TestKeyLayout(t *testing.T) {
	p := mustPath(t, "/a/7")
	for _, test := range []struct {
		name string
		got  []byte
		want string
	}{
		{"dataPrefix", DataPrefix(0x01020304), "02 01020304"},
		{"dataKey of the root", DataKey(nil, 1, tree.Path{}), "02 00000001"},
		{"dataKey", DataKey([]byte{0xAA}, 1, p), "aa 02 00000001 6100 1107"},
		{"priorityKey", priorityKey(nil, 1, p), "02 00000001 6100 1107 01"},
		{"logKey", LogKey(nil, 2, 0x0102030405060708), "05 00000002 0102030405060708"},
		{"subtreeEnd", SubtreeEnd([]byte{0xAA}, []byte{1, 2}), "aa 0102 ff"},
		{"key spaces", []byte{SpaceMeta, SpaceData, SpaceIndex, SpaceSettings, SpaceLog}, "01 02 03 04 05"},
	} {
		if want := unhex(t, test.want); !bytes.Equal(test.got, want) {
			t.Errorf("%s = % x, want % x", test.name, test.got, want)
		}
	}
}

// TestSubtreeEndDoesNotWriteIntoItsKey guards against the plain
// append(key, FF), which overwrites whatever shares the key's array.
func TestSubtreeEndDoesNotWriteIntoItsKey(t *testing.T) {
	shared := []byte{1, 2, 3}
	SubtreeEnd(nil, shared[:2])
	if shared[2] != 3 {
		t.Errorf("subtreeEnd changed the byte behind its key to %#x", shared[2])
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a priority mark":                "01",
		"an empty text":                  "00",
		"tag 0b":                         "0b 0000000000",
		"tag 10":                         "10 00",
		"tag 15":                         "15 0000000000",
		"a control character as tag":     "1f 00",
		"a lone FF":                      "ff",
		"FF as text":                     "ff 00",
		"a text without end":             "6162",
		"an integer cut short":           "12 01",
		"a positive not shortest":        "12 00ff",
		"zero not shortest":              "12 0000",
		"a negative not shortest":        "0e ff00",
		"above 2^31-1":                   "14 80000000",
		"below -2^31":                    "0c 7fffffff",
		"an end of a subtree":            "11 07 ff",
		"a spelling cut short":           "11 07 ff 0001",
		"a spelling without extra":       "11 07 ff 0000 01",
		"a spelling of unknown sign":     "11 07 ff 0001 02",
		"a positive with a minus":        "11 07 ff 0001 00",
		"a negative without a minus":     "0f f9 ff 0001 01",
		"a spelling of 769 bytes":        "11 07 ff 0300 01",
		"a spelling of 65,536 bytes":     "11 07 ff ffff 01",
		"an integer as text":             "37 00",
		"an integer as text, misspelled": "2d30 00",
		"a slash":                        "612f62 00",
		"a dot":                          "2e 00",
		"DEL":                            "7f 00",
		"a control character":            "6101 00",
		"a lone continuation byte":       "80 00",
		"a surrogate":                    "eda080 00",
		"beyond U+10FFFF":                "f2908080 00",
		"a byte that is no lead":         "61f580 00",
		"fe, which rank maps to nothing": "61fe 00",
		"a text of 769 bytes":            strings.Repeat("61", 769) + "00",
	} {
		b := unhex(t, text)
		if key, _, err := CutComponent(b); !errors.Is(err, ErrMalformedKey) {
			t.Errorf("%s: cutComponent = %s, %v; want a malformed key", name, short(key), err)
		}
		if p, err := DecodePath(append([]byte("a\x00"), b...)); !errors.Is(err, ErrMalformedKey) {
			t.Errorf("%s: decodePath = %s, %v; want a malformed key", name, short(p.String()), err)
		}
	}
	if _, err := DecodePath(bytes.Repeat([]byte("a\x00"), tree.MaxDepth+1)); !errors.Is(err, tree.ErrTooDeep) {
		t.Errorf("decodePath of %d components: %v, want too deep", tree.MaxDepth+1, err)
	}
}

func TestComponentLenOfNothing(t *testing.T) {
	for _, text := range []string{
		"", "00", "01", "10", "15", "1f", "12 01", "11 07 ff", "11 07 ff 0001", "61", "ff 00", "f5 00",
	} {
		if got := ComponentLen(unhex(t, text)); got != -1 {
			t.Errorf("componentLen(%s) = %d, want -1", text, got)
		}
	}
}

func mustPath(t testing.TB, text string) tree.Path {
	t.Helper()
	p, err := tree.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// comparePaths is the order that encoded paths must have, said plainly.
func comparePaths(a, b tree.Path) int {
	return slices.CompareFunc(slices.Collect(a.Keys()), slices.Collect(b.Keys()), tree.CompareKeys)
}

// A keySource draws keys that are likely to meet in awkward ways.
type keySource struct{ *rand.Rand }

// alphabet holds characters at the borders of UTF-8 and UTF-16, and digits and
// signs, so that texts that almost are integers come up.
var alphabet = []rune("0179- !aAz~\u0080é\u07ff\u0800\ud7ff\ue000\uffff\U00010000😀\U0010ffff")

func (r keySource) key() string {
	switch r.IntN(8) {
	case 0, 1, 2:
		return componentBytes[r.IntN(len(componentBytes))].key
	case 3, 4:
		v := int32(r.Uint32()) >> r.IntN(32)
		digits := strings.TrimPrefix(strconv.Itoa(int(v)), "-")
		sign := []string{"", "-"}[r.IntN(2)]
		return sign + strings.Repeat("0", r.IntN(4)) + digits
	case 5:
		if r.IntN(20) > 0 {
			return r.key()
		}
		last := alphabet[r.IntN(len(alphabet))]
		return strings.Repeat("x", tree.MaxKeyBytes-len(string(last))) + string(last)
	default:
		key := ""
		for range 1 + r.IntN(4) {
			key += string(alphabet[r.IntN(len(alphabet))])
		}
		return key
	}
}

func (r keySource) path(from tree.Path) tree.Path {
	for range r.IntN(4) {
		from = from.Child(r.key())
	}
	return from
}

// pair draws two paths, most of which share some keys.
func (r keySource) pair() (a, b tree.Path) {
	common := r.path(tree.Path{})
	return r.path(common), r.path(common)
}

// TestKeyCodecProperties holds the promises of the format against random
// pairs of paths.
func TestKeyCodecProperties(t *testing.T) {
	pairs := 200_000
	if testing.Short() {
		pairs /= 10
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	source := keySource{rand.New(rand.NewPCG(seed, 0))}
	for range pairs {
		a, b := source.pair()
		checkRoundTrip(t, a)
		checkOrder(t, a, b)
		checkSubtree(t, a, b)
		checkPrefix(t, source.key(), source.key())
		if t.Failed() {
			return // the first one says enough
		}
	}
}

func checkRoundTrip(t *testing.T, p tree.Path) {
	t.Helper()
	encoded := appendPath(nil, p)
	if got, err := DecodePath(encoded); got != p || err != nil {
		t.Errorf("decodePath(% x) = %v, %v; want %v", encoded, got, err, p)
	}
	for key := range p.Keys() {
		if got, want := ComponentLen(encoded), len(AppendComponent(nil, key)); got != want {
			t.Errorf("componentLen(% x) = %d, want %d", encoded, got, want)
			return
		}
		index, ok := ChildIndex(encoded, 0)
		if want, is := tree.ArrayIndex(key); ok != is || index != want && is {
			t.Errorf("ChildIndex(% x) of %s = %d, %v; want %d, %v", encoded, short(key), index, ok, want, is)
		}
		encoded = encoded[ComponentLen(encoded):]
	}
}

func checkOrder(t *testing.T, a, b tree.Path) {
	t.Helper()
	x, y := appendPath(nil, a), appendPath(nil, b)
	if got, want := bytes.Compare(x, y), comparePaths(a, b); got != want {
		t.Errorf("%v and %v compare as %d, want %d\n% x\n% x", a, b, got, want, x, y)
	}
}

// checkSubtree wants the node and the priority of q in the range of p exactly
// if q is at or below p, and those of other databases never.
func checkSubtree(t *testing.T, p, q tree.Path) {
	t.Helper()
	const id = 9
	start := DataKey(nil, id, p)
	end := SubtreeEnd(nil, start)
	in := func(key []byte) bool { return bytes.Compare(start, key) <= 0 && bytes.Compare(key, end) < 0 }

	node, priority, child := DataKey(nil, id, q), priorityKey(nil, id, q), DataKey(nil, id, q.Child("-2147483648"))
	if want := p.Contains(q); in(node) != want || in(priority) != want {
		t.Errorf("subtree of %v: %v inside is %v, its priority %v; want %v", p, q, in(node), in(priority), want)
	}
	if bytes.Compare(node, priority) >= 0 || bytes.Compare(priority, child) >= 0 {
		t.Errorf("%v: want node % x before priority % x before children % x", q, node, priority, child)
	}
	for _, stranger := range []ID{id - 1, id + 1, id << 8} {
		if in(DataKey(nil, stranger, q)) || in(priorityKey(nil, stranger, q)) {
			t.Errorf("subtree of %v holds %v of another database", p, q)
		}
	}
}

// checkPrefix wants no component to be a prefix of another, but for spellings
// of one integer, marked by FF.
func checkPrefix(t *testing.T, a, b string) {
	t.Helper()
	x, y := AppendComponent(nil, a), AppendComponent(nil, b)
	rest, ok := bytes.CutPrefix(y, x)
	if !ok || a == b {
		return
	}
	v, aInt := tree.IntegerKey(a)
	w, bInt := tree.IntegerKey(b)
	if !aInt || !bInt || v != w || len(rest) != spellingBytes || rest[0] != spellingMark {
		t.Errorf("the component of %s, % x, is a prefix of that of %s, % x", short(a), x, short(b), y)
	}
}

// TestAwkwardNeighbours holds the same promises against all pairs of the keys
// that are known to be delicate, at the root and below each other.
func TestAwkwardNeighbours(t *testing.T) {
	for _, a := range componentBytes {
		for _, b := range componentBytes {
			p, q := tree.Path{}.Child(a.key), tree.Path{}.Child(b.key)
			checkPrefix(t, a.key, b.key)
			for _, pair := range [][2]tree.Path{
				{p, q}, {p, q.Child("x")}, {p, q.Child("7")}, {p, p.Child(b.key)}, {p.Child("7"), q.Child("007")},
			} {
				checkOrder(t, pair[0], pair[1])
				checkSubtree(t, pair[0], pair[1])
				checkRoundTrip(t, pair[1])
			}
		}
	}
}

// FuzzKeyCodec takes its input as stored bytes, which decode to a path that
// encodes to the same bytes or not at all, and as a key, which survives.
func FuzzKeyCodec(f *testing.F) {
	for _, c := range componentBytes {
		f.Add(unhex(f, c.hex))
		f.Add(append(unhex(f, c.hex), unhex(f, "11 07 ff 0002 01")...))
		f.Add([]byte(c.key))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := DecodePath(b); err == nil {
			if again := appendPath(nil, p); !bytes.Equal(again, b) {
				t.Errorf("% x decodes to %v, which encodes to % x", b, p, again)
			}
		} else if !errors.Is(err, ErrMalformedKey) {
			t.Errorf("decodePath(% x): %v, want a malformed key", b, err)
		}
		if n := ComponentLen(b); n == 0 || n > len(b) {
			t.Errorf("componentLen(% x) = %d, want -1 or at most %d", b, n, len(b))
		}
		if key := string(b); tree.CheckKey(key) == nil {
			checkRoundTrip(t, tree.Path{}.Child(key))
		}
	})
}

const benchPath = "/users/-OabcdefghijklmnopqR/messages/12345/text"

func BenchmarkAppendPath(b *testing.B) {
	p := mustPath(b, benchPath)
	dst := make([]byte, 0, 128)
	b.ReportAllocs()
	for b.Loop() {
		dst = appendPath(dst[:0], p)
	}
}

func BenchmarkComponentLen(b *testing.B) {
	encoded := appendPath(nil, mustPath(b, benchPath))
	for b.Loop() {
		for rest := encoded; len(rest) > 0; {
			rest = rest[ComponentLen(rest):]
		}
	}
}

// priorityKey appends the key of the priority of the split node at p to dst.
// It sorts behind the node and before its children.
func priorityKey(dst []byte, id ID, p tree.Path) []byte {
	return append(DataKey(dst, id, p), PriorityMark)
}
