package conformance_test

import (
	"strings"
	"testing"
)

// TestRunnerFails runs scripts of which each is wrong in one place. A runner
// that cannot fail proves nothing.
func TestRunnerFails(t *testing.T) {
	const opening = "@stream s\n> GET /s.json\n< 200\n"
	tests := []struct {
		name, lines string
		want        string // in the one problem; empty for none
	}{
		{"right", "> PUT /a.json 1\n< 200 1", ""},
		{"status", "> PUT /a.json 1\n< 201 1", "status 200, want 201"},
		{"body", "> PUT /a.json 1\n< 200 2", `want "2"`},
		{"body that goes on", "> PUT /a.json 12\n< 200 1", `got  "12"`},
		{"body that ends early", "> PUT /a.json 1\n< 200 12", `got  "1"`},
		{"missing body", "> PUT /a.json 1\n< 200", `got  "1"`},
		{"body where none is", "> PUT /a.json?print=silent 1\n< 204 1", `got  ""`},
		{"newline at the end", "> PUT /a.json 1\n< 200\n<\n< 1\n<", `want "1\n"`},
		{"error text", "> GET /a\n< 404 error append nothing", "append nothing"},
		{"error status", "> GET /a\n< 400 error append .json<*>", "status 404, want 400"},
		{"value of a header", "> GET /a.json\n< 200 null\n< Cache-Control: private", "header Cache-Control"},
		{"missing header", "> GET /a.json\n< 200 null\n< ETag: x", "header ETag: got [], want one"},
		{"header that should be missing", "> GET /a.json\n< 200 null\n< Cache-Control: <none>", "header Cache-Control"},
		{"content type", "> GET /a.json\n< 200 null\n< Content-Type: text/plain", "header Content-Type"},
		{"content type that is not named", "> GET /a.json?callback=f\n< 200 /**/f(null);", `content type "application/javascript; charset=utf-8"`},
		{"kind", "> PUT /a.json 1\n< 200 <t:millis>", "want"},
		{"time of another day", "> PUT /a.json 1000000000000\n< 200 <t:millis>", "is off the present time"},
		{"key of another day", "> PUT /a.json \"-0000000000000000000\"\n< 200 \"<k:key>\"", "is off the present time"},
		{"ETag of no data", "> GET /a.json\n> X-Firebase-ETag: true\n< 200 null\n< ETag: <e:etag>", "that of no data"},
		{"same name, other text", "> PUT /a.json [1,2]\n< 200 [<a:text>,<a>]", "<a> is"},
		{"kept text", "> PUT /a.json 1\n< 200 <a:text>\n> PUT /a.json 2\n< 200 <a>", `got  "2"`},
		{"name that nothing is kept under", "> GET /<a>.json\n< 200 null", "nothing is kept under <a>"},
		{"name in an answer", "> GET /a.json\n< 200 <a>", "nothing is kept under <a>"},
		{"what a heading left", "> PUT /a.json 1\n< 200 1\n# Next 1: \"the database is empty\"\n> GET /a.json\n< 200 1", `got  "null"`},
		{"rules that a heading left", "> PUT /.settings/rules.json?auth=<secret> {\"rules\":{}}\n< 200 {\"status\":\"ok\"}\n# Next 1: \"the rules are those of before\"\n> GET /a.json\n< 200 null", ""},
		{"repetition", "> PUT /a.json \"<x*3>\"\n< 200 \"<x*4>\"", `want "\"xxxx\""`},
		{"bytes", "> PUT /a.json \"<0x41>\"\n< 200 \"B\"", `got  "\"A\""`},
		{"path that net/http would change", "> GET /a\"b.json\n< 200 null", "net/http would send"},
		{"plain request", "@plain\n> GET /a.json\n< 200 null", "status 404, want 200"},
		{"stream", opening + "* s put {\"path\":\"/\",\"data\":null}\n@close s", ""},
		{"stream that was left out", "@http1\n" + opening + "* s put nothing", "want"},
		{"event", opening + "* s put {\"path\":\"/\",\"data\":1}", `\"data\":1`},
		{"name of an event", opening + "* s patch {\"path\":\"/\",\"data\":null}", "event: patch"},
		{"id where none is", opening + "* s id <*> put {\"path\":\"/\",\"data\":null}", "id: <*>"},
		{"no id where one is", strings.Replace(opening, ".json", ".json?resume=true", 1) + "* s put {\"path\":\"/\",\"data\":null}", "event: put"},
		{"end of a stream that goes on", opening + "* s end", "want the end"},
		{"event that was left over", opening, "has more to tell"},
		{"event that was not expected", opening + "* s put {\"path\":\"/\",\"data\":null}\n> PUT /s/a.json 1\n< 200 1", "has more to tell"},
		{"stream that is not open", "* s end", "no stream of this name is open"},
		{"stream that was closed", opening + "@close s\n* s end", "no stream of this name is open"},
		{"answer instead of a stream", strings.Replace(opening, ".json", ".json?shallow=true", 1), "status 400, want 200"},
		{"stream instead of an answer", "@stream s\n> GET /s.json\n< 403 error Permission denied\n@close s", "status 200, want 403"},
		{"header of a stream", "@stream s\n> GET /s.json\n< 200\n< Cache-Control: private\n@close s", "header Cache-Control"},
		{"connection", "@http1\n> GET /a.json?print=silent\n< 204\n< Connection: <none>", "header Connection"},
	}
	for _, major := range []int{1, 2} {
		runner := newRunner(t, start(t, []string{"dev"}), major)
		for _, test := range tests {
			s, err := parse("test.txt", "# Test 1: \""+test.name+"\"\n"+test.lines+"\n")
			if err != nil {
				t.Fatal(err)
			}
			problems := runner.run(s)
			want := test.want
			if major == 2 && strings.HasPrefix(test.lines, "@http1") {
				want = "" // it is left out
			}
			switch {
			case want == "" && len(problems) > 0:
				t.Errorf("HTTP/%d: %s: %s, want no problem", major, test.name, problems)
			case want != "" && (len(problems) != 1 || !strings.Contains(problems[0], want) || !strings.HasPrefix(problems[0], "test.txt:")):
				t.Errorf("HTTP/%d: %s: the problems are %q, want one at test.txt:N that says %q", major, test.name, problems, want)
			}
		}
	}
}

