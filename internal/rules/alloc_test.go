//go:build !race

package rules_test

import (
	"testing"

	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// TestAllocations holds what judging takes from the heap: nothing but the paths
// that a rule puts together. The race detector empties pools, so it is not there.
func TestAllocations(t *testing.T) {
	data := decode(t, `{"rooms":{"r":{"open":true}},"members":{"ann":{"since":5}}}`)
	put := func(at, node string) tree.Write { return tree.Put(path(t, at), decode(t, node)) }
	for _, c := range []struct {
		name, rule string
		write      tree.Write
		want       float64
	}{
		{name: "true", rule: `".read": true`},
		{name: "false", rule: `".read": false`},
		{name: "own", rule: `"$uid": {".read": "auth.uid === $uid"}`},
		{name: "two claims", rule: `"$uid": {".read": "auth != null && auth.uid != null && auth.token.level >= 3"}`},
		{name: "now", rule: `".read": "now > 1000 && now + 5 < 5000"`},
		{name: "query", rule: `".read": "query.orderByKey || query.limitToFirst <= 10"`},
		{name: "failure", rule: `".read": "auth.uid + auth.none == 'x'"`},
		{name: "literal look-up", rule: `".read": "root.child('rooms/r/open').val() === true"`},
		{name: "look-up", rule: `".read": "root.child('members').child(auth.uid).exists()"`, want: 1},
		{name: "joined look-up", rule: `".read": "root.child('members/' + auth.uid + '/since').val() == 5"`, want: 2},
		{name: "write", rule: `"$uid": {".write": "auth.uid === $uid"}`, write: put("/ann/age", "5")},
		{name: "validate", rule: `".write": true, "$uid": {".validate": "newData.isNumber() && newData.val() > data.val()"}`, write: put("/ann", "5")},
	} {
		r := compile(t, `{`+c.rule+`}`)
		req := rules.Request{Auth: decode(t, `{"uid":"ann","token":{"level":3}}`), NowMillis: nowMillis, Once: true}
		state, p := rules.InNode(data), path(t, "/ann/name")
		judge := func() {
			if len(c.write.Assignments) > 0 {
				_, _ = r.Write(req, state, c.write)
			} else {
				_, _ = r.Read(req, state, p, rules.Query{})
			}
		}
		if got := testing.AllocsPerRun(100, judge); got > c.want {
			t.Errorf("%s: judging %s makes %v allocations, want %v", c.name, c.rule, got, c.want)
		}
	}
}
