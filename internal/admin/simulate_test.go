package admin_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/admin"
	"github.com/livetree/livetree/internal/auth"
)

func (s *stand) simulate(request admin.SimulationRequest) (result admin.SimulationResult) {
	s.t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.ask("POST", shopRules+"simulate", string(text), &result)
	return result
}

func TestSimulationShowsItsWay(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	s.deploy("{\"rules\":{\n\"rooms\":{\"$room\":{\n\".read\":\"auth.uid == 'ann'\",\n\".write\":\"newData.val().length > 2\"}}}}")
	draft := `{"rules":{".read":true}}`
	for _, test := range []struct {
		request admin.SimulationRequest
		want    string
	}{
		{admin.SimulationRequest{Operation: "read", Path: "/rooms/blue", Auth: []byte(`{"uid":"ann"}`)},
			"true by /rooms/blue .read 3:9; /rooms/blue .read 3:9 true"},
		{admin.SimulationRequest{Operation: "read", Path: "rooms/blue"}, "false; /rooms/blue .read 3:9 false"},
		{admin.SimulationRequest{Operation: "read", Path: "/rooms"}, "false"},
		{admin.SimulationRequest{Operation: "read", Path: "/rooms", Rules: &draft}, "true by / .read 1:19; / .read 1:19 true"},
		{admin.SimulationRequest{Operation: "put", Path: "/rooms/blue", Data: `"long"`}, "true by /rooms/blue .write 4:10; /rooms/blue .write 4:10 true"},
		{admin.SimulationRequest{Operation: "put", Path: "/rooms/blue", Data: `7`}, "false; /rooms/blue .write 4:10 error"},
		{admin.SimulationRequest{Operation: "read", Path: "/", Rules: &draft, Query: map[string]string{"orderBy": `"x"`, "equalTo": "1"}},
			"true by / .read 1:19; / .read 1:19 true; index"},
	} {
		got := s.simulate(test.request)
		text := fmt.Sprint(got.Allowed)
		if by := got.By; by != nil {
			text += fmt.Sprintf(" by %s %s %d:%d", by.Path, by.Kind, by.Line, by.Column)
		}
		for _, step := range got.Trace {
			text += fmt.Sprintf("; %s %s %d:%d %s", step.Path, step.Kind, step.Line, step.Column, step.Outcome)
			if (step.Outcome == "error") != (step.Error != "") || step.Text == "" {
				t.Errorf("a step is %+v", step)
			}
		}
		if got.Index != "" {
			text += "; index"
		}
		if text != test.want {
			t.Errorf("%+v\ncomes to %s\nwant     %s", test.request, text, test.want)
		}
	}
	for _, bad := range []string{
		`{"operation":"read","path":"/a.b"}`, `{"operation":"walk","path":"/"}`, `{"operation":"put","path":"/","data":"{"}`,
		`{"operation":"put","path":"/"}`, `{"operation":"read","path":"/","query":{"limitToFirst":"x"}}`,
		`{"operation":"read","path":"/","rules":"{"}`, `{"operation":"patch","path":"/","data":"3"}`, `3`,
	} {
		if w := s.do("POST", shopRules+"simulate", credential, bad); w.Code != 400 {
			t.Errorf("%s is answered %d %s", bad, w.Code, w.Body)
		}
	}
}