func TestParserFails(t *testing.T) {
	for text, want := range map[string]string{
		"> GET /a.json\n< 200 null\n":                            "1: a request stands before the first heading",
		"# Test 1: \"x\"\n> GET /a.json\n":                       "2: the request on line 2 has no answer",
		"# Test 1: \"x\"\n> GET /a.json\n> GET /b.json\n< 200\n": "3: the request on line 2 has no answer",
		"# Test 1: \"x\"\n> GET /a.json\n\n< 200\n":              "3: the request on line 2 has no answer",
		"# Test 1: \"x\"\n< 200 null\n":                          "2: an answer without a request",
		"# Test 1: \"x\"\n> GET\n< 200\n":                        "2: a request looks like",
		"# Test 1: \"x\"\n> GET /a.json\n< OK\n":                 "3: an answer looks like",
		"# Test 1: \"x\"\n> GET /a.json\n> nothing\n< 200\n":     "3: a header looks like",
		"# Test 1: \"x\"\n> GET /a.json\n< 200 1\n<\n< 2\n":      "4: the answer has a body already",
		"# a remark\n":                   "1: a heading looks like",
		"@nonsense\n":                    "1: @nonsense is not known",
		"# Test 1: \"x\"\n@server dev\n": "2: @server is not known, or not allowed here",
		"# Test 1: \"x\"\n> GET /a.json\n@plain\n< 200 1\n": "3: the request on line 2 has no answer",
		"# Test 1: \"x\"\n> GET /a.json\n* s end\n":         "3: the request on line 2 has no answer",
		"* s end\n":                  "1: an action stands before the first heading",
		"# Test 1: \"x\"\n* s put\n": "2: an event looks like",
		"# Test 1: \"x\"\n@close\n":  "2: the name of a stream, or a secret, is missing",
		"# Test 1: \"x\"\n@stream\n": "2: @stream is not known",
	} {
		if _, err := parse("test.txt", text); err == nil || !strings.Contains(err.Error(), "test.txt:"+want) {
			t.Errorf("%q is parsed with %v, want %s", text, err, want)
		}
	}
}

func TestOptionsFail(t *testing.T) {
	for _, option := range []string{"nonsense", "max-body=x", "keep-alive=x", "max-streams=x"} {
		if _, err := configure([]string{option}); err == nil {
			t.Errorf("the option %s is taken", option)
		}
	}
}
