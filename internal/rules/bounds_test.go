package rules_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// TestDocumentIsBounded: size, depth and the number of reported problems.
func TestDocumentIsBounded(t *testing.T) {
	levels := func(n int) string {
		return `{"rules":` + strings.Repeat(`{"a":`, n) + "{}" + strings.Repeat("}", n) + "}"
	}
	tests := []struct{ name, source, want string }{
		{"the largest document", `{"rules":{}}` + strings.Repeat(" ", rules.MaxBytes-12), ""},
		{"a larger one", `{"rules":{}}` + strings.Repeat(" ", rules.MaxBytes-11), "1:1: The rules are larger than 256 KiB."},
		{"the deepest rules", levels(tree.MaxDepth), ""},
		{"deeper ones", levels(tree.MaxDepth + 1), "1:171: The rules are more than 32 levels deep."},
		{"the deepest text", `{"rules":{".read":` + strings.Repeat("[", 100_000), "1:67: The rules are more than 50 levels deep."},
		{"a deep expression", `{"rules":{".read":"` + strings.Repeat("!", 10_000) + `true"}}`, "1:70: The expression is more than 50 levels deep."},
		{"large patterns", `{"rules":{".read":"'a'.matches(/a{1000}/)` + strings.Repeat(" || 'a'.matches(/a{1000}/)", 100) + `"}}`,
			" invalid regular expression: together with those before it, it is too large"},
		{"many large patterns", `{"rules":{` + manyPatterns(300) + `}}`,
			" The regular expressions of the rules are too large together."},
		{"not UTF-8", "{\"rules\":{\"\xff\":{}}}", "1:12: The rules are not valid UTF-8."},
	}
	for _, test := range tests {
		_, err := rules.Compile(test.source)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func manyPatterns(n int) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"k%03d":{".read":"'a'.matches(/a{1000}/)"}`, i))
	}
	return strings.Join(members, ",")
}

func TestProblemsAreBounded(t *testing.T) {
	var members []string
	for i := range 200 {
		members = append(members, fmt.Sprintf(`"k%d": {".read": "x%d == y"}`, i, i))
	}
	_, err := rules.Compile("{\"rules\": {\n" + strings.Join(members, ",\n") + "}}")
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 50 || lines[0] != "2:18: Unknown variable 'x0'." || lines[49] != "26:26: Unknown variable 'y'." {
		t.Errorf("%d problems, from %q to %q, want the first 50", len(lines), lines[0], lines[len(lines)-1])
	}
}

// TestReadsAreBounded: more paths than a decision names are summed up by paths
// above them, never left out.
func TestReadsAreBounded(t *testing.T) {
	var all []string
	for i := range 3 * rules.MaxReads {
		all = append(all, fmt.Sprintf("root.child('a/%d/x/y').exists()", i))
	}
	r := compile(t, `{".read": "`+strings.Join(all, " || ")+` || root.child('b').exists()"}`)
	d, err := r.Read(rules.Request{}, rules.InNode(tree.Node{}), tree.Path{}, rules.Query{})
	if err != nil || len(d.Reads) == 0 || len(d.Reads) > rules.MaxReads {
		t.Fatalf("%d reads, %v, want at most %d", len(d.Reads), err, rules.MaxReads)
	}
	for _, text := range []string{"/a/0/x/y", "/a/100/x/y", fmt.Sprintf("/a/%d/x/y", 3*rules.MaxReads-1), "/b"} {
		covered := false
		for _, p := range d.Reads {
			covered = covered || p.Contains(path(t, text))
		}
		if !covered {
			t.Errorf("%s was read, but is at or below none of %v", text, d.Reads)
		}
	}
}

func TestTraceIsBounded(t *testing.T) {
	rule := strings.Repeat("'é'\n != 'è' && ", 1000) + "false"
	r := compile(t, `{".read": "`+rule+`"}`)
	d, err := r.Read(rules.Request{Trace: true}, rules.InNode(tree.Node{}), path(t, "/a"), rules.Query{})
	if err != nil || d.Allowed || len(d.Trace) > rules.MaxTrace || len(d.Trace) < rules.MaxTrace-4 || !utf8.ValidString(d.Trace) {
		t.Errorf("a trace of %d bytes, %v", len(d.Trace), err)
	}
	if strings.ContainsFunc(d.Trace, func(c rune) bool { return c < ' ' }) {
		t.Errorf("control characters in the trace %q", d.Trace)
	}
	d, err = r.Write(rules.Request{Trace: true}, rules.InNode(tree.Node{}), tree.Put(tree.Path{}, decode(t, `"`+strings.Repeat("a", 5000)+`"`)))
	if want := "Attempt to write (large) to / with auth=null"; err != nil || !strings.HasPrefix(d.Trace, want) {
		t.Errorf("trace %.80q, %v, want it to begin with %q", d.Trace, err, want)
	}
}

// TestOverBudget: a rule that does too much is false, and the decision says so.
func TestOverBudget(t *testing.T) {
	r := compile(t, `{".read": "`+strings.Repeat("data.exists() || ", 6000)+`true", "a": {".read": "1 == 1"}}`)
	for at, want := range map[string]bool{"/": false, "/a": true} {
		d, err := r.Read(rules.Request{}, rules.InNode(tree.Node{}), path(t, at), rules.Query{})
		if err != nil || d.Allowed != want || !d.OverBudget {
			t.Errorf("Read(%s) = %v, over budget %v, %v, want %v, over budget", at, d.Allowed, d.OverBudget, err, want)
		}
	}
}

// TestZeroRuleset: a database without rules is shut.
func TestZeroRuleset(t *testing.T) {
	r := &rules.Ruleset{}
	d, err := r.Read(rules.Request{}, rules.InNode(tree.Node{}), path(t, "/a"), rules.Query{})
	if err != nil || d.Allowed {
		t.Errorf("Read = %v, %v, want denied", d.Allowed, err)
	}
	d, err = r.Write(rules.Request{}, rules.InNode(tree.Node{}), tree.Put(path(t, "/a"), tree.Node{}))
	if err != nil || d.Allowed || string(r.Strict()) != `{"rules":{}}` || r.IndexPatterns() != nil {
		t.Errorf("Write = %v, %v, want denied", d.Allowed, err)
	}
}

// TestPathsDeeperThanAllowed: a push at the deepest location makes one.
func TestPathsDeeperThanAllowed(t *testing.T) {
	p := tree.Path{}
	for range tree.MaxDepth + 3 {
		p = p.Child("a")
	}
	r := compile(t, `{".write": "newData.exists()", "$a": {".validate": "newData.parent().exists()"}}`)
	if d, err := r.Write(rules.Request{}, rules.InNode(tree.Node{}), tree.Put(p, decode(t, "1"))); err != nil || !d.Allowed {
		t.Errorf("Write = %v, %v, want allowed", d.Allowed, err)
	}
}
