//go:build unix

package trust_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
)

// questionPaths are where random questions go: where the user may read, where not,
// where only a part of a node may be read, and where nothing is.
var questionPaths = []string{
	"", "/", "/open", "/open/a", "/open/a/n", "/open/c", "/open/d", "/open/f", "/open/none", "/open/a/b/c/d",
	"/mine", "/mine/u", "/mine/u/k", "/mine/v", "/mine/v/k", "/mine/v/k/n",
	"/part", "/part/one", "/part/one/shown", "/part/one/sec", "/part/two", "/part/three", "/part/three/shown",
	"/drop", "/drop/a", "/drop/b", "/drop/sum", "/hidden", "/hidden/a", "/hidden/a/n", "/hidden/b", "/hidden/b/c/d", "/list", "/open2",
}

// probes are questions by which other databases have told what they should not:
// about a node that the user may write but not read.
var probes = []request{
	{method: "PUT", target: "/drop/sum.json?", body: `{".sv":{"increment":1}}`},
	{method: "PUT", target: "/drop/sum.json?", body: `{".sv":{"increment":1.7e308}}`},
	{method: "PUT", target: "/hidden/a.json?", body: `{".sv":{"increment":1.7e308}}`},
	{method: "PUT", target: "/drop/sum/.priority.json?", body: `{".sv":{"increment":1}}`},
	{method: "PATCH", target: "/drop.json?", body: `{"sum":{".sv":{"increment":1}}}`, header: []string{"X-Firebase-ETag", "true"}},
	{method: "PUT", target: "/drop/a.json?", body: "1", header: []string{"If-Match", "null_etag"}},
	{method: "DELETE", target: "/drop/b.json?", header: []string{"If-Match", "null_etag"}},
	{method: "PUT", target: "/drop/a.json?", body: "1", header: []string{"X-Firebase-ETag", "true", "If-Match", "guess"}},
	{method: "DELETE", target: "/drop/a.json?", header: []string{"X-Firebase-ETag", "true"}},
	{method: "PUT", target: "/drop/a/.priority.json?", body: "1"},
	{method: "PATCH", target: "/drop.json?", body: `{"a/n":1,"b":null}`, header: []string{"X-Firebase-ETag", "true"}},
	{method: "PUT", target: "/drop/a/n.json?", body: "null", header: []string{"X-Firebase-ETag", "true"}},
	{method: "POST", target: "/drop.json?", body: "null"},
	{method: "GET", target: "/drop.json?orderBy=%22n%22&equalTo=7&"},
	{method: "GET", target: "/drop.json?explain=true&orderBy=%22n%22&"},
	{method: "GET", target: "/hidden.json?orderBy=%22unknown%22&"},
	{method: "GET", target: "/hidden/a.json?", header: []string{"If-None-Match", "null_etag"}},
	{method: "GET", target: "/mine.json?shallow=true&"},
	{method: "GET", target: "/part/one.json?orderBy=%22$key%22&equalTo=%22sec%22&"},
}

