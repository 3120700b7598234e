package conformance_test

import (
	"strings"
	"testing"
)

// TestTranscriptsFail plays scenes of which each is wrong in one place, but for the first.
func TestTranscriptsFail(t *testing.T) {
	const (
		open   = "@open a /.ws?v=5&ns=default\n< <*>\n"
		set    = `> {"t":"d","d":{"r":1,"a":"p","b":{"p":"/x","d":1}}}` + "\n"
		ok     = `< {"t":"d","d":{"r":1,"b":{"s":"ok","d":""}}}` + "\n"
		listen = `> {"t":"d","d":{"r":1,"a":"q","b":{"p":"/x"}}}` + "\n"
	)
	s := newStage(t, []string{"dev"})
	for _, test := range []struct {
		name, lines string
		want        string // in the problem; empty for none
	}{
		{"right", open + set + ok, ""},
		{"reply", open + set + strings.Replace(ok, `"ok"`, `"failure"`, 1), "5: < "},
		{"reply of another request", open + set + strings.Replace(ok, `"r":1`, `"r":2`, 1), "got  "},
		{"hello", "@open a /.ws?v=5&ns=default\n" + ok, "got  "},
		{"message that was left over", open + set, "a has more to tell"},
		{"push that was left over", open + listen + `< {"t":"d","d":{"a":"d","b":{"p":"x","d":null}}}` + "\n", "a has more to tell"},
		{"name of a connection", open + "@use b\n" + set, `no connection "b" is open`},
		{"connection that was ended", open + "@end\n" + set, `no connection "a" is open`},
		{"refusal that does not come", "@refused 404 /.ws?v=5&ns=default\n", "it is answered with"},
		{"opening that is refused", "@header Origin: https://evil.example\n@open a /.ws?v=5&ns=default\n", "status 403"},
		{"header that is used up", "@header Origin: https://evil.example\n@refused 403 /.ws?v=5&ns=default\n" + open, ""},
		{"code of a close", open + "@frame {\n< close 1009\n", `got  "1003"`},
		{"message in the place of a close", open + set + "< close 1003\n", "got  "},
		{"close in the place of a message", open + "@frame {\n" + ok, "closed by the server: 1003"},
		{"text that is not kept", open + "> <nothing>\n", "nothing is kept under <nothing>"},
		{"any order", open + set + "<? x\n<? y\n", "want one of"},
		{"request", "@rest PUT /x.json nonsense\n", "status 400"},
	} {
		tr, err := parseTranscript("test.txt", "# "+test.name+"\n"+test.lines)
		if err != nil {
			t.Fatal(err)
		}
		problem := s.play(t, tr.scenes[0])
		if test.want == "" && problem != "" || !strings.Contains(problem, test.want) || test.want != "" && problem == "" {
			t.Errorf("%s: the problem is %q, want one that says %q", test.name, problem, test.want)
		}
	}
}

func TestTranscriptParserFails(t *testing.T) {
	for text, want := range map[string]string{
		"> {}\n":                     "1: > stands before the first heading",
		"# x\n@nonsense\n":           "2: @nonsense is not known",
		"# x\n@server dev\n":         "2: @server is not known, or not allowed here",
		"# x\n>{}\n":                 "2: >{} is not known",
		"# x\n@open\n":               "2: @open has no text",
		"# x\n@restart now\n":        "2: @restart has no text, or one too many",
		"#x\n":                       "1: #x is not known",
		"@server dev\n@server dev\n": "2: @server is not known, or not allowed here",
	} {
		if _, err := parseTranscript("test.txt", text); err == nil || !strings.Contains(err.Error(), "test.txt:"+want) {
			t.Errorf("%q is parsed with %v, want %s", text, err, want)
		}
	}
}
