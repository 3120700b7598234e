package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// runSuite runs cases that can be read, and returns a line for each.
func runSuite(t *testing.T, document, cases string) ([]string, *rules.Coverage) {
	t.Helper()
	suite, err := rules.ParseSuite(cases)
	if err != nil {
		t.Fatalf("ParseSuite: %v", err)
	}
	results, coverage := suite.Run(compile(t, document))
	var lines []string
	for _, r := range results {
		lines = append(lines, fmt.Sprintf("%v %d %s: %s", r.Passed, r.Line, r.Name, r.Got))
	}
	return lines, coverage
}

func TestSuite(t *testing.T) {
	const document = `{
  "open": {".read": true, ".write": true},
  "mine": {"$uid": {".read": "auth.uid === $uid", ".write": "auth.uid === $uid", ".validate": "newData.isNumber()"}},
  "when": {".write": "newData.val() === now && now === 7"},
  "sum": {".write": "newData.val() === 3"},
  "rank": {".write": "newData.getPriority() === 2"},
  "list": {"$key": {".write": "!data.exists() && $key.length === 20"}},
  "page": {".read": "query.orderByChild === 'n' && query.equalTo === 'a b' && query.limitToLast === 5"}
}`
	tests := []struct{ name, cases, want string }{
		{"a name and an auth as JSON", "# one\n# two\nread /mine/ann as={\"uid\": \"ann\"}\n----\nallowed", "true 3 one two: allowed: /mine/ann .read (3:30)"},
		{"no auth", "read /mine/ann\n----\ndenied", "true 1 read /mine/ann: denied"},
		{"a named auth", "auth ann\n{\"uid\": \"ann\"}\n\nread /mine/ann as=ann\n----\nallow", "true 4 read /mine/ann as=ann: allowed: /mine/ann .read (3:30)"},
		{"a wrong expectation", "read /mine/ann\n----\nallowed", "false 1 read /mine/ann: denied"},
		{"the deciding rule", "put /mine/ann as={\"uid\":\"ann\"}\n\"x\"\n----\ndenied: /mine/ann .validate", `true 1 put /mine/ann as={"uid":"ann"}: denied: /mine/ann .validate (3:95)`},
		{"its position", "put /mine/ann as={\"uid\":\"ann\"}\n\"x\"\n----\ndenied: /mine/ann .validate (3:95)", `true 1 put /mine/ann as={"uid":"ann"}: denied: /mine/ann .validate (3:95)`},
		{"another rule", "put /mine/ann as={\"uid\":\"ann\"}\n\"x\"\n----\ndenied: /mine .validate", `false 1 put /mine/ann as={"uid":"ann"}: denied: /mine/ann .validate (3:95)`},
		{"now and a timestamp", "now 7\n\nput /when\n{\".sv\": \"timestamp\"}\n----\nallowed", "true 3 put /when: allowed: /when .write (4:22)"},
		{"an increment on the data", "data\n{\"sum\": 1}\n\nput /sum !\n{\".sv\": {\"increment\": 2}}\n----\nallowed\n\nput /sum\n{\".sv\": {\"increment\": 2}}\n----\ndenied",
			"true 4 put /sum !: allowed: /sum .write (5:21)\ntrue 9 put /sum: denied"},
		{"a priority in two spellings", "data\n{\"rank\": 1}\n\npriority /rank\n2\n----\nallowed\n\nput /rank/.priority\n2\n----\nallowed",
			"true 4 priority /rank: allowed: /rank .write (6:22)\ntrue 9 put /rank/.priority: allowed: /rank .write (6:22)"},
		{"post", "post /list\n1\n----\nallowed: /list/-KoyxtV------------- .write", "true 1 post /list: allowed: /list/-KoyxtV------------- .write (7:31)"},
		{"patch and delete", "data\n{\"list\": {\"a\": 1}}\n\ndelete /list/a\n----\ndenied\n\npatch /\n{\"open/x\": 1, \"list/a\": null}\n----\ndenied\n\npatch /open\n{\"x\": 1}\n----\nallowed",
			"true 4 delete /list/a: denied\ntrue 8 patch /: denied\ntrue 13 patch /open: allowed: /open .write (2:37)"},
		{"a query with spaces in it", "read /page orderBy=\"n\" equalTo=\"a b\" limitToLast=5\n----\nallowed", `true 1 read /page orderBy="n" equalTo="a b" limitToLast=5: allowed: /page .read (8:21)`},
		{"a path with spaces in it", "read \"/mine/a b\" as={\"uid\": \"a b\"}\n----\nallowed", `true 1 read "/mine/a b" as={"uid": "a b"}: allowed: /mine/a b .read (3:30)`},
		{"data stays until there is other", "data\n{\"list\": {\"12345678901234567890\": 1}}\n----\nok\n\nput /list/12345678901234567890\n1\n----\ndenied\n\ndata\nnull\n\nput /list/12345678901234567890\n1\n----\nallowed",
			"true 6 put /list/12345678901234567890: denied\ntrue 14 put /list/12345678901234567890: allowed: /list/12345678901234567890 .write (7:31)"},
		{"line ends of another system", "put /open\r\n1\r\n----\r\nallowed\r\n", "true 1 put /open: allowed: /open .write (2:37)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := runSuite(t, document, test.cases); strings.Join(got, "\n") != test.want {
				t.Errorf("the suite\n%s\nsays\n%s\nwant\n%s", test.cases, strings.Join(got, "\n"), test.want)
			}
		})
	}
}

