package expr_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rules/expr"
	"github.com/livetree/livetree/internal/tree"
)

// match compiles a pattern with its slashes, and matches text; problem says why
// the pattern is refused.
func match(t testing.TB, pattern, text string) (matched bool, problem string) {
	t.Helper()
	e, problems := expr.Compile("data.val().matches("+pattern+")", at(expr.Read))
	if problems != nil {
		return false, problems[0].Message
	}
	matched, err := e.Eval(&expr.Env{Before: nodeData{tree.LeafNode(tree.StringLeaf(text))}})
	if err != nil {
		t.Fatalf("%s on %q: %v", pattern, text, err)
	}
	return matched, ""
}

func TestRegex(t *testing.T) {
	tests := []struct{ pattern, matches, not string } /* texts separated by spaces */ {
		// What the reference of the language lists.
		{`/abc/`, "abc xabcx", "ab ABC"},
		{`/^abc/`, "abcx", "xabc"},
		{`/abc$/`, "xabc", "abcx"},
		{`/^abc$/`, "abc", "abcx xabc"},
		{`/abc/i`, "ABC aBc", "ab"},
		{`/^a.c$/`, "abc a.c aéc", "ac abbc"},
		{`/^ab*c$/`, "ac abbc", "abb"},
		{`/^ab+c$/`, "abc abbc", "ac"},
		{`/^ab?c$/`, "ac abc", "abbc"},
		{`/^a{2}$/`, "aa", "a aaa"},
		{`/^a{2,}$/`, "aa aaaa", "a"},
		{`/^a{2,3}$/`, "aa aaa", "a aaaa"},
		{`/^(foo|bar)$/`, "foo bar", "foobar"},
		{`/^foo|bar$/`, "foox xbar", "xfoo"},
		{`/^(ab(c|d))+$/`, "abcabd", "abab"},
		{`/^[a-c]+$/`, "abc", "abd"},
		{`/^[^a-c]+$/`, "xyz", "xaz"},
		{`/^\d\D\w\W$/`, "1ab- 1__!", "aab- 1ab_"},
		{`/^\S+$/`, "abc", ""},
		{`/^[\d-]+$/`, "1-2", "a"},
		{`/^[\w-.]+@[\w-]+$/`, "a-b.c@d", "a!b@c"},
		{`/^[a-]+$/`, "a-a", "ab"},
		{`/^[-a]+$/`, "a-a", "b"},
		{`/^[a-\d]+$/`, "a-5", "b"},
		{`/^[\]\\^]+$/`, `]\^`, "a"},
		{`/^[.$*+?()|{}]+$/`, ".$*+?()|{}", "a"},
		{`/^\.\$\*\/\[$/`, ".$*/[", "a"},
		{`/^a}b,c]$/`, "a}b,c]", "abc"},
		{`/^[😀-😂é]$/`, "😁 é", "😃 e"},
		{`/^\t?a$/`, "a", "b"},
		// The case of ASCII letters folds within ASCII, others among each other.
		{`/^[a-z]+$/i`, "AbC", "\u212a \u017f 1"},
		{`/^[^a-z]+$/i`, "123", "1A"},
		{`/^é$/i`, "É é", "E"},
		{`/^[à-é]$/i`, "É À", "E"},
		{`/^k$/i`, "K k", "\u212a"},
	}
	for _, test := range tests {
		for _, text := range strings.Fields(test.matches) {
			if ok, problem := match(t, test.pattern, text); !ok {
				t.Errorf("%s does not match %q, want that it does %s", test.pattern, text, problem)
			}
		}
		for _, text := range strings.Fields(test.not) {
			if ok, problem := match(t, test.pattern, text); ok || problem != "" {
				t.Errorf("%s matches %q, want that it does not %s", test.pattern, text, problem)
			}
		}
	}
}

// TestRegexRefused: a pattern that the service refuses or does not document is
// refused when the rules are uploaded, not met at run time.
func TestRegexRefused(t *testing.T) {
	for _, pattern := range []string{
		`/(^foo$|bar)/`, `/^(foo|)$/`, // the live service refuses these
		`/foo|/`, `/|foo/`, `/()/`, `/(?:a)/`, `/(?=a)/`, `/(?i)a/`, `/a^/`, `/a$b/`, `/$/`, `/^$/`, `//`,
		`/*/`, `/+a/`, `/a**/`, `/a+?/`, `/a{1}{2}/`, `/{1}/`, `/a{/`, `/a{1/`, `/a{,2}/`, `/a{2,1}/`, `/a{01}/`, `/a{x}/`,
		`/a{1001}/`, `/(a{1000}){1000}/`, `/(((((((a{9}){9}){9}){9}){9}){9}){9})/`,
		`/[]/`, `/[^]/`, `/[z-a]/`, `/(a/`, `/a)/`, `/\1/`, `/\b/`, `/\p/`, `/[\b]/`, `/\x41/`,
		"/" + strings.Repeat("(", 60) + "a" + strings.Repeat(")", 60) + "/",
		"/" + strings.Repeat("a?", 60_000) + "/",
	} {
		if _, problem := match(t, pattern, ""); !strings.HasPrefix(problem, "invalid regular expression: ") {
			t.Errorf("%.40s: %q, want it refused", pattern, problem)
		}
	}
}

// FuzzRegex: a pattern is refused, or means what package regexp takes it for.
func FuzzRegex(f *testing.F) {
	for _, pattern := range []string{`^a+$`, `(a|b){2,3}c?`, `[a-c-]`, `[^\w-.]`, `\d\D\s\S\W`, `(a*)*b`, `a{1000}`, `[`, `(`, `\`, `$`} {
		f.Add(pattern, "aaab-.1")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if strings.ContainsAny(pattern, "/\n\r") || len(pattern) > 200 || len(text) > 200 || strings.Contains(text, "\v") {
			t.Skip()
		}
		got, problem := match(t, "/"+pattern+"/", strings.ToValidUTF8(text, ""))
		if problem != "" {
			return
		}
		oracle, err := regexp.Compile(pattern)
		if err != nil {
			return // [a-\w] is ours alone
		}
		if want := oracle.MatchString(strings.ToValidUTF8(text, "")); got != want {
			t.Errorf("/%s/ on %q = %v, want %v as package regexp", pattern, text, got, want)
		}
	})
}
