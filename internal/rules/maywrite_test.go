package rules_test

import (
	"testing"

	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

func TestMayWrite(t *testing.T) {
	const document = `{"rules": {
		"closed": {".write": false, "open": {".write": true}, "all": {"$x": {".write": "$x == 'a'"}}},
		"mine": {"$uid": {".write": "auth.uid == $uid"}},
		"shape": {".write": "newData.isString()"},
		"signed": {".write": "auth != null && newData.exists()"},
		"either": {".write": "newData.child('key').val() == 'k' || auth != null"},
		"locked": {".write": "!root.child('lock').exists()"},
		"broken": {".write": "auth.uid.length > 1"},
		"never": {".write": false, "deep": {"$x": {".write": false}}}
	}}`
	ruleset, err := rules.Compile(document)
	if err != nil {
		t.Fatal(err)
	}
	state, err := tree.DecodeBytes([]byte(`{"lock":true}`), tree.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ann, err := tree.DecodeClaims([]byte(`{"uid":"ann"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path  string
		auth  tree.Node
		below bool
		want  bool
	}{
		{"/", tree.Node{}, false, false},
		{"/", tree.Node{}, true, true},
		{"/other", tree.Node{}, true, false},
		{"/closed", ann, false, false},
		{"/closed", ann, true, true},
		{"/closed/open", tree.Node{}, false, true},
		{"/closed/all", ann, false, false},
		{"/closed/all", ann, true, true},
		{"/closed/all/b", ann, false, false},
		{"/closed/all/a", ann, false, true},
		{"/never", ann, true, false},
		{"/never/deep/x", ann, true, false},
		{"/mine/ann", tree.Node{}, false, false},
		{"/mine/ann", ann, false, true},
		{"/mine/ben", ann, true, false},
		{"/shape", tree.Node{}, false, true},
		{"/shape/below", tree.Node{}, false, true},
		{"/signed", tree.Node{}, false, false}, // whatever the body is
		{"/signed", ann, false, true},
		{"/either", tree.Node{}, false, true},
		{"/locked", ann, false, false},
		{"/broken", tree.Node{}, false, false},
	} {
		p, err := tree.ParsePath(test.path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ruleset.MayWrite(rules.Request{Auth: test.auth}, rules.InNode(state), p, test.below)
		if got != test.want || err != nil {
			t.Errorf("MayWrite(%s, below %v, auth %s) = %v, %v, want %v", test.path, test.below, tree.AppendJSON(nil, test.auth, tree.Plain), got, err, test.want)
		}
	}
}
