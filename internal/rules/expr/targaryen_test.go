package expr_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/livetree/livetree/internal/rules/expr"
)

// recorded is testdata/targaryen.json: what targaryen 3.1.0 (npm), another
// implementation of the language, says to expressions that were made up for this
// test. Each is for .read, as a user, over one tree. Where targaryen differs from
// the live service the expression was left out: it lets null
// stand in < and its like, refuses a literal string beside a literal number
// there, and overlooks arguments of methods that take none and a semicolon at
// the end.
type recorded struct {
	Users map[string]json.RawMessage
	Data  json.RawMessage
	Tests [][3]string // user, expression, outcome
}

func TestAgainstTargaryen(t *testing.T) {
	text, err := os.ReadFile("testdata/targaryen.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	data := nodeData{decode(t, string(r.Data))}
	for _, test := range r.Tests {
		user, source, want := test[0], test[1], test[2]
		got := "refused"
		if e, problems := expr.Compile(source, at(expr.Read)); problems == nil {
			got = outcome(e.Eval(&expr.Env{
				Auth: decode(t, string(r.Users[user])), Before: data, NowMillis: 1_500_000_000_000, Wildcards: []string{"x"},
			}))
		}
		if got != want {
			t.Errorf("%s as %s: %s, want %s", source, user, got, want)
		}
	}
}
