package rules_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rules"
)

func TestCoverage(t *testing.T) {
	_, coverage := runSuite(t, `{
  ".read": false, "a": {".read": "auth != null", ".write": true},
  "$x": {"b": {".write": "data.val().length > 1", ".indexOn": "n"}, ".validate": "newData.val() !== 'é\u0022'"},
  "c": {".validate": "newData.hasChildren()"}
}`, `read /a
----
denied

read /a as={"uid": "ann"}
----
allowed

put /a
1
----
allowed

put /q/b
1
----
denied
`)
	const want = `  2:12  / .read        false 2×
  2:34  /a .read       true 1×, false 1×
  2:60  /a .write      true 1×
! 3:26  /$x/b .write   never true, false 1× (1 failed)
! 3:82  /$x .validate  never asked
! 4:22  /c .validate   never asked
`
	if got := coverage.Text(); got != want {
		t.Errorf("the coverage is\n%swant\n%s", got, want)
	}
	if got, want := coverage.Summary(), "4 of 6 rules asked, 5 of 10 outcomes seen"; got != want {
		t.Errorf("the summary is %q, want %q", got, want)
	}
}

// TestCoveragePage: a page shows all of the document, with marks at its rules,
// and nothing in it is markup.
func TestCoveragePage(t *testing.T) {
	const hostile = `<script>alert("&")</script>`
	document := "{\".read\": \"auth != null &&\n 'a' < 'b'\", /* " + hostile + " */ \"x\": {\".write\": \"newData.val() === '\\u003cb>'\"}}"
	suite, err := rules.ParseSuite("# " + hostile + "\nread / as={\"uid\": \"" + `<b>` + "\"}\n----\nallowed")
	if err != nil {
		t.Fatal(err)
	}
	results, coverage := suite.Run(compile(t, document))
	page := coverage.Page(hostile, results)
	for _, want := range []string{
		"<mark class=\"part\" title=\"true 1×, never false\">&#34;auth != null &amp;&amp;\n</mark>",
		"<mark class=\"part\" title=\"true 1×, never false\"> &#39;a&#39; &lt; &#39;b&#39;&#34;</mark>, /*",
		"<mark class=\"none\" title=\"never asked\">&#34;newData.val() === &#39;\\u003cb&gt;&#39;&#34;</mark>}}",
		"cases: 1 passed, 0 failed; 1 of 2 rules asked, 1 of 4 outcomes seen.",
		"<title>&lt;script&gt;",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	for _, bad := range []string{"<script", "<b>"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

func TestCoverageOfNoRules(t *testing.T) {
	if got, want := rules.NewCoverage(&rules.Ruleset{}).Summary(), "0 of 0 rules asked, 0 of 0 outcomes seen"; got != want {
		t.Errorf("the summary is %q, want %q", got, want)
	}
}
