package rules

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

// TestCasesAreReadAsPrinted: a case with awkward texts is one case of a suite, with all of them.
func TestCasesAreReadAsPrinted(t *testing.T) {
	t.Parallel()
	node := func(text string) tree.Node {
		n, err := tree.DecodeClaims([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const awkward = "/a b/\u00a0c\u202e/q\"uote'/----"
	at, err := tree.ParsePath(awkward)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Case{
		{Verb: "read", Path: at, Auth: node(`{"uid":"a b","x.y":[1,{"z":" \" "}],"n":"\n\n----\n"}`), NowMillis: 5, Data: node(`{"a":"\n\n# x"}`)},
		{Verb: "read", Path: at, Query: map[string]string{"orderBy": `"a b"`, "startAt": `"x y","k"`}, Allowed: true},
		{Verb: "put", Path: at, Body: `{"a":" ---- "}`, Auth: node(`"a name"`)},
		{Verb: "post", Path: at, Body: `"\n\n"`},
		{Verb: "patch", Path: at, Body: `{"x/y":1}`},
		{Verb: "delete", Path: at, Body: "null"},
	} {
		text := c.String()
		suite, err := ParseSuite(text)
		if err != nil || len(suite.cases) != 1 {
			t.Errorf("%+v is printed as\n%s\nwhich is read as %v", c, text, err)
			continue
		}
		got := suite.cases[0]
		where := got.at
		if !got.read {
			where = got.write.At
		}
		if c.Verb == "post" {
			where = where.Parent()
		}
		if where != at || caseJSON(got.request.Auth) != caseJSON(c.Auth) || caseJSON(*got.data) != caseJSON(c.Data) ||
			got.request.NowMillis != c.NowMillis || got.want != verdict(c.Allowed) || got.read != (c.Verb == "read") {
			t.Errorf("%+v is read as %+v", c, got)
		}
		if c.Body != "" && c.Verb != "delete" && !strings.Contains(text, "\n"+c.Body+"\n----\n") {
			t.Errorf("the body of %+v is not in\n%s", c, text)
		}
	}
}
