package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// weighedData counts the bytes of the leaves that it returns.
type weighedData struct {
	rules.Data
	bytes int
}

func (d *weighedData) Look(p tree.Path) (leaf, priority tree.Leaf, err error) {
	leaf, priority, err = d.Data.Look(p)
	d.bytes += len(leaf.Text())
	return leaf, priority, err
}

// posts is a PATCH that puts so many posts.
func posts(t testing.TB, n int) tree.Write {
	at := path(t, "/posts")
	w := tree.Write{At: at, Patch: true}
	for i := range n {
		w.Assignments = append(w.Assignments, tree.Assignment{Path: at.Child(fmt.Sprintf("p%d", i)), Node: decode(t, `{"n":1}`)})
	}
	return w
}

// TestLongStringIsReadOnce: one PATCH asks 1,500 times for the same long string. Tests
// of its type never read it. A rule that needs it reads it once, and what is done with it
// is counted for the whole request.
func TestLongStringIsReadOnce(t *testing.T) {
	const mib = 1 << 20
	long := strings.Repeat("a", 10*mib)
	users := decode(t, `{"users":{"ann":{"name":"`+long+`"}}}`)
	name := "root.child('users').child(auth.uid).child('name')"
	for _, c := range []struct {
		rule    string
		most    int
		allowed bool
	}{
		{name + ".isString()", 0, true},
		{"!" + name + ".isNumber() && !" + name + ".isBoolean()", 0, true},
		{name + ".exists() && !" + name + ".hasChildren() && !" + name + ".hasChildren(['x']) && !" + name + ".hasChild('x')", 0, true},
		{name + ".val() != null && null !== " + name + ".val() && !(" + name + ".val() == null)", 0, true},
		{name + ".getPriority() == null && " + name + ".getPriority() != 1", 0, true},
		{name + ".val() != 'Ann'", 10 * mib, true},
		{name + ".val() != null && " + name + ".val() == " + name + ".val()", 10 * mib, false},
		{name + ".val() >= " + name + ".val()", 10 * mib, false},
		{name + ".val().length > 3", 10 * mib, false},
		{name + ".val().matches(/a/)", 10 * mib, false},
		{name + ".val().contains('a')", 10 * mib, false},
		{name + ".val().toUpperCase() != 'Ann'", 10 * mib, false},
		{name + ".val().replace('b', 'c') != 'Ann'", 10 * mib, false},
		{name + ".val() + 'b' != 'Ann'", 10 * mib, false},
		{"!root.child(" + name + ".val()).exists()", 10 * mib, false},
	} {
		r := compile(t, `{"posts": {"$p": {".write": true, ".validate": "`+c.rule+`"}}}`)
		data := &weighedData{Data: rules.InNode(users)}
		req := rules.Request{Auth: decode(t, `{"uid":"ann"}`)}.WithSteps(2_000_000) // a tenth of the default
		d, err := r.Write(req, data, posts(t, 1500))
		if err != nil || d.Allowed != c.allowed || d.OverBudget == c.allowed {
			t.Errorf("%s: allowed %v, over budget %v, %v, want allowed %v", c.rule, d.Allowed, d.OverBudget, err, c.allowed)
		}
		if data.bytes > c.most {
			t.Errorf("%s: %d bytes were read, want at most %d", c.rule, data.bytes, c.most)
		}
	}
}

// TestHonestPatchIsWithinBudget: posts that each look at several places of their own.
func TestHonestPatchIsWithinBudget(t *testing.T) {
	r := compile(t, `{"posts": {"$p": {
		".write": "!data.exists() && root.child('members').child(auth.uid).val() === true",
		".validate": "root.child('rooms').child($p).child('open').val() !== false && !root.child('banned').hasChild($p) && newData.hasChildren(['n'])",
		"n": {".validate": "newData.isNumber() && newData.val() >= 0 && !root.child('numbers/' + $p).exists()"}}}}`)
	data := rules.InNode(decode(t, `{"members":{"ann":true}}`))
	for _, n := range []int{1500, 20_000} {
		d, err := r.Write(rules.Request{Auth: decode(t, `{"uid":"ann"}`)}, data, posts(t, n))
		if err != nil || !d.Allowed || d.OverBudget {
			t.Errorf("%d posts: allowed %v, over budget %v after %d steps, %v", n, d.Allowed, d.OverBudget, d.Steps, err)
		}
	}
}

// TestWhatIsReadIsCharged: many long strings are not all read, and what does not fit
// into the memory of a judge is charged each time.
func TestWhatIsReadIsCharged(t *testing.T) {
	const mib = 1 << 20
	long := `"` + strings.Repeat("a", mib) + `"`
	users := make([]string, 40)
	for i := range users {
		users[i] = fmt.Sprintf(`"p%d":%s`, i, long)
	}
	state := rules.InNode(decode(t, `{"names":{`+strings.Join(users, ",")+`}}`))
	r := compile(t, `{"posts": {"$p": {".write": true, ".validate": "root.child('names').child($p).val() != ''"}}}`)
	data := &weighedData{Data: state}
	d, err := r.Write(rules.Request{}.WithSteps(20*48*1024), data, posts(t, len(users)))
	if err != nil || d.Allowed || !d.OverBudget || data.bytes > 21*mib {
		t.Errorf("40 strings of 1 MiB: allowed %v, over budget %v, %v, %d bytes read, want 20 of them", d.Allowed, d.OverBudget, err, data.bytes)
	}
	// In the order of the rule the last ones do not fit, for each post again.
	all := "true"
	for i := range 20 {
		all += fmt.Sprintf(" && root.child('names/p%d').val() != ''", i)
	}
	r = compile(t, `{"posts": {"$p": {".write": true, ".validate": "`+all+`"}}}`)
	data = &weighedData{Data: state}
	d, err = r.Write(rules.Request{}.WithSteps(60*48*1024), data, posts(t, len(users)))
	if err != nil || d.Allowed || !d.OverBudget || data.bytes > 61*mib {
		t.Errorf("20 strings, 40 times: allowed %v, over budget %v, %v, %d bytes read, want 60 MiB", d.Allowed, d.OverBudget, err, data.bytes)
	}
}

