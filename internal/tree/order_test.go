package tree_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/tree"
)

// checkAscending wants each of the values to be before all that follow it.
func checkAscending[T any](t *testing.T, name string, compare func(a, b T) int, values []T) {
	t.Helper()
	for i, a := range values {
		for j, b := range values {
			if got, want := sign(compare(a, b)), sign(i-j); got != want {
				t.Errorf("%s(%#v, %#v) = %d, want %d", name, a, b, got, want)
			}
		}
	}
}

func TestOrderOfStrings(t *testing.T) {
	t.Parallel()
	checkAscending(t, "CompareStrings", tree.CompareStrings, []string{
		"", "\x00", " ", "0", "10", "9", "A", "Z", "_", "a", "a\x00", "aa", "b",
		"\x7f", "\u0080", "é", "\u07ff", "\u0800", "日", "\ud7ff",
		"😀", "😀a", "\U0001f601", "\U0010ffff", // surrogates, D83D DE00 and on: below U+E000
		"\ue000", "\uf8ff", "\uffee", "\uffff",
	})
}

func TestOrderOfStringsKeepsThePrefixTrick(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"b", "b\x00", "bz", "b日", "b😀", "b\U0010ffff"} {
		if tree.CompareStrings(s, "b\uf8ff") >= 0 {
			t.Errorf(`%q is not below "b\uf8ff", so a prefix query would miss it`, s)
		}
	}
}

func TestOrderOfKeys(t *testing.T) {
	t.Parallel()
	checkAscending(t, "CompareKeys", tree.CompareKeys, []string{
		"-2147483648", "-10", "-9", "-1", "-01",
		"0", "-0", "00", "000", "1", "01", "001", "2", "9", "10", "2147483647", "02147483647",
		"", "+1", "-", "--1", "-2147483649", "-a", "0x1", "1.5", "12a", "2147483648", "9999999999", "A", "a", "😀", "\uffff",
	})
}

func TestArrayIndex(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int32{"0": 0, "7": 7, "10": 10, "2147483647": 2147483647} {
		if got, ok := tree.ArrayIndex(key); got != want || !ok {
			t.Errorf("ArrayIndex(%q) = %d, %v; want %d, true", key, got, ok, want)
		}
	}
	for _, key := range []string{"", "-0", "-1", "00", "07", "1a", "a", "+1", "1.0", "2147483648", " 1"} {
		if got, ok := tree.ArrayIndex(key); ok {
			t.Errorf("ArrayIndex(%q) = %d, want no index", key, got)
		}
	}
}

