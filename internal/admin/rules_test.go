package admin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/admin"
)

// ask makes a request with the credential, and reads the answer into a value.
func (s *stand) ask(method, path, body string, into any) {
	s.t.Helper()
	w := s.do(method, path, credential, body)
	if w.Code >= 300 || json.Unmarshal(w.Body.Bytes(), into) != nil {
		s.t.Fatalf("%s %s %.200s = %d %s", method, path, body, w.Code, w.Body)
	}
}

const (
	rulesPath = "/v1/databases/shop/data/.settings/rules.json"
	shopRules = "/v1/databases/shop/rules/"
)

func (s *stand) deploy(document string) {
	s.t.Helper()
	if w := s.do("PUT", rulesPath, credential, document); w.Code != 200 {
		s.t.Fatalf("PUT %s = %d %s", document, w.Code, w.Body)
	}
}

// etagHeader is how the server spells it, which is not the canonical form.
var etagHeader = "ETag"

func TestRulesAreReplacedOnACondition(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	const one, two = `{"rules":{".read":"auth != null"}} // one`, `{"rules":{}}`
	s.deploy(one)
	tag := s.do("GET", rulesPath, credential, "", "X-Firebase-ETag", "true").Header()[etagHeader]
	if len(tag) != 1 {
		t.Fatalf("the rules document has the ETag %q", tag)
	}
	if w := s.do("PUT", rulesPath, credential, two, "If-Match", "another"); w.Code != 412 || w.Body.String() != one || w.Header()[etagHeader][0] != tag[0] {
		t.Errorf("a wrong ETag is answered %d %s", w.Code, w.Body)
	}
	w := s.do("PUT", rulesPath, credential, two, "If-Match", tag[0], "X-Firebase-ETag", "true")
	if w.Code != 200 || w.Header()[etagHeader][0] == tag[0] {
		t.Errorf("the right ETag is answered %d %s", w.Code, w.Body)
	}
	if w := s.do("PUT", rulesPath, credential, one, "If-Match", tag[0]); w.Code != 412 || w.Body.String() != two {
		t.Errorf("an old ETag is answered %d %s", w.Code, w.Body)
	}
	if w := s.do("GET", rulesPath, credential, "", "If-Match", tag[0]); w.Code != 400 {
		t.Errorf("GET with if-match is answered %d", w.Code)
	}
}

func TestRulesAreChecked(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	s.deploy(`{"rules":{"items":{".indexOn":["a","b/c"]}}}`)
	var check admin.RulesCheck
	s.ask("POST", shopRules+"check", "{\"rules\":{\n \".read\": \"auth.\",\n \".write\": \"1\"}}", &check)
	if len(check.Problems) != 2 || check.Problems[0].Line != 2 || check.Problems[1].Line != 3 || check.Problems[1].Message == "" {
		t.Errorf("what is wrong: %+v", check.Problems)
	}
	check = admin.RulesCheck{}
	s.ask("POST", shopRules+"check", `{"rules":{".read":true,"items":{".indexOn":["a","d"],"$x":{".indexOn":".value"}}}}`, &check)
	if got := fmt.Sprint(check.Indexes); got != "{[{/items d} {/items/$ .value}] [{/items b/c}]}" {
		t.Errorf("the indexes change by %s", got)
	}
	if !check.Open || len(check.Warnings) != 1 || check.Warnings[0].Line != 1 || len(check.Problems) != 0 {
		t.Errorf("an open document: %+v", check)
	}
	if w := s.do("POST", shopRules+"check", credential, strings.Repeat("x", 3<<20)); w.Code != 413 {
		t.Errorf("a document of 3 MB is answered %d", w.Code)
	}
}

