package tree_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/tree"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("k/", tree.MaxDepth)
	tests := []struct {
		name, text, want string
		err              error
	}{
		{"the root", "", "/", nil},
		{"the root as a slash", "/", "/", nil},
		{"only slashes", "////", "/", nil},
		{"one key", "a", "/a", nil},
		{"empty segments collapse", "//a///b/", "/a/b", nil},
		{"nothing is percent-decoded", "/a%2Fb", "/a%2Fb", nil},
		{"spaces and quotes are ordinary", `/ a"\b /`, `/ a"\b `, nil},
		{"beyond ASCII", "/über/日本/😀", "/über/日本/😀", nil},
		{"Depth: 32 keys", deep, "/" + strings.TrimSuffix(deep, "/"), nil},
		{"Depth: 33 keys", deep + "k", "", tree.ErrTooDeep},
		{"Depth: empty segments do not count", strings.ReplaceAll(deep, "/", "//"), "/" + strings.TrimSuffix(deep, "/"), nil},
		{"Keys: a dot", "/a/b.json", "", tree.ErrInvalidKey},
		{"Keys: .priority is no key", "/a/.priority", "", tree.ErrInvalidKey},
		{"Keys: two dots", "/a/../b", "", tree.ErrInvalidKey},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := tree.ParsePath(test.text)
			if !errors.Is(err, test.err) {
				t.Fatalf("ParsePath(%q) failed with %v, want %v", test.text, err, test.err)
			}
			if err == nil && got.String() != test.want {
				t.Errorf("ParsePath(%q) = %s, want %s", test.text, got, test.want)
			}
		})
	}
}

func TestCheckKey(t *testing.T) {
	t.Parallel()
	valid := []string{
		"a", " ", "0", "-", "日本", "😀", "\u0080", "\u2028", "\ufffd", "a:b", `\`, `"`, "%2F", "__proto__",
		strings.Repeat("k", tree.MaxKeyBytes), strings.Repeat("é", tree.MaxKeyBytes/2),
	}
	for _, key := range valid {
		if err := tree.CheckKey(key); err != nil {
			t.Errorf("CheckKey(%q) = %v, want no error", key, err)
		}
	}
	invalid := []string{
		"", "a.b", "$a", "a#", "[", "]", "a/b", "\x00", "a\x1f", "\n", "\x7f",
		"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf",
		strings.Repeat("k", tree.MaxKeyBytes+1), strings.Repeat("é", tree.MaxKeyBytes/2) + "k",
	}
	for _, key := range invalid {
		if err := tree.CheckKey(key); !errors.Is(err, tree.ErrInvalidKey) {
			t.Errorf("CheckKey(%q) = %v, want an invalid key", key, err)
		}
	}
}

func TestCheckKeyJudgesEveryByteAsTheModel(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for _, key := range []string{string([]byte{byte(c)}), "ab" + string([]byte{byte(c)}) + "cd"} {
			ours, models := tree.CheckKey(key), model.CheckPath([]string{key})
			if (ours == nil) != (models == nil) {
				t.Errorf("CheckKey(%q) = %v, but the model says %v", key, ours, models)
			}
		}
	}
}

func TestPathWalks(t *testing.T) {
	t.Parallel()
	root, p := tree.Path{}, path(t, "/a/bb/c")
	if got := slices.Collect(p.Keys()); !slices.Equal(got, []string{"a", "bb", "c"}) {
		t.Errorf("the keys of %s are %q, want a, bb, c", p, got)
	}
	for key := range p.Keys() {
		if key != "a" {
			t.Errorf("the first key of %s is %q, want a", p, key)
		}
		break
	}
	if got := slices.Collect(root.Keys()); len(got) != 0 {
		t.Errorf("the keys of the root are %q, want none", got)
	}
	for _, test := range []struct {
		what, got, want string
	}{
		{"its parent", p.Parent().String(), "/a/bb"},
		{"the parent of a key at the root", path(t, "a").Parent().String(), "/"},
		{"the root's parent", root.Parent().String(), "/"},
		{"its last key", p.Last(), "c"},
		{"the root's last key", root.Last(), ""},
		{"a child", p.Child("d").String(), "/a/bb/c/d"},
		{"a child of the root", root.Child("d").String(), "/d"},
		{"joined with a path", p.Join(path(t, "x/y")).String(), "/a/bb/c/x/y"},
		{"joined with the root", p.Join(root).String(), "/a/bb/c"},
		{"the root joined with it", root.Join(p).String(), "/a/bb/c"},
		{"below its grandparent", path(t, "a").Below(p).String(), "/bb/c"},
		{"below itself", p.Below(p).String(), "/"},
		{"below the root", root.Below(p).String(), "/a/bb/c"},
	} {
		if test.got != test.want {
			t.Errorf("for /a/bb/c, %s is %q, want %q", test.what, test.got, test.want)
		}
	}
	if key, rest := p.Cut(); key != "a" || rest != path(t, "bb/c") {
		t.Errorf("%s is cut into %q and %s, want a and /bb/c", p, key, rest)
	}
	if p.Depth() != 3 || root.Depth() != 0 || !root.IsRoot() || p.IsRoot() {
		t.Errorf("depths: %d and %d, want 3 and 0", p.Depth(), root.Depth())
	}
}