// randomText returns a short string of few characters, so that two of them
// often share a prefix.
func randomText(r *rand.Rand) string {
	alphabet := []rune("\x00-019aAz\u00e9\ud7ff\ue000\uf8ff\uffff😀\U00010000\U0010ffff")
	text := make([]rune, r.IntN(5))
	for i := range text {
		text[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(text)
}

// randomIntegerKey returns a key that is, or nearly is, a 32-bit integer.
func randomIntegerKey(r *rand.Rand) string {
	const digits = "0012789"
	key := []byte{"-0123456789"[r.IntN(11)]}
	for range r.IntN(12) {
		key = append(key, digits[r.IntN(len(digits))])
	}
	return string(key)
}

func TestCompareAsTheModel(t *testing.T) {
	t.Parallel()
	r := random(t)
	for range 20_000 {
		a, b := randomText(r), randomText(r)
		if got, want := sign(tree.CompareStrings(a, b)), model.CompareStrings(a, b); got != want {
			t.Fatalf("CompareStrings(%q, %q) = %d, but the model says %d", a, b, got, want)
		}
		if r.IntN(2) == 0 {
			a = randomIntegerKey(r)
		}
		if r.IntN(2) == 0 {
			b = randomIntegerKey(r)
		}
		if got, want := sign(tree.CompareKeys(a, b)), model.CompareKeys(a, b); got != want {
			t.Fatalf("CompareKeys(%q, %q) = %d, but the model says %d", a, b, got, want)
		}
	}
}

// TestChildFindsEveryKey looks for keys among siblings, which does not go
// through CompareKeys for indexes.
func TestChildFindsEveryKey(t *testing.T) {
	t.Parallel()
	r := random(t)
	var keys []string
	for len(keys) < 300 {
		key := randomIntegerKey(r)
		if r.IntN(3) == 0 {
			key = randomText(r)
		}
		if tree.CheckKey(key) == nil && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	present, absent := keys[:200], keys[200:]
	text := []byte{'{'}
	for _, key := range present {
		text = append(tree.AppendString(append(tree.AppendString(text, key), ':'), key), ',')
	}
	text[len(text)-1] = '}'
	n := decode(t, string(text))
	for _, key := range present {
		if got := n.Child(key).Leaf().Text(); got != key {
			t.Errorf("Child(%q) holds %q, want the key itself", key, got)
		}
	}
	for _, key := range absent {
		if child := n.Child(key); !child.IsNull() {
			t.Errorf("Child(%q) = %s, want no data", key, plain(child))
		}
	}
	var order []string
	for key := range n.Children() {
		order = append(order, key)
	}
	slices.SortFunc(present, model.CompareKeys)
	if !slices.Equal(order, present) {
		t.Errorf("the children come in the order %q, want %q", order, present)
	}
}

// checkOrder wants compare to be an order of the three values in which only
// equal ones tie.
func checkOrder[T any](t *testing.T, name string, compare func(a, b T) int, equal func(a, b T) bool, v [3]T) {
	t.Helper()
	for _, a := range v {
		for _, b := range v {
			if sign(compare(a, b)) != -sign(compare(b, a)) {
				t.Errorf("%s is not antisymmetric for %#v and %#v", name, a, b)
			}
			if (compare(a, b) == 0) != equal(a, b) {
				t.Errorf("%s(%#v, %#v) = %d, equal: %v", name, a, b, compare(a, b), equal(a, b))
			}
			for _, c := range v {
				if compare(a, b) <= 0 && compare(b, c) <= 0 && compare(a, c) > 0 {
					t.Errorf("%s is not transitive for %#v, %#v, %#v", name, a, b, c)
				}
			}
		}
	}
}

func FuzzCompare(f *testing.F) {
	for _, v := range [][3]string{
		{"1", "01", "-0"},
		{"2147483647", "2147483648", "-2147483649"},
		{"😀", "\uf8ff", "\ud7ff"},
		{"9007199254740993", "9007199254740992.0", "9007199254740992"},
		{"9223372036854775807", "9223372036854775808", "9.223372036854776e18"},
		{"true", "null", `"a"`},
		{"-", "", "a"},
	} {
		f.Add(v[0], v[1], v[2])
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		texts := [3]string{a, b, c}
		if !utf8.ValidString(a) || !utf8.ValidString(b) || !utf8.ValidString(c) {
			return // only valid strings are ever compared
		}
		same := func(a, b string) bool { return a == b }
		checkOrder(t, "CompareStrings", tree.CompareStrings, same, texts)
		checkOrder(t, "CompareKeys", tree.CompareKeys, same, texts)
		if got, want := sign(tree.CompareKeys(a, b)), model.CompareKeys(a, b); got != want {
			t.Errorf("CompareKeys(%q, %q) = %d, but the model says %d", a, b, got, want)
		}
		if got, want := sign(tree.CompareStrings(a, b)), model.CompareStrings(a, b); got != want {
			t.Errorf("CompareStrings(%q, %q) = %d, but the model says %d", a, b, got, want)
		}
		var leaves [3]tree.Leaf
		for i, text := range texts {
			if n, err := tree.DecodeBytes([]byte(text), tree.DecodeOptions{}); err == nil {
				leaves[i] = n.Leaf()
			}
		}
		checkOrder(t, "CompareLeaves", tree.CompareLeaves, sameLeaf, leaves)
	})
}

// sameLeaf compares texts, except that an integer may equal a double.
func sameLeaf(a, b tree.Leaf) bool {
	if a.IsNumber() && b.IsNumber() {
		order, err := model.CompareNumbers(leafText(a), leafText(b))
		return err == nil && order == 0
	}
	return leafText(a) == leafText(b)
}
