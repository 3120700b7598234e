package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/tree"
)

func TestRawQueryBytes(t *testing.T) {
	t.Parallel()
	w := serve(t, nil).dial()
	w.ask("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 1\n\n1")
	for query, want := range map[string]string{
		`_="x"`:                   "200 1",
		`_="x"&_2=`:               "400 " + errorBody(`unknown parameter \"_2\"`) + "\n",
		`_=$key&print=pretty`:     "200 1",
		"_=\u00e9\U0001f600":      "200 1",
		"_=[]{}|\\^`<>":           "200 1",
		"":                        "200 1",
		"&&":                      "200 1",
		"_":                       "200 1",
		"print=pre%74ty":          "200 1",
		"%70rint=pretty":          "200 1",
		"print=+pretty":           "400 " + errorBody("print must be pretty or silent") + "\n",
		"print=pretty#fragment":   "400 " + errorBody("print must be pretty or silent") + "\n",
		"_=%":                     "400 " + errorBody("the query string cannot be parsed") + "\n",
		"_=1;print=pretty":        "400 " + errorBody("the query string cannot be parsed") + "\n",
		"a+b=1":                   "400 " + errorBody(`unknown parameter \"a b\"`) + "\n",
		"%00=1":                   "400 " + errorBody(`unknown parameter \"\\x00\"`) + "\n",
		strings.Repeat("_&", 120): "400 " + errorBody("more than 100 parameters") + "\n",
	} {
		if got := w.ask("GET /a.json?" + query + " HTTP/1.1\nHost: h\n\n"); got != strings.TrimSpace(want) {
			t.Errorf("the query %.40q is answered %s, want %s", query, got, want)
		}
	}
	w.send("GET /a.json?download=a+b%2B%22c HTTP/1.1\nHost: h\n\n")
	if head, _ := w.receive("GET"); header(head, "Content-Disposition") != `attachment; filename="a b+\"c"` {
		t.Errorf("a plus in a file name is answered %s", head)
	}
}

// TestRawBytesOfPaths tries every byte in a path, raw and in both spellings of
// its escape.
func TestRawBytesOfPaths(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	w := s.dial()
	for b := range 256 {
		key := "k" + string([]byte{byte(b)}) + "k"
		valid := tree.CheckKey(key) == nil
		want := "400"
		if valid {
			want = "200"
		}
		for _, spelling := range []string{"k%%%02Xk", "k%%%02xk"} {
			target := "/" + fmt.Sprintf(spelling, b) + ".json"
			if got := w.ask("PUT " + target + " HTTP/1.1\nHost: h\nContent-Length: 1\n\n1"); got[:3] != want {
				t.Errorf("PUT %s is answered %s, want %s", target, got, want)
			}
		}
		if !valid {
			continue
		}
		if got := w.ask("GET /.json HTTP/1.1\nHost: h\n\n"); got != "200 "+string(tree.AppendString([]byte("{"), key))+":1}" {
			t.Errorf("after PUT at the escaped key %q, the tree is %s", key, got)
		}
		if got := w.ask("DELETE /.json HTTP/1.1\nHost: h\n\n"); got != "200 null" {
			t.Fatal(got)
		}
		if strings.ContainsRune("%? ", rune(b)) || b >= 0x80 {
			continue // it means something else, or is half a character
		}
		if got := w.ask("PUT /k" + string(rune(b)) + "k.json HTTP/1.1\nHost: h\nContent-Length: 1\n\n1"); got != "200 1" {
			t.Errorf("PUT at the raw key %q is answered %s", key, got)
		}
		if got := w.ask("GET /" + fmt.Sprintf("k%%%02Xk", b) + ".json HTTP/1.1\nHost: h\n\n"); got != "200 1" {
			t.Errorf("after PUT at the raw key %q, GET is answered %s", key, got)
		}
		if got := w.ask("DELETE /.json HTTP/1.1\nHost: h\n\n"); got != "200 null" {
			t.Fatal(got)
		}
	}
}

// TestRawEscapesAreDecodedOnce has paths with escapes that mean something else
// when they are decoded before the path is split, or twice.
func TestRawEscapesAreDecodedOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.expect(`PUT /.json {"a":{"b":"deep"},"é":{"b":"deep"}}`, `200 {"a":{"b":"deep"},"é":{"b":"deep"}}`)
	w := s.dial()
	for target, want := range map[string]string{
		"/a%2Fb.json":             "400",
		"/a%2fb.json":             "400",
		"/a%252Fb.json":           "200 null",
		"/%61%2F%62.json":         "400",
		"/a/b.json":               `200 "deep"`,
		"/%61/%62.json":           `200 "deep"`,
		"/a%5Cb.json":             "200 null",
		"/a\\b.json":              "200 null",
		"/\xc3\xa9/b.json":        `200 "deep"`,
		"/%c3%a9/b.json":          `200 "deep"`,
		"/\xc3\xa9%2Fb.json":      "400",
		"/\"%2Fb.json":            "400",
		"/a%2Fb/\"/.json":         "400",
		"/a/b%2F.json?\"":         "400",
		"/{}%2Fb.json":            "400",
		"/|%252Fb.json":           "200 null",
		"/\"/%2e%2e/a/b.json":     "400",
		"/%2e%2e/a/b.json":        "400",
		"/a/../a/b.json":          "400",
		"/a/./b.json":             "400",
		"/%2E/b.json":             "400",
		"/a/b%2Ejson":             "404",
		"/\"/b%2Ejson":            "404",
		"/a/b.json%00":            "404",
		"/a/b%00.json":            "400",
		"/a/b.json%3Fauth=x":      "404",
		"/a%3Fb.json":             "200 null",
		"/a%23b.json":             "400",
		"/a#b.json":               "400",
		"/a+b.json":               "200 null",
		"/%2B.json":               "200 null",
		"/.settings%2Frules.json": "400",
		"/.settings/rules.json":   "403",
		"/%2Esettings/rules.json": "400",
		"/.Settings/rules.json":   "400",
		"/a/.settings/rules.json": "400",
		"https://h/a/b.json":      `200 "deep"`,
		"https://other/a/b.json":  `200 "deep"`,
		"http://h/a/b.json":       `200 "deep"`,
		"https://h":               "404",
		"https:a/b.json":          "404",
		"*":                       "404",
		"//a/b.json":              `200 "deep"`,
		"//h/a/b.json":            "200 null",
	} {
		got := w.ask("GET " + target + " HTTP/1.1\nHost: h\n\n")
		if len(want) == 3 {
			got = got[:3]
		}
		if got != want {
			t.Errorf("GET %q is answered %s, want %s", target, got, want)
		}
	}
}
