package histories

import (
	"strings"
	"testing"
)

const example = `# A comment
# of two lines.
put /a x=1 deep=a=b
{"b":
1}
----
ok

get /a
----
----
one

two
----

nothing
----
`

func TestParse(t *testing.T) {
	commands, err := Parse(example)
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) != 3 {
		t.Fatalf("%d commands, want 3", len(commands))
	}
	put, get, nothing := commands[0], commands[1], commands[2]
	if put.Name != "put" || put.Arg(0) != "/a" || put.Arg(1) != "" || put.Named["x"] != "1" || put.Named["deep"] != "a=b" {
		t.Errorf("the first command is %+v", put)
	}
	if put.Input != "{\"b\":\n1}" || put.want != "ok" || put.at != 3 {
		t.Errorf("the first command has the input %q and the output %q, at line %d", put.Input, put.want, put.at)
	}
	if get.Input != "" || get.want != "one\n\ntwo" {
		t.Errorf("the second command has the input %q and the output %q", get.Input, get.want)
	}
	if nothing.want != "" {
		t.Errorf("the last command has the output %q, want none", nothing.want)
	}
}

// TestPrintedAsParsed: a history whose outputs are right is rewritten as it is.
func TestPrintedAsParsed(t *testing.T) {
	outputs := []string{"ok\n", "one\n\ntwo", ""}
	calls := 0
	after, err := runText(t, "example", example, func(*testing.T, *Command) string {
		calls++
		return outputs[calls-1]
	})
	if err != nil || after != example {
		t.Errorf("rewritten as\n%s\n%v, want\n%s", after, err, example)
	}
}

func TestParseRefuses(t *testing.T) {
	for source, want := range map[string]string{
		"put /a\n":                  "1: put /a: no ---- follows",
		"# alone\n":                 "1: a comment without a command",
		"get /a\n----\n----\none\n": "1: get /a: the output has no end",
	} {
		if _, err := Parse(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want %s", source, err, want)
		}
	}
}
