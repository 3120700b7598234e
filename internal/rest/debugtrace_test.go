package rest_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/auth"
)

// TestTraceTellsNoSums: a client with a debugging token is shown what it has sent, and not what
// increments come to, which it may not be allowed to read.
func TestTraceTellsNoSums(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	token, err := auth.Mint(secret, auth.Claims{Data: map[string]any{"uid": "ann"}, Debug: true, Simulate: true})
	if err != nil {
		t.Fatal(err)
	}
	s.expect("PUT /.settings/rules.json?auth="+secret+` {"rules": {"drop": {".write": true}}}`, `200 {"status":"ok"}`,
		"PUT /.json?print=silent&auth="+secret+` {"drop": {"n": 4711}, "shut": {"n": 4711}}`, "204")
	for _, c := range []struct{ line, status, shown string }{
		{`PUT /drop/n.json {".sv": {"increment": 1}}`, "200", `write {".sv":{"increment":1}} to`},
		{`PUT /shut/n.json {".sv": {"increment": 0}}`, "403", `write {".sv":{"increment":0}} to`},
		{`PUT /shut.json {"n": {".sv": {"increment": 0}}}`, "403", `write {"n":{".sv":{"increment":0}}} to`},
		{`PUT /shut/.priority.json {".sv": {"increment": 0}}`, "403", `write {".sv":{"increment":0}} to`},
		{`PATCH /shut.json {"n": {".sv": {"increment": 0}}}`, "403", "write Sparse data to"},
		{`PUT /drop/n.json 5`, "200", "write 5 to"},
	} {
		got, header := s.do(c.line, "Authorization: Bearer "+token)
		trace := header.Get("X-Service-Auth-Debug")
		if !strings.HasPrefix(got, c.status) || !strings.Contains(trace, c.shown) || strings.Contains(trace+got, "471") {
			t.Errorf("%s is answered %s, with the trace %s, want %s and %s", c.line, got, trace, c.status, c.shown)
		}
	}
}