// TestManyDeletes: what is left of a list is worked out once, not for each deletion.
func TestManyDeletes(t *testing.T) {
	const n = 1500
	var members []string
	w := tree.Write{Patch: true}
	for i := range n {
		members = append(members, fmt.Sprintf(`"k%d":%d`, i, i))
		w.Assignments = append(w.Assignments, tree.Assignment{Path: path(t, fmt.Sprintf("/list/k%d", i))})
	}
	c := &countingData{Data: rules.InNode(decode(t, `{"list":{`+strings.Join(members, ",")+`}}`))}
	r := compile(t, `{"list": {"$k": {".write": "!newData.parent().exists()"}}}`)
	d, err := r.Write(rules.Request{}, c, w)
	if err != nil || !d.Allowed || c.asked > 4*n {
		t.Errorf("%d deletes: allowed %v, %v, after %d questions, want at most %d", n, d.Allowed, err, c.asked, 4*n)
	}
}

// TestHeavyJudgement: one that takes more steps than it is given has no decision, and
// one that nobody waits for has none either.
func TestHeavyJudgement(t *testing.T) {
	r := compile(t, `{".read": "data.child('x').exists()", "posts": {"$p": {".write": "!data.exists()"}}}`)
	data := rules.InNode(tree.Node{})
	d, err := r.Write(rules.Request{MaxSteps: 20_000}, data, posts(t, 1500))
	if !errors.Is(err, rules.ErrHeavy) || d.Allowed || d.OverBudget || d.Steps < 20_000 {
		t.Errorf("a heavy write: %+v, %v, want ErrHeavy", d, err)
	}
	if d, err = r.Write(rules.Request{MaxSteps: 20_000}, data, posts(t, 15)); err != nil || !d.Allowed {
		t.Errorf("a light write: %+v, %v, want allowed", d, err)
	}
	if d, err = r.Read(rules.Request{MaxSteps: 10}, data, tree.Path{}, rules.Query{}); !errors.Is(err, rules.ErrHeavy) || d.Allowed {
		t.Errorf("a heavy read: %+v, %v, want ErrHeavy", d, err)
	}
	gone := make(chan struct{})
	close(gone)
	if d, err = r.Write(rules.Request{Done: gone}, data, posts(t, 1500)); !errors.Is(err, rules.ErrUnwanted) || d.Allowed {
		t.Errorf("a write of a client that has gone: %+v, %v, want ErrUnwanted", d, err)
	}
}

// TestWayThroughTheBodyIsCharged: there are far more rules than nodes.
func TestWayThroughTheBodyIsCharged(t *testing.T) {
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf(`"n%d":{".validate":"newData.isNumber()"}`, i))
	}
	r := compile(t, `{".write": true, "$a": {"x": {".validate": "newData.isNumber()"}, `+strings.Join(names, ",")+`}}`)
	const body = `{"a":{"x":1},"b":{"x":1}}`
	d, err := r.Write(rules.Request{}.WithSteps(3000), rules.InNode(tree.Node{}), tree.Put(tree.Path{}, decode(t, body)))
	if err != nil || d.Allowed || !d.OverBudget || d.Rule != (rules.DecidingRule{}) {
		t.Errorf("%s by 2,001 rules each: %+v, %v, want over budget, by no rule", body, d, err)
	}
}

// TestShortTextsAreCharged: what is done with a stored text below 1 KiB costs what a part of that does,
// for each node that asks.
func TestShortTextsAreCharged(t *testing.T) {
	const nodes, bytes = 100, 1000
	data := rules.InNode(decode(t, `{"s":"`+strings.Repeat("é", bytes/2)+`"}`))
	steps := func(rule string) int {
		r := compile(t, `{"posts": {"$p": {".write": true, ".validate": "`+rule+`"}}}`)
		d, err := r.Write(rules.Request{}, data, posts(t, nodes))
		if err != nil || !d.Allowed {
			t.Fatalf("%s: %v, %v", rule, d.Allowed, err)
		}
		return d.Steps
	}
	const s = "root.child('s').val()"
	base := steps(s + " != 'a'")
	for rule, weight := range map[string]int{
		s + ".length > 0": 32, "!" + s + ".contains('a')": 32, s + " > 'a'": 0, s + " >= " + s: 32,
		s + " + 'b' != 'a'": 64, "!root.child(" + s + ").exists()": 128, s + ".toLowerCase() != 'a'": 200, s + ".toUpperCase() != 'a'": 200,
	} {
		if got, want := steps(rule)-base, nodes*bytes*weight>>10; got < want*9/10 {
			t.Errorf("%s takes %d steps beside reading the text, want about %d", rule, got, want)
		}
	}
}
