package rules_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/model"
	"github.com/livetree/livetree/internal/rules"
	"github.com/livetree/livetree/internal/tree"
)

// FuzzRulesParse: any text is compiled, or refused with problems that have a
// place in it; what was compiled is printed as JSON that means the same.
func FuzzRulesParse(f *testing.F) {
	for _, seed := range []string{
		`{"rules":{".read":true,".write":"auth != null"}}`,
		"{\"rules\":{\"users\":{\"$uid\":{\".read\":\"$uid === auth.uid\",\".validate\":\"newData.hasChildren(['a'])\",\n//c\n}}}}",
		`{"rules":{"a":{".indexOn":["x","y/z",".value",],},/* c */}}`,
		`{"rules":{".read":"'\u00e9\"'.matches(/^[a-z]+$/i) ? now > 1e3 : !data.parent().child('x' + $y).exists()"}}`,
		`{"rules":{".read":"((((((","$a":{},"$b":{},".x":1}}`, `{"rules":`, "{\"rules\":{\"\xff\":{}}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		r, err := rules.Compile(source)
		if err != nil {
			checkProblems(t, source, err)
			return
		}
		strict := r.Strict()
		if !json.Valid(strict) {
			t.Fatalf("Strict is not JSON: %s", strict)
		}
		again, err := rules.Compile(string(strict))
		if err != nil {
			if len(strict) > rules.MaxBytes {
				return // escapes can make it longer than the source
			}
			t.Fatalf("Strict does not compile: %v\n%s", err, strict)
		}
		if got := again.Strict(); string(got) != string(strict) {
			t.Errorf("Strict of Strict is\n%s\nwant\n%s", got, strict)
		}
	})
}

func checkProblems(t *testing.T, source string, err error) {
	problems, ok := errors.AsType[rules.Problems](err)
	if !ok || len(problems) == 0 || len(problems) > 50 {
		t.Fatalf("Compile: %v, want 1 to 50 problems", err)
	}
	lines := strings.Split(source, "\n")
	last := problems[0]
	for _, p := range problems {
		if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len(lines[p.Line-1])+1 {
			t.Errorf("the problem %s is not in the text %q", p, source)
		}
		if p.Line < last.Line || p.Line == last.Line && p.Column < last.Column {
			t.Errorf("the problem %s comes after %s", p, last)
		}
		last = p
	}
	_ = problems.Explain(source)
}

// FuzzRulesEval: no expression over any data makes a judgement panic, run on, or
// come out differently the second time; and with random rules the outcome is
// that of the oracle.
func FuzzRulesEval(f *testing.F) {
	f.Add(uint64(1), "newData.val() + data.val() > 1", `{"a":1}`, `2`)
	f.Add(uint64(2), "auth.uid.replace('', auth.uid).length > $x.length", `{"a":"b"}`, `{"a":{"b":null}}`)
	f.Add(uint64(3), "newData.parent().hasChildren([$x, 'b']) || root.child(data.val()).exists()", `{"a":"b","b":1}`, `"a"`)
	f.Add(uint64(4), "newData.val().matches(/^(a|b)*c{1,3}$/i) && now % 7 / 0 != 1", `null`, `"abcc"`)
	f.Fuzz(func(t *testing.T, seed uint64, expression, data, body string) {
		fuzzExpression(t, expression, data, body)
		m := maker{rand.New(rand.NewPCG(seed, 1))}
		root, text := m.document(2, nil)
		s := &subject{maker: m, t: t, root: root, ruleset: compile(t, text), text: text, before: model.New()}
		if err := s.before.Put(nil, []byte(m.body(3)), nowMillis); err != nil {
			t.Fatal(err)
		}
		s.auth = pick(m.Rand, "null", `{"uid":"a","n":1}`)
		s.read()
		s.write()
	})
}

func fuzzExpression(t *testing.T, expression, data, body string) {
	rule := quoted(expression)
	r, err := rules.Compile(`{"rules":{"$x":{".write":` + rule + `,".validate":` + rule + `,"$y":{".validate":` + rule + `}}}}`)
	before, err2 := tree.DecodeBytes([]byte(data), tree.DecodeOptions{})
	node, err3 := tree.DecodeBytes([]byte(body), tree.DecodeOptions{Depth: 1})
	if err != nil || err2 != nil || err3 != nil || node.HasPlaceholders() || before.HasPlaceholders() {
		return
	}
	req := rules.Request{Auth: before, NowMillis: nowMillis, Trace: true}
	w := tree.Put(path(t, "/a"), node)
	first, err := r.Write(req, rules.InNode(before), w)
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.Write(req, rules.InNode(before), w)
	if err != nil || first.Allowed != second.Allowed || first.Trace != second.Trace {
		t.Errorf("%s: %v, then %v, %v", expression, first, second, err)
	}
}