func TestPathContains(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		above, below string
		want         bool
	}{
		{"/", "/", true},
		{"/", "/a", true},
		{"/a", "/", false},
		{"/a", "/a", true},
		{"/a", "/a/b", true},
		{"/a", "/ab", false},
		{"/a/b", "/a", false},
		{"/a/b", "/a/c", false},
	} {
		if got := path(t, test.above).Contains(path(t, test.below)); got != test.want {
			t.Errorf("%s contains %s: %v, want %v", test.above, test.below, got, test.want)
		}
	}
}

// referencePath is ParsePath once more, in the words of the contract.
func referencePath(text string) (keys []string, ok bool) {
	for _, key := range strings.Split(text, "/") {
		if key != "" {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if len(key) > 768 || !utf8.ValidString(key) || strings.ContainsAny(key, ".$#[]\x7f") {
			return nil, false
		}
		if strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 }) {
			return nil, false
		}
	}
	return keys, len(keys) <= 32
}

func FuzzPath(f *testing.F) {
	for _, text := range []string{
		"", "/", "a", "/a/b", "//a//b//", "/.settings/rules.json", "/%2Esettings/rules", "a%00", "a\x00b", "\xff/a",
		"..", "a/./b", `a\b`, "\r\n", "$uid", "#", "[0]", "a/.priority", "日本/😀", "\x7f", "\u0080",
		strings.Repeat("k/", 32), strings.Repeat("k/", 33), strings.Repeat("k", 768), strings.Repeat("k", 769),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := tree.ParsePath(text)
		keys, ok := referencePath(text)
		if (err == nil) != ok {
			t.Fatalf("ParsePath(%q) failed with %v, the reference accepts it: %v", text, err, ok)
		}
		if err != nil {
			return
		}
		if got := slices.Collect(p.Keys()); !slices.Equal(got, keys) {
			t.Errorf("ParsePath(%q) has the keys %q, want %q", text, got, keys)
		}
		if again, err := tree.ParsePath(p.String()); err != nil || again != p {
			t.Errorf("ParsePath(%q) prints %q, which parses to %v, %v", text, p, again, err)
		}
		if p.Depth() != len(keys) || (!p.IsRoot() && p.Parent().Child(p.Last()) != p) {
			t.Errorf("ParsePath(%q): depth %d, parent %s, last key %q", text, p.Depth(), p.Parent(), p.Last())
		}
	})
}

// TestComparePaths: what is below a path follows it, before anything else, whatever they have in common.
func TestComparePaths(t *testing.T) {
	sorted := []string{"", "/a", "/a/!", "/a/b", "/a/b/c", "/a/b!", "/a!", "/a-b", "/a-b/c", "/ab", "/b", "/é"}
	for common := range 200 {
		above := strings.Repeat("x", common)
		for i, a := range sorted {
			for j, b := range sorted {
				p, q := path(t, above+a), path(t, above+b)
				if got, want := cmp.Compare(p.Compare(q), 0), cmp.Compare(i, j); got != want {
					t.Errorf("%s compared with %s is %d, want %d", p, q, got, want)
				}
			}
		}
	}
}

func TestPathAncestors(t *testing.T) {
	p := path(t, "/a/b/c")
	if got := slices.Collect(p.Ancestors()); !slices.Equal(got, []tree.Path{path(t, "/a/b"), path(t, "/a"), {}}) {
		t.Errorf("above %s is %v", p, got)
	}
	for range p.Ancestors() {
		break // it can be left
	}
	for levels, want := range []string{"/a/b/c", "/a/b", "/a", "/"} {
		if got := p.Ancestor(levels); got != path(t, want) {
			t.Errorf("%d levels above %s is %s, want %s", levels, p, got, want)
		}
	}
	for other, want := range map[string]bool{"/": true, "/a": true, "/a/b/c": true, "/a/b/c/d": true, "/a/b/d": false, "/a/bc": false} {
		if q := path(t, other); p.Overlaps(q) != want || q.Overlaps(p) != want {
			t.Errorf("%s overlaps %s: %t, want %t", p, q, !want, want)
		}
	}
}