// Random rules, data and requests: what a simulation says, of the rules in force and of
// a draft before that is in force, is what the data port then does.
func TestSimulationIsWhatHappens(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &chance{rand.New(rand.NewPCG(seed, 1))}
	s := newShops(t, nil)
	counts := map[bool]int{}
	for i := range 500 {
		if i%10 == 0 {
			if w := s.do("PUT", "/v1/databases/shop/data/.json", credential, c.data(3)); w.Code != 200 {
				t.Fatalf("PUT = %d %s", w.Code, w.Body)
			}
		}
		document := `{"rules":` + c.rules(3) + `}`
		request, claims := c.request()
		before := s.do("GET", "/v1/databases/shop/data/.json?format=export", credential, "").Body.String()
		request.Rules = &document
		draft := s.simulate(request)
		s.tryCase(document, draft.Case)
		s.deploy(document)
		request.Rules = nil
		deployed := s.simulate(request)
		if after := s.do("GET", "/v1/databases/shop/data/.json?format=export", credential, "").Body.String(); after != before {
			t.Fatalf("a simulation has changed %s into %s", before, after)
		}
		real := s.real(request, claims)
		counts[real]++
		if draft.Allowed != real || deployed.Allowed != real {
			t.Fatalf("rules %s\ndata %s\nrequest %+v\nis allowed %v by the draft, %v by the rules in force, and really %v",
				document, before, request, draft.Allowed, deployed.Allowed, real)
		}
	}
	if counts[true] < 50 || counts[false] < 50 {
		t.Errorf("of 500 requests %d are allowed and %d denied: too few to tell", counts[true], counts[false])
	}
}

// TestCasesHaveWhatIncrementsRead: the sum that an increment comes to rests on the data.
func TestCasesHaveWhatIncrementsRead(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	if w := s.do("PUT", "/v1/databases/shop/data/.json", credential, `{"n":2,"m":5}`); w.Code != 200 {
		t.Fatalf("PUT = %d %s", w.Code, w.Body)
	}
	document := `{"rules":{"n":{".write":"newData.val() < 3"}}}`
	got := s.simulate(admin.SimulationRequest{Rules: &document, Operation: "put", Path: "/n", Data: `{".sv":{"increment":1}}`})
	if got.Allowed || !strings.Contains(got.Case, "data\n{\"n\":2}\n") {
		t.Errorf("it is allowed %v, with the case\n%s", got.Allowed, got.Case)
	}
	s.tryCase(document, got.Case)
}

// tryCase expects the case of a simulation to pass, by the same rules and with nothing but what is
// in it.
func (s *stand) tryCase(document, text string) {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"rules": document, "cases": text})
	if err != nil {
		s.t.Fatal(err)
	}
	var got admin.RulesTest
	if s.ask("POST", shopRules+"test", string(body), &got); got.Passed != 1 || got.Failed != 0 {
		s.t.Fatalf("rules %s\ncase\n%s\ncomes to %+v", document, text, got)
	}
}

// real makes a request at the data port, with a token.
func (s *stand) real(request admin.SimulationRequest, claims map[string]any) (allowed bool) {
	s.t.Helper()
	values := url.Values{"ns": {"shop"}}
	if claims != nil {
		token, err := auth.Mint(shopSecret, auth.Claims{Data: claims})
		if err != nil {
			s.t.Fatal(err)
		}
		values.Set("auth", token)
	}
	for name, value := range request.Query {
		values.Set(name, value)
	}
	method := strings.ToUpper(request.Operation)
	if method == "READ" {
		method = "GET"
	}
	w := httptest.NewRecorder()
	s.front.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+request.Path+".json?"+values.Encode(), strings.NewReader(request.Data)))
	if w.Code != 200 && (w.Code != 401 && w.Code != 403 || !strings.Contains(w.Body.String(), "Permission denied")) {
		s.t.Fatalf("%s %s %s = %d %s", method, request.Path, request.Data, w.Code, w.Body)
	}
	return w.Code == 200
}

// chance makes up rules, data and requests.
type chance struct{ *rand.Rand }

func (c *chance) of(list ...string) string { return list[c.IntN(len(list))] }