func TestRulesHistory(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	list := func() (ids string, versions []admin.RulesVersion) {
		var answer struct{ Versions []admin.RulesVersion }
		s.ask("GET", shopRules+"history", "", &answer)
		for _, v := range answer.Versions {
			ids += fmt.Sprint(v.ID, " ")
		}
		return ids, answer.Versions
	}
	if ids, _ := list(); ids != "" {
		t.Errorf("before any rules the history is %s", ids)
	}
	for i := range 60 {
		s.deploy(fmt.Sprintf(`{"rules":{"v%d":{}}}`, i+1))
	}
	s.deploy(`{"rules":{"v60":{}}}`) // no other than before
	ids, versions := list()
	if len(versions) != 50 || versions[0].ID != 60 || versions[49].ID != 11 {
		t.Errorf("after 60 documents the history is %s", ids)
	}
	if v := versions[0]; v.By != "the operator's credential" || v.Bytes != 20 || v.Time == nil {
		t.Errorf("a version is %+v", v)
	}
	var one struct{ Text string }
	s.ask("GET", shopRules+"history/42", "", &one)
	if one.Text != `{"rules":{"v42":{}}}` {
		t.Errorf("the version 42 is %s", one.Text)
	}
	for _, id := range []string{"10", "61", "x"} {
		if w := s.do("GET", shopRules+"history/"+id, credential, ""); w.Code != 404 {
			t.Errorf("the version %s is answered %d", id, w.Code)
		}
	}
	for i := range 7 { // of 200 kB each: five fit into a megabyte
		s.deploy(fmt.Sprintf("{\"rules\":{}} // %d %s", i, strings.Repeat("x", 200_000)))
	}
	if ids, versions = list(); len(versions) != 5 {
		t.Errorf("the history holds %d documents of 200 kB: %s", len(versions), ids)
	}
}

func TestRulesAreTested(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	test := func(document, cases string) (result admin.RulesTest) {
		text, err := json.Marshal(map[string]string{"rules": document, "cases": cases})
		if err != nil {
			t.Fatal(err)
		}
		s.ask("POST", shopRules+"test", string(text), &result)
		return result
	}
	got := test(`{"rules":{".read":"auth != null","a":{".write":false}}}`,
		"# anybody\nread /a\n----\ndenied\n\n# ann\nread /a as={\"uid\":\"ann\"}\n----\ndenied\n")
	if got.Passed != 1 || got.Failed != 1 || len(got.Results) != 2 || got.Results[1].Got != "allowed: / .read (1:19)" || len(got.Results[1].Tried) != 1 {
		t.Errorf("the cases come to %+v", got)
	}
	if len(got.Coverage) != 2 || got.Coverage[0].True != 1 || got.Coverage[0].False != 1 || got.Summary == "" {
		t.Errorf("the coverage is %+v, %s", got.Coverage, got.Summary)
	}
	got = test(`{"rules":{".read":"auth."}}`, "nonsense\n")
	if len(got.Problems) != 2 || got.Problems[0].In != "rules" || got.Problems[1].In != "cases" {
		t.Errorf("what is wrong: %+v", got.Problems)
	}
}

// TestCasesOfOneKeepNobodyElse: while cases of a database run, its holders wait, and nobody else.
func TestCasesOfOneKeepNobodyElse(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	bank := s.signIn(`{"credential":"` + bankSecret + `","database":"bank"}`).Session
	leave, ok := s.handler.HoldCases("shop")
	if !ok {
		t.Fatal("no cases can be run")
	}
	run := func(name, bearer string) int {
		return s.do("POST", "/v1/databases/"+name+"/rules/test", bearer, `{"rules":"{\"rules\":{}}","cases":"read /\n----\ndenied"}`).Code
	}
	shop := signInShop(s)
	if code := run("shop", shop); code != 503 {
		t.Errorf("a second run of the shop is answered %d, want 503", code)
	}
	for who, code := range map[string]int{"the bank": run("bank", bank), "the operator": run("shop", signInOperator(s)), "the credential": run("shop", credential)} {
		if code != 200 {
			t.Errorf("a run of %s is answered %d", who, code)
		}
	}
	leave()
	if code := run("shop", shop); code != 200 {
		t.Errorf("a run of the shop after the first is answered %d", code)
	}
}