// TestSuiteExpires: what is over by the clock of a case is gone from its tree.
func TestSuiteExpires(t *testing.T) {
	const document = `{
  "sessions": {".expireOn": "until", "$s": {".read": "data.exists()", ".write": true}},
  "rooms": {"$room": {"codes": {".expireOn": "a/until", "$code": {".read": "data.exists()"}}}},
  "any": {".read": "root.child('sessions').exists()"}
}`
	const data = `{"sessions": {"s": {"until": 2000}, "t": {"until": 3000.5}, "u": {"until": "1000"}, "v": true, "w": {"until": -1}}, "rooms": {"blue": {"codes": {"c": {"a": {"until": 2000}}}}}}`
	reads := func(path string) string { return "read " + path + "\n----\nallowed\n\n" }
	for _, test := range []struct{ name, cases, want string }{
		{"before", "now 1999\n\n" + reads("/sessions/s") + reads("/rooms/blue/codes/c"), "true true"},
		{"at its time", "now 2000\n\n" + reads("/sessions/s") + reads("/sessions/t") + reads("/rooms/blue/codes/c"), "false true false"},
		{"a fraction", "now 3000\n\n" + reads("/sessions/t") + "now 3001\n\n" + reads("/sessions/t"), "true false"},
		{"what is no number stays", "now 9000\n\n" + reads("/sessions/u") + reads("/sessions/v") + reads("/sessions/w"), "true true false"},
		{"the clock does not bring it back", "now 2000\n\n" + reads("/sessions/s") + "now 1\n\n" + reads("/sessions/s"), "false false"},
		{"data does", "now 2000\n\n" + reads("/sessions/s") + "now 1\n\ndata\n" + data + "\n\n" + reads("/sessions/s"), "false true"},
		{"a write that extends it", "now 1999\n\nput /sessions/s/until !\n5000\n----\nallowed\n\nnow 2001\n\n" + reads("/sessions/s") + "now 5000\n\n" + reads("/sessions/s"), "true true false"},
		{"a write in the past", "now 2\n\nput /sessions/x !\n{\"until\": 1}\n----\nallowed\n\n" + reads("/sessions/x"), "true false"},
		{"a write that is not kept", "now 2\n\nput /sessions/s\n{\"until\": 1}\n----\nallowed\n\n" + reads("/sessions/s"), "true true"},
		{"the last one", "data\n{\"sessions\": {\"s\": {\"until\": 1}}}\n\nnow 1\n\n" + reads("/any"), "false"},
	} {
		suite, err := rules.ParseSuite("data\n" + data + "\n\n" + test.cases)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		results, _ := suite.Run(compile(t, document))
		var got []string
		for _, r := range results {
			got = append(got, fmt.Sprint(r.Passed))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: the cases pass %v, want %s", test.name, got, test.want)
		}
	}
}

func TestSuiteProblems(t *testing.T) {
	tests := []struct{ cases, want string }{
		{"", "1:1: there is no case"},
		{"# only a comment", "1:1: there is no case"},
		{"raed /a\n----\nallowed", `1:1: unknown command "raed"`},
		{"read /a", "1:1: the case must end with a line of four dashes"},
		{"read /a\n----\nperhaps", "1:1: the case must end with a line of four dashes"},
		{"read /a\n----\nallowed\ndenied", "1:1: the case must end with a line of four dashes"},
		{"read\n----\nallowed", "1:1: read needs a path"},
		{"read /a#b\n----\nallowed", "1:1: "},
		{"read /a orderby=\"x\"\n----\nallowed", `1:1: unknown option "orderby=\"x\""`},
		{"read /a !\n----\nallowed", `1:1: unknown option "!"`},
		{"read /a limitToFirst=1\n----\nallowed", "1:1: orderBy must be defined"},
		{"put /a orderBy=\"x\"\n1\n----\nallowed", `1:1: unknown option "orderBy=\"x\""`},
		{"read /a as=ann\n----\nallowed", "1:1: as=ann is neither JSON nor a name"},
		{"read /a as={\"uid\"\n----\nallowed", `1:1: as={"uid" is neither JSON nor a name`},
		{"read /a\n1\n----\nallowed", "2:1: read takes no body"},
		{"put /a\n----\nallowed", "1:1: there must be JSON in the lines below"},
		{"put /a\n{\"x\":\n1 2}\n----\nallowed", "3:3: "},
		{"patch /a\n1\n----\nallowed", "2:1: a PATCH needs a JSON object"},
		{"data {}", "1:1: the data stands in the lines below"},
		{"data\n{\"a.b\": 1}", "2:2: "},
		{"data\n1\n----\nallowed", "1:1: data expects nothing"},
		{"now soon", "1:1: now needs a number"},
		{"auth null\n{}", "1:1: auth needs a name"},
		{"auth ann\n{", "2:2: "},
		{"raed /a\n----\nallowed\n\nread /a", "1:1: unknown command \"raed\": there are data, now, auth, read, put, patch, post, delete and priority\n5:1: the case must end"},
	}
	for _, test := range tests {
		_, err := rules.ParseSuite(test.cases)
		problems, ok := errors.AsType[rules.Problems](err)
		if !ok || !strings.HasPrefix(problems.Error(), test.want) {
			t.Errorf("ParseSuite(%q) = %v, want problems that begin with %q", test.cases, err, test.want)
		}
	}
}