func (c *chance) data(depth int) string {
	if depth == 0 || c.IntN(4) == 0 {
		return c.of("1", "7", "true", "false", `"ann"`, `"long text"`, "2.5")
	}
	var parts []string
	for _, key := range []string{"a", "b", "c"} {
		if c.IntN(3) > 0 {
			parts = append(parts, fmt.Sprintf("%q:%s", key, c.data(depth-1)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (c *chance) rules(depth int) string {
	var parts []string
	for kind, chance := range map[string]int{".read": 2, ".write": 2, ".validate": 5} {
		if c.IntN(chance) == 0 {
			parts = append(parts, fmt.Sprintf("%q:%q", kind, c.expression(kind)))
		}
	}
	if depth > 0 {
		for _, key := range []string{"a", "b", fmt.Sprintf("$k%d", depth)} {
			if c.IntN(3) > 0 {
				parts = append(parts, fmt.Sprintf("%q:%s", key, c.rules(depth-1)))
			}
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (c *chance) expression(kind string) string {
	list := []string{
		"true", "false", "auth != null", "auth == null", "auth.uid == 'ann'", "auth.level > 2", "data.exists()", "!data.exists()",
		"data.val() == 'ann'", "data.val() > 1", "data.val().length > 3", "root.child('a').exists()", "root.child('b/a').val() == 7",
		"data.parent().child('c').isNumber()", "now > 0", "auth.tags.contains('x')", "data.hasChildren()",
	}
	if kind == ".read" {
		list = append(list, "query.limitToFirst <= 3", "query.orderByKey")
	} else {
		list = append(list, "newData.exists()", "newData.isNumber()", "newData.hasChildren(['a'])", "newData.val() > data.val()",
			"newData.parent().child('a').exists()", "newData.val().length < 6", "newData.val() == auth.uid")
	}
	text := list[c.IntN(len(list))]
	switch c.IntN(5) {
	case 0:
		text += " && " + list[c.IntN(len(list))]
	case 1:
		text += " || " + list[c.IntN(len(list))]
	}
	return text
}

func (c *chance) request() (request admin.SimulationRequest, claims map[string]any) {
	request.Operation = c.of("read", "put", "patch", "post", "delete")
	request.Path = c.of("/", "/a", "/b", "/c", "/a/b", "/b/a", "/a/b/c", "/c/a/b", "/a/b/c/a")
	switch request.Operation {
	case "read":
		if c.IntN(3) == 0 {
			request.Query = map[string]string{"orderBy": `"$key"`, "limitToFirst": c.of("1", "5")}
		}
	case "patch":
		request.Data = fmt.Sprintf(`{"a":%s,"b/c":%s}`, c.of("null", c.data(1)), c.of(`{".sv":"timestamp"}`, c.data(0)))
	case "put", "post":
		request.Data = c.of(`{".sv":{"increment":1}}`, c.data(2), c.data(1), c.data(0))
	}
	if c.IntN(3) > 0 {
		claims = map[string]any{"uid": c.of("ann", "eve"), "level": c.IntN(4), "tags": c.of("x", "yy")}
		request.Auth, _ = json.Marshal(claims)
	}
	return request, claims
}

// TestSimulationsOfOneKeepNobodyElse: while a database has requests simulated, its holders wait,
// and nobody else.
func TestSimulationsOfOneKeepNobodyElse(t *testing.T) {
	t.Parallel()
	s := newShops(t, nil)
	bank := s.signIn(`{"credential":"` + bankSecret + `","database":"bank"}`).Session
	shop := signInShop(s)
	run := func(name, bearer string) int {
		return s.do("POST", "/v1/databases/"+name+"/rules/simulate", bearer, `{"operation":"read","path":"/"}`).Code
	}
	var leave func()
	for range 2 {
		if code := run("shop", shop); code != 200 {
			t.Fatalf("a simulation of the shop is answered %d", code)
		}
		var ok bool
		if leave, ok = s.handler.HoldSimulation("shop"); !ok {
			t.Fatal("nothing can be simulated")
		}
	}
	if code := run("shop", shop); code != 503 {
		t.Errorf("a third simulation of the shop is answered %d, want 503", code)
	}
	for who, code := range map[string]int{"the bank": run("bank", bank), "the operator": run("shop", signInOperator(s))} {
		if code != 200 {
			t.Errorf("a simulation of %s is answered %d", who, code)
		}
	}
	leave()
	if code := run("shop", shop); code != 200 {
		t.Errorf("after one was over, the shop is answered %d", code)
	}
}
