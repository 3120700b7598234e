package rest_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestManyIncrementsAreJudgedTogether: whether the sums of a PATCH may be told is one question to the
// rules, however many increments there are. Each of them has the whole budget of a request otherwise.
func TestManyIncrementsAreJudgedTogether(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.expect("PUT /.settings/rules.json?auth="+secret+` {"rules": {"c": {".write": true, ".read": "root.child('long').val().length > 0"}, "d": {".write": true, "open": {"$k": {".read": true}}, "shut": {"$k": {".read": "$k !== 'k7'"}}}}}`, `200 {"status":"ok"}`)
	s.expect("PUT /long.json?print=silent&auth="+secret+` "`+strings.Repeat("x", 100<<10)+`"`, "204")
	patch := func(keys string, n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`%q:{".sv":{"increment":1}}`, fmt.Sprintf(keys, i)))
		}
		return " {" + strings.Join(list, ",") + "}"
	}
	for _, c := range []struct {
		line, want string
	}{
		{"PATCH /c.json" + patch("k%d", 1000), `200 {"k0":1,`},
		{"PATCH /d.json" + patch("open/k%d", 1000), `200 {"open/k0":1,`},
		{"PATCH /d.json" + patch("shut/k%d", 7), `200 {"shut/k0":1,`},
		{"PATCH /d.json" + patch("shut/k%d", 8), `200 null`},
	} {
		before := s.metrics.Judgements.Counts().Count
		if got, _ := s.do(c.line); !strings.HasPrefix(got, c.want) {
			t.Errorf("%.60s is answered %.60s, want %s", c.line, got, c.want)
		}
		if judged := s.metrics.Judgements.Counts().Count - before; judged != 2 {
			t.Errorf("%.60s is judged %d times, want once as a write and once for its answer", c.line, judged)
		}
	}
}