// randomQuestion returns a request of a user: any verb, anywhere, with any
// parameters, valid or not.
func randomQuestion(rng *rand.Rand, token string) request {
	if rng.IntN(8) == 0 {
		r := pick(rng, probes...)
		r.target += "auth=" + token
		return r
	}
	path := pick(rng, questionPaths...)
	if rng.IntN(8) == 0 {
		path += "/.priority"
	}
	if path == "" || path == "/" {
		path = "/"
	}
	r := request{method: pick(rng, "GET", "GET", "GET", "GET", "PUT", "PATCH", "DELETE", "POST", "HEAD", "OPTIONS"), target: path + ".json?"}
	switch rng.IntN(6) {
	case 0: // nobody
	case 1:
		r.header = append(r.header, "Authorization", "Bearer "+token)
	default:
		r.target += "auth=" + token
	}
	if rng.IntN(3) == 0 {
		r.header = append(r.header, "X-Firebase-ETag", "true")
	}
	switch r.method {
	case "GET", "HEAD":
		for _, p := range randomParameters(rng) {
			r.target += "&" + p
		}
		if rng.IntN(6) == 0 {
			r.header = append(r.header, "If-None-Match", pick(rng, "null_etag", "other"))
		}
	case "POST":
		r.target, r.body = pick(rng, "/list", "/hidden", "/mine/v")+".json?auth="+token, randomBody(rng)
	case "PUT", "PATCH":
		r.body = randomBody(rng)
		if r.method == "PATCH" {
			r.body = randomPatch(rng)
		} else if path != "/list" && rng.IntN(6) == 0 {
			r.header = append(r.header, "If-Match", pick(rng, "null_etag", "guess"))
		}
	}
	if r.method != "GET" && r.method != "HEAD" && rng.IntN(8) == 0 {
		r.target += "&print=silent"
	}
	return r
}

// randomParameters returns what a read can be asked for, and what not.
func randomParameters(rng *rand.Rand) []string {
	switch rng.IntN(10) {
	case 0:
		return []string{"shallow=true"}
	case 1:
		return []string{"format=export"}
	case 2:
		return []string{pick(rng, "print=pretty", "print=silent", "callback=f", "download=x.json", "explain=true", "timeout=3s")}
	case 3:
		return []string{pick(rng, "orderBy=n", "limitToFirst=2", `orderBy="$key"&limitToFirst=-1`, `orderBy="n"&shallow=true`, "nonsense=1",
			`orderBy="a/b"`, `orderBy="$value"&equalTo={}`, `orderBy="sec"&equalTo=true`)}
	case 4, 5:
		return nil
	}
	all := []string{"orderBy=" + url.QueryEscape(pick(rng, `"n"`, `"n"`, `"$key"`, `"$value"`, `"$priority"`, `"sec"`, `"k/n"`))}
	for _, bound := range []string{"startAt", "endAt", "equalTo", "startAfter"} {
		if rng.IntN(4) == 0 {
			all = append(all, bound+"="+url.QueryEscape(pick(rng, "1", `"k"`, `"x500"`, "true", "null", "500")))
		}
	}
	switch rng.IntN(4) {
	case 0:
		all = append(all, fmt.Sprintf("limitToFirst=%d", 1+rng.IntN(3)))
	case 1:
		all = append(all, fmt.Sprintf("limitToLast=%d", 1+rng.IntN(3)))
	}
	if rng.IntN(8) == 0 {
		all = append(all, "explain=true")
	}
	return all
}

func randomBody(rng *rand.Rand) string {
	return pick(rng, "1", `{".sv":{"increment":1}}`, `"text"`, "null", "true", `{"n":1}`, `{"n":{"m":2},"sec":3}`, `{".value":1,".priority":2}`, `{"bad":1}`, `{"a":`, `[1,2]`,
		fmt.Sprintf(`{"n":%d}`, rng.IntN(9)), fmt.Sprintf(`{"k%d":{"n":%d}}`, rng.IntN(9), rng.IntN(9)))
}

// randomPatch often writes to places of different rights at once.
func randomPatch(rng *rand.Rand) string {
	return pick(rng, `{"n":1}`, `{"a":1,"b":null}`, `{"shown":1,"sec":2}`, `{"open/a/n":1,"hidden/a":2}`, `{"one/shown":1,"one/sec":null}`,
		`{"open/a":1,"drop/a":{"n":2}}`, `{"drop/a":1,"drop/b":2,"mine/u/k":3}`, `{"a/.priority":1}`, `{"sum":{".sv":{"increment":1}}}`, `{"open/a/n":{".sv":{"increment":1}},"drop/sum":{".sv":{"increment":1}}}`, `{"a":1,"a/b":2}`, `null`, `1`, `{"open/locked":true}`, `{"open/locked":null}`)
}
