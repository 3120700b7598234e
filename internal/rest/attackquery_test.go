package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rest"
)

// TestAttackByQuery: what a query cannot be is refused, and the refusal names no
// data.
func TestAttackByQuery(t *testing.T) {
	t.Parallel()
	s := newTarget(t, nil)
	for _, query := range []string{
		strings.Repeat("a&", 101), `orderBy="$key"&orderBy="$value"`, `orderBy="$key"&limitToFirst=1&limitToFirst=2`, `orderBy="$key"&limitToFirst=1&limitToLast=1`,
		`orderBy="$key"&limitToFirst=9223372036854775808`, `orderBy="$key"&limitToFirst=-1`, `orderBy="$key"&limitToFirst=1.5`, `orderBy="$key"&limitToFirst=0`,
		`orderBy="$key"&limitToLast=1e3`, `orderBy="$key"&limitToLast=`, `orderBy="$key"&limitToLast=NaN`, `orderBy="$key"&startAt=1`, `orderBy="$key"&startAt=null`,
		`orderBy="` + strings.Repeat("a/", 1000) + `a"`, `orderBy="` + strings.Repeat("k", 800) + `"`, `orderBy=$key`, `orderBy=""`, `orderBy="a.b"`, `orderBy="../x"`, `orderBy="$nope"`,
		`orderBy="a"&startAt={}`, `orderBy="a"&startAt=[1]`, `orderBy="a"&startAt="`, `orderBy="a"&equalTo=1&startAt=1`, `orderBy="a"&startAt=1&startAfter=1`,
		`orderBy="a"&startAt=1e999`, `orderBy="a"&startAt=NaN`, "limitToFirst=1", "startAt=1", "equalTo=1", `orderBy="$key"&shallow=true`, `shallow=true&print=pretty`,
		`orderBy="a"`, `orderBy="$value"&startAt="` + strings.Repeat("x", 60<<10) + `"`, `orderBy="p"&equalTo="deep"`, // without an index
	} {
		s.attack(request("GET", "/.json?"+strings.ReplaceAll(query, `"`, "%22"), ""), "400 ")
		if answer, _ := s.do("GET /.json?" + strings.ReplaceAll(query, `"`, "%22")); strings.Contains(strings.ReplaceAll(answer, query, ""), `"deep"`) {
			t.Errorf("%.100s is answered with data: %s", query, answer)
		}
	}
	// A bound may be as long as the head of a request; nothing lies beyond it.
	s.attack(request("GET", "/.json?orderBy=%22$key%22&startAt=%22"+strings.Repeat("x", 60<<10)+"%22", ""), "200 {}")
}

// TestAttackByWideNode: of a node with very many children, keys and windows are
// sent as they are read, and an order without an index is refused before anything
// is read.
func TestAttackByWideNode(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *rest.Options) { o.MaxBody, o.MaxBodies = 16<<20, 64<<20 })
	const parts, size = 5, 2_000
	for i := range parts {
		s.expect(fmt.Sprintf("PATCH /wide.json?print=silent {%s}", manyMembers(fmt.Sprintf("p%d", i), size)), "204")
	}
	got, _ := s.do("GET /wide.json?shallow=true")
	if count := strings.Count(got, ":true"); !strings.HasPrefix(got, "200 ") || count != parts*size {
		t.Errorf("shallow shows %d keys, want %d: %.100s", count, parts*size, got)
	}
	got, _ = s.do("GET /wide.json?orderBy=%22$value%22&limitToFirst=1")
	if !strings.HasPrefix(got, "400 {\n  \"error\" : \"Index not defined") {
		t.Errorf("an order without an index is answered %.200s", got)
	}
	s.expect("GET /wide.json?orderBy=%22$key%22&limitToLast=1", `200 {"p4k999":1}`)
}