func FuzzParseSuite(f *testing.F) {
	f.Add("data\n{\"a\": 1}\n\nauth ann\n{\"uid\": 1}\n\n# x\npatch /a as=ann !\n{\"b\": 1}\n----\nallowed: / .write")
	f.Add("read \"/a b\" orderBy=\"$key\" as={\"x\": [\"\\\"\"]}\n----\ndenied")
	f.Add("now 1\n\npost /\n{\".sv\": {\"increment\": 1}}\n----\nallow")
	r, err := rules.Compile(`{"rules": {".read": "auth != null", ".write": "newData.val() == now", "$a": {".validate": "$a.length > 1"}}}`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		suite, err := rules.ParseSuite(text)
		if problems, ok := errors.AsType[rules.Problems](err); ok {
			problems.Explain(text)
			return
		}
		results, coverage := suite.Run(r)
		coverage.Page(text, results)
	})
}

// TestSuiteTellsWhatWasTried: in order, in one line each, and not without end.
func TestSuiteTellsWhatWasTried(t *testing.T) {
	suite, err := rules.ParseSuite("put /a\n{\"" + strings.Repeat("x", 3) + "\": 1}\n----\nallowed\n\nput /many\n{" +
		strings.TrimPrefix(manyChildren(1000), ",") + "}\n----\ndenied\n\nput /many/x\n1\n----\nallowed")
	if err != nil {
		t.Fatal(err)
	}
	results, _ := suite.Run(compile(t, `{".write": "auth.uid\n  + 1 == 'x'",
"a": {".write": "true || false", ".validate": false}, "many": {".write": true, "$k": {".validate": "$k != ''"}}}`))
	want := `1:21 /:.write: "auth.uid + 1 == 'x'" => false (An operand of + does not fit.)
2:17 /a:.write: "true || false" => true
2:47 /a:.validate: "false" => false`
	if got := strings.Join(results[0].Tried, "\n"); got != want {
		t.Errorf("tried were\n%s\nwant\n%s", got, want)
	}
	if tried := results[1].Tried; len(tried) > 250 || tried[len(tried)-1] != "… and more" {
		t.Errorf("of a large write %d rules are told, the last %q", len(tried), tried[len(tried)-1])
	}
	if !results[2].Passed || results[2].Tried != nil {
		t.Errorf("a case that passes keeps %q", results[2].Tried)
	}
}

func manyChildren(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",\"k%d\":1", i)
	}
	return b.String()
}

// TestSuiteEndsWhenNobodyWaits: no case is judged, and nothing is read, once nobody waits for the results.
func TestSuiteEndsWhenNobodyWaits(t *testing.T) {
	const cases = 200
	text := "data\n{\"a\":1}\n\n" + strings.Repeat("read /a\n----\ndenied\n\n", cases)
	done := make(chan struct{})
	suite, err := rules.ParseSuiteUntil(text, done)
	if err != nil {
		t.Fatal(err)
	}
	close(done)
	results, coverage := suite.Run(compile(t, `{"a": {".read": "data.val() == 2"}}`))
	if len(results) != cases {
		t.Fatalf("%d results, want one for each of %d cases", len(results), cases)
	}
	for _, r := range results {
		if r.Passed || !strings.HasPrefix(r.Got, "error: nobody waits") {
			t.Fatalf("a case that nobody waits for: %+v", r)
		}
	}
	for _, rule := range coverage.Rules() {
		if rule.True+rule.False+rule.Failed > 0 {
			t.Errorf("rules were asked though nobody waits: %+v", rule)
		}
	}
	if suite, err := rules.ParseSuiteUntil(text, done); !errors.Is(err, rules.ErrUnwanted) {
		t.Errorf("reading cases that nobody waits for gives %v, %v, want ErrUnwanted", suite, err)
	}
}

// TestCaseEndsWhenNobodyWaits: a case with few rules is not judged to its end.
func TestCaseEndsWhenNobodyWaits(t *testing.T) {
	done := make(chan struct{})
	asked := 0
	request := rules.Request{Trace: true, Done: done, Observe: func(rules.Asked) {
		if asked++; asked == 3 {
			close(done)
		}
	}}
	r := compile(t, `{".write": true, "$k": {".validate": "newData.isNumber()"}}`)
	w := tree.Put(tree.Path{}, decode(t, `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}`))
	if _, err := r.Write(request, rules.InNode(tree.Node{}), w); !errors.Is(err, rules.ErrUnwanted) || asked != 3 {
		t.Errorf("%d rules were asked, and then: %v, want ErrUnwanted after 3", asked, err)
	}
}
