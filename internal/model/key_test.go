package model_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/model"
)

func TestKeys(t *testing.T) {
	valid := []string{
		"a", " ", "-", "0", "é", "😀", "\u0080", "\u009f", "\u2028", "\uffff", "\ufffd", `"`, `\`, "%", "?", "&", "=", "*", "+", "a b",
		strings.Repeat("k", 768), strings.Repeat("é", 384), strings.Repeat("😀", 192),
	}
	invalid := []string{
		"", ".", "..", "a.b", "$", "a$", "#", "[", "]", "a/b", "/", "\x00", "a\x1fb", "\n", "\x7f", "\xff", "\xed\xa0\x80",
		".priority", ".value", ".sv",
		strings.Repeat("k", 769), strings.Repeat("é", 384) + "k",
	}
	for _, key := range valid {
		if err := model.CheckPath([]string{"a", key}); err != nil {
			t.Errorf("CheckPath(a, %q) = %v, want none", key, err)
		}
	}
	for _, key := range invalid {
		if model.CheckPath([]string{key, "a"}) == nil {
			t.Errorf("CheckPath(%q, a) = no error, want one", key)
		}
		tree := model.New()
		if tree.Put([]string{key}, []byte(`1`), 0) == nil {
			t.Errorf("Put(%q) is accepted, want refused", key)
		}
	}
	for _, body := range []string{
		`{"":1}`, `{"a.b":1}`, `{"$":1}`, `{"#":1}`, `{"[":1}`, `{"]":1}`, `{"a/b":1}`, `{"\u0000":1}`, `{"\u001f":1}`, `{"\u007f":1}`,
		"{\"\x7f\":1}", `{"a":[{"b":{"$":null}}]}`, `{"` + strings.Repeat("k", 769) + `":1}`,
	} {
		if model.ParseOK([]byte(body), 0) {
			t.Errorf("body %q is accepted, want refused", body)
		}
	}
	if !model.ParseOK([]byte(`{"`+strings.Repeat(`\u0041`, 768)+`":1}`), 0) {
		t.Errorf("key of 768 escaped characters is refused, want accepted")
	}
}

// inOrder checks that compare orders sorted strictly ascending, each pair both ways.
func inOrder(t *testing.T, compare func(a, b string) int, sorted []string) {
	t.Helper()
	for i, a := range sorted {
		for j, b := range sorted {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = +1
			}
			if got := compare(a, b); got != want {
				t.Errorf("compare(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestOrderOfKeys(t *testing.T) {
	inOrder(t, model.CompareKeys, []string{
		"-2147483648", "-02147483648", "-5", "-05", "-1",
		"0", "-0", "00", "-00", "000", "1", "3", "03", "003", "5", "9", "20", "100", "2147483647",
		strings.Repeat("0", 700) + "2147483647",
		// No int32, so strings.
		" 1", "+1", "-", "--1", "-2147483649", "-a", "0x1", "1 ", "1a", "2147483648", "9999999999999999999999",
		"A", "a", "aa", "b", "bar", "foo", "~", "é", "٣", "\ud7ff", "\U00010000", "😀", "\U0010ffff", "\ue000", "\uf8ff", "\uffff",
	})
}

func TestOrderOfStrings(t *testing.T) {
	inOrder(t, model.CompareStrings, []string{
		"", "\x00", "\n", " ", "-1", "0", "00", "1", "10", "2", "A", "B", "a", "a\x00", "aa", "b", "é",
		"\ud7ff", "\U00010000", "\U0010ffff", "\ue000", "\uf8ff", "\uffff",
	})
}

// The contract also states the order of strings in UTF-8 bytes. The two must agree.
func TestOrderOfStringsInBytes(t *testing.T) {
	remap := func(s string) []byte {
		b := []byte(s)
		for i, c := range b {
			switch {
			case c >= 0xF0:
				b[i] = c - 2
			case c == 0xEE || c == 0xEF:
				b[i] = c + 5
			}
		}
		return b
	}
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	for range 100_000 {
		a, b := randomText(random), randomText(random)
		if got, want := model.CompareStrings(a, b), bytes.Compare(remap(a), remap(b)); got != want {
			t.Fatalf("seed %d: CompareStrings(%q, %q) = %d, by bytes %d", seed, a, b, got, want)
		}
	}
}

// randomText returns up to three characters from around the places where UTF-8
// and UTF-16 change length.
func randomText(random *rand.Rand) string {
	edges := []rune{0, 'a', 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xEFFF, 0xF000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFF}
	var s []rune
	for range random.IntN(4) {
		r := edges[random.IntN(len(edges))] + rune(random.IntN(3)-1)
		if utf8.ValidRune(r) {
			s = append(s, r)
		}
	}
	return string(s)
}

func TestOrderOfKeysInOutput(t *testing.T) {
	keys := []string{"b", "10", "9", "01", "1", "-1", "\uf8ff", "😀", "a"}
	tree := model.New()
	for _, key := range keys {
		if err := tree.Put([]string{key}, []byte(`1`), 0); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(keys, model.CompareKeys)
	want := `{"` + strings.Join(keys, `":1,"`) + `":1}`
	if got := tree.Plain(nil); got != want {
		t.Errorf("Plain = %s, want %s", got, want)
	}
	if got := tree.Export(nil); got != want {
		t.Errorf("Export = %s, want %s", got, want)
	}
	if got, want := tree.Shallow(nil), strings.ReplaceAll(want, `:1`, `:true`); got != want {
		t.Errorf("Shallow = %s, want %s", got, want)
	}
	if got, want := strings.Join(keys, " "), "-1 1 01 9 10 a b 😀 \uf8ff"; got != want {
		t.Errorf("keys in order = %s, want %s", got, want)
	}
}

func TestKeyTime(t *testing.T) {
	for head, want := range map[string]int64{"--------": 0, "-------z": 63, "------0-": 64, "zzzzzzzz": 1<<48 - 1} {
		if got, ok := model.KeyTime(head + "-0Az_-0Az_zz"); !ok || got != want {
			t.Errorf("KeyTime of a key that begins with %s = %d, %v; want %d", head, got, ok, want)
		}
	}
	for _, key := range []string{
		"", "ann", strings.Repeat("a", 19), strings.Repeat("a", 21),
		strings.Repeat("a", 19) + "+", strings.Repeat("a", 19) + "\n", strings.Repeat("a", 18) + "é",
	} {
		if got, ok := model.KeyTime(key); ok {
			t.Errorf("KeyTime(%q) = %d, true; want no time", key, got)
		}
	}
}
