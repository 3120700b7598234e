package rest_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/fault"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

const secret = "0123456789012345678901234567890123456789"

// A server is a handler behind real HTTPS, over a store in memory.
type server struct {
	*httptest.Server
	t       testing.TB
	metrics *state.Metrics // of its databases; not of every server
}

func serve(t testing.TB, change func(*rest.Options)) *server { return serveOver(t, nil, change) }

// serveOver is serve with another catalog, if it is not nil, of what serve has made.
func serveOver(t testing.TB, other func(*store.Store) *catalog.Catalog, change func(*rest.Options)) *server {
	t.Helper()
	s, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := auth.New(auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	metrics := &state.Metrics{}
	c := catalog.New(s, engine.Options{
		Metrics: metrics, Clock: state.NewClock(time.Now, rand.Reader, s.LastMillis()), Verifier: verifier, Deadline: patience})
	for _, name := range []string{"default", "closed"} {
		d, err := c.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.SetSecrets(context.Background(), secret); err != nil {
			t.Fatal(err)
		}
		if name == "default" {
			if _, err := d.SetRules(context.Background(), state.OpenRules); err != nil {
				t.Fatal(err)
			}
		}
	}
	if other != nil {
		c.Close()
		c = other(s)
	}
	opts := rest.Options{
		Catalog: c, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Hosts: hosts.Hosts{DefaultDatabase: "default"}, MaxBody: 1 << 20, MaxBodies: 4 << 20,
	}
	if change != nil {
		change(&opts)
	}
	if opts.Dev {
		opts.Create = func(ctx context.Context, name string) (*engine.Database, error) {
			d, err := c.Create(name)
			if fault.KindOf(err) == fault.Conflict {
				d, err = c.Database(name)
			}
			if err != nil {
				return nil, err
			}
			_, err = d.SetRules(ctx, state.OpenRules)
			return d, err
		}
	}
	srv := httptest.NewUnstartedServer(rest.New(opts))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(func() {
		srv.Close()
		c.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &server{srv, t, metrics}
}

// do sends a request, given as "METHOD /target body" and headers, and returns
// the answer as "status body".
func (s *server) do(line string, headers ...string) (string, http.Header) {
	s.t.Helper()
	method, rest, _ := strings.Cut(line, " ")
	target, body, _ := strings.Cut(rest, " ")
	req, err := http.NewRequest(method, s.URL+target, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	answer, err := s.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(answer.Status[:3] + " " + string(text)), answer.Header
}

// expect sends requests in order and compares their answers.
func (s *server) expect(pairs ...string) {
	s.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		line, headers := pairs[i], []string(nil)
		if line, header, ok := strings.Cut(line, "\n"); ok {
			headers = strings.Split(header, "\n")
			pairs[i] = line
		}
		line, _, _ = strings.Cut(line, "\n")
		if got, _ := s.do(line, headers...); got != pairs[i+1] {
			s.t.Errorf("%s\n got %s\nwant %s", line, got, pairs[i+1])
		}
	}
}

func errorBody(text string) string { return "{\n  \"error\" : \"" + text + "\"\n}" }

func TestVerbs(t *testing.T) {
	t.Parallel()
	serve(t, nil).expect(
		`GET /.json`, `200 null`,
		`PUT /a/b.json {"c":[1,null,3],"d":{}}`, `200 {"c":[1,null,3]}`,
		`GET /a.json`, `200 {"b":{"c":[1,null,3]}}`,
		`GET //a//b/.json`, `200 {"c":[1,null,3]}`,
		`PATCH /a.json {"x":1,"b/c":null,"/y/z/":"é"}`, `200 {"x":1,"b/c":null,"/y/z/":"é"}`,
		`GET /.json`, `200 {"a":{"x":1,"y":{"z":"é"}}}`,
		`PATCH /a.json {}`, `200 {}`,
		`PATCH /a/y.json null`, `200 null`,
		`DELETE /a.json`, `200 null`,
		`GET /a.json`, `200 null`,
		`PUT /n.json 1e3`, `200 1000`,
		`POST /n.json?x-http-method-override=delete`, `200 null`,
		"POST /n.json 5\nX-HTTP-Method-Override: PUT", `200 5`,
		`GET /n.json?shallow=true`, `200 5`,
		`PUT /o.json {"a":{"b":1},"c":2}`, `200 {"a":{"b":1},"c":2}`,
		`GET /o.json?shallow=true`, `200 {"a":true,"c":true}`,
		`GET /o.json?print=pretty`, "200 {\n  \"a\" : {\n    \"b\" : 1\n  },\n  \"c\" : 2\n}",
		`GET /o.json?callback=f.g`, `200 /**/f.g({"a":{"b":1},"c":2});`,
		`PUT /o.json?print=silent 1`, `204`,
		`GET /o.json?print=silent`, `204`,
	)
}

func TestPushKeysComeAsDeviceLibrariesSearchThem(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	got, _ := s.do(`POST /list.json {"a":1}`)
	if len(got) != len(`200 {"name":"-N3kxPwGQdTzxZ0q1a2b"}`) || !strings.HasPrefix(got, `200 {"name":"`) {
		t.Errorf("POST is answered %s", got)
	}
	key := strings.TrimSuffix(strings.TrimPrefix(got, `200 {"name":"`), `"}`)
	s.expect(`GET /list/`+key+`.json`, `200 {"a":1}`)
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	serve(t, nil).expect(
		`PUT /a.json {".value":1,".priority":"p"}`, `200 1`,
		`GET /a/.priority.json`, `200 "p"`,
		`GET /a.json?format=export`, `200 {".value":1,".priority":"p"}`,
		`PUT /a/.priority.json 3`, `200 3`,
		`GET /.json?format=export`, `200 {"a":{".value":1,".priority":3}}`,
		`DELETE /a/.priority.json`, `200 null`,
		`GET /a/.priority.json`, `200 null`,
		`PATCH /a/.priority.json {}`, `400 `+errorBody("a priority is written with PUT or DELETE"),
		`PATCH /.json {"a/.priority":7}`, `200 {"a/.priority":7}`,
		`GET /a/.priority.json`, `200 7`,
	)
}

func TestConditions(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	_, header := s.do("PUT /a.json 1", "X-Firebase-ETag: true")
	tag := header.Get("ETag")
	if tag == "" {
		t.Fatal("PUT with X-Firebase-ETag has no ETag")
	}
	s.expect(
		"PUT /a.json 2\nif-match: wrong", `412 1`,
		"PUT /a.json 2\nif-match: "+tag, `200 2`,
		"PUT /a.json 3\nif-match: \""+tag+"\"", `412 2`,
		"DELETE /b.json\nif-match: null_etag", `200 null`,
		"POST /b.json 1\nif-match: x", `400 `+errorBody("if-match is not supported with GET, POST and PATCH"),
		"PUT /a.json 2\nif-match: *", `400 `+errorBody("If-Match must hold exactly one ETag"),
		"PUT /a.json 1", `200 1`,
		"GET /a.json\nIf-None-Match: "+tag, `304`,
		"GET /a.json\nIf-None-Match: other", `200 1`,
	)
	if _, header := s.do("PUT /a.json 9", "if-match: wrong"); header.Get("ETag") != tag {
		t.Errorf("412 has the ETag %q, want %q", header.Get("ETag"), tag)
	}
}

// TestTagsOfPriorities: the ETag of a priority says nothing of the node that has it. One that is not there is no data, and a
// write of one has the ETag of the next read.
func TestTagsOfPriorities(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.expect("PUT /a.json 1", `200 1`)
	tag := func(line string) string {
		t.Helper()
		answer, header := s.do(line, "X-Firebase-ETag: true")
		if header.Get("ETag") == "" {
			t.Errorf("%s has no ETag: %s", line, answer)
		}
		return header.Get("ETag")
	}
	if got := tag("GET /a/.priority.json"); got != "null_etag" {
		t.Errorf("no priority has the ETag %s", got)
	}
	s.expect("PUT /a/.priority.json 1\nif-match: x", `412 null`, "PUT /a/.priority.json 1\nif-match: null_etag", `200 1`)
	written := tag("PUT /a/.priority.json 7")
	if read := tag("GET /a/.priority.json"); read != written || read == tag("GET /a.json") {
		t.Errorf("a priority has the ETag %s, was written with %s, and its node has %s", read, written, tag("GET /a.json"))
	}
	s.expect(
		"PUT /a/b.json 2", `200 2`,
		"GET /a/.priority.json\nIf-None-Match: "+written, `304`,
		"PUT /a/.priority.json 8\nif-match: "+written, `200 8`,
		"PUT /a/.priority.json 9\nif-match: "+written, `412 8`,
	)
	s.expect(
		"DELETE /a/.priority.json\nif-match: "+tag("GET /a.json"), `412 8`,
		"DELETE /a/.priority.json\nif-match: "+tag("GET /a/.priority.json"), `200 null`,
	)
	if got := tag("DELETE /a/.priority.json"); got != "null_etag" {
		t.Errorf("a deleted priority has the ETag %s", got)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	bad := "Invalid data; couldn't parse JSON object, array, or value. "
	s.expect(
		`GET /a`, `404 `+errorBody("append .json to your request URI to use the REST API"),
		`PUT /a.json`, `400 `+errorBody("Error: No data supplied."),
		`PUT /a.json {"a":1`, `400 `+errorBody(bad+`(1:7: unexpected end of the data, expected \",\" or \"}\")`),
		`PUT /a.json {"a$":1}`, `400 `+errorBody(`Invalid data; couldn't parse key beginning at 1:2. Key value can't be empty or contain $ # [ ] / or . (1:2: invalid child name: \"a$\" holds \"$\")`),
		`GET /a%2Fb.json`, `400 `+errorBody(`Invalid path: Invalid token in path: invalid child name: \"a/b\" holds \"/\"`),
		`GET /.settings/rules.json`, `403 `+errorBody(`Permission denied`),
		`GET /a.json?x=1`, `400 `+errorBody(`unknown parameter \"x\"`),
		`GET /a.json?print=pretty&print=pretty`, `400 `+errorBody(`the parameter print is repeated`),
		`PUT /a.json?shallow=true 1`, `400 `+errorBody(`the parameter shallow works with GET only`),
		`GET /a.json?shallow=true&print=pretty`, `400 `+errorBody(`Mixing 'shallow' and querying parameters is not supported: remove print`),
		`GET /a.json?callback=alert(1)`, `400 `+errorBody(`callback must be the name of a JavaScript function, of at most 128 bytes`),
		`TRACE /a.json`, `405 `+errorBody(`the method is not GET, HEAD, PUT, POST, PATCH, DELETE or OPTIONS`),
		`GET /a.json?ns=nope`, `404 `+errorBody(`there is no database \"nope\"`),
		`GET /a.json?auth=wrong`, `401 `+errorBody(`Could not parse auth token.`),
		`GET /a.json?ns=closed`, `403 `+errorBody(`Permission denied`),
		`PUT /a.json?ns=closed 1`, `403 `+errorBody(`Permission denied`),
		`PUT /a.json?ns=closed&auth=`+secret+` 1`, `200 1`,
		"GET /a.json?ns=closed\nAuthorization: Bearer "+secret, `200 1`,
		"GET /a.json?ns=closed&access_token="+secret, `200 1`,
		"GET /a.json?ns=closed&auth=x\nAuthorization: Bearer "+secret, `401 `+errorBody(`the request carries two different credentials`),
		"GET /a.json?ns=closed\nAuthorization: Bearer owner", `401 `+errorBody(`Could not parse auth token.`),
	)
	big := strings.Repeat("x", 1<<20)
	if got, _ := s.do(`PUT /a.json "` + big + `"`); !strings.HasPrefix(got, "400 ") || !strings.Contains(got, "exceeds the maximum size") {
		t.Errorf("a body over the limit is answered %.100s", got)
	}
}

func TestNoDatabase(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *rest.Options) { o.DefaultDatabase = "" })
	if got, _ := s.do("GET /a.json"); !strings.HasPrefix(got, "417 ") {
		t.Errorf("a request that names no database is answered %s", got)
	}
}

func TestDev(t *testing.T) {
	t.Parallel()
	serve(t, func(o *rest.Options) { o.Dev = true }).expect(
		`GET /a.json?ns=fresh`, `200 null`,
		`PUT /a.json?ns=fresh 1`, `200 1`,
		`GET /a.json?ns=fresh`, `200 1`,
		"PUT /a.json?ns=closed 1\nAuthorization: Bearer owner", `200 1`,
		"PUT /a.json?ns=closed&access_token=owner 2", `200 2`,
		"PUT /a.json?ns=closed 1\nAuthorization: Bearer owner\nX-Forwarded-For: 1.2.3.4", `401 `+errorBody(`Could not parse auth token.`),
		"PUT /a.json?ns=Up 1", `400 `+errorBody(`invalid database name \"Up\": it must be 1 to 63 lower-case letters, digits and hyphens, and not begin with a hyphen`),
	)
}

func TestRulesDocument(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := "auth=" + secret
	s.expect(
		`GET /.settings/rules.json?ns=closed&`+a, `200 `+strings.TrimSpace(state.ClosedRules),
		`PUT /.settings/rules.json?ns=closed {"rules":{}}`, `403 `+errorBody(`Permission denied`),
		`PUT /.settings/rules.json?ns=closed&`+a, `400 `+errorBody(`Error: No data supplied.`),
		`PUT /.settings/rules.json?ns=closed&`+a+` {"rules":{".read":"auth"}}`, `400 `+errorBody(`1:20: Expression must evaluate to a boolean.\n`),
		`PUT /.settings/rules.json?ns=closed&dryRun=true&`+a+` {"rules":{".read":true}}`, `200 {"status":"ok"}`,
		`GET /a.json?ns=closed`, `403 `+errorBody(`Permission denied`),
		`PUT /.settings/rules.json?ns=closed&`+a+` {"rules":{/*c*/"a":{".read":true,".indexOn":"x"}}}`, `200 {"status":"ok"}`,
		`GET /.settings/rules.json?ns=closed&`+a, `200 {"rules":{/*c*/"a":{".read":true,".indexOn":"x"}}}`,
		`GET /a.json?ns=closed`, `200 null`,
		`PUT /a.json?ns=closed 1`, `403 `+errorBody(`Permission denied`),
		`GET /b.json?ns=closed`, `403 `+errorBody(`Permission denied`),
		`DELETE /.settings/rules.json?ns=closed&`+a, `405 `+errorBody(`the rules document knows GET and PUT`),
		`GET /.settings/rules.json?shallow=true&`+a, `400 `+errorBody(`unknown parameter \"shallow\"`),
	)
	if got, _ := s.do(`GET /.settings/rules.json?ns=closed&format=strict&` + a); strings.Contains(got, "/*") || !strings.Contains(got, ".indexOn") {
		t.Errorf("format=strict shows %s", got)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.expect(
		`PUT /.settings/rules.json?auth=`+secret+` {"rules":{".read":true,".write":true,"p":{".indexOn":["age",".value"]}}}`, `200 {"status":"ok"}`,
		`PUT /p.json {"ann":{"age":30},"ben":{"age":20},"cat":{"age":40},"dog":7}`, `200 {"ann":{"age":30},"ben":{"age":20},"cat":{"age":40},"dog":7}`,
		`GET /p.json?orderBy="age"&limitToLast=2`, `200 {"ann":{"age":30},"cat":{"age":40}}`,
		`GET /p.json?orderBy="age"&startAt=25&endAt=35`, `200 {"ann":{"age":30}}`,
		`GET /p.json?orderBy="age"&equalTo=null`, `200 {"dog":7}`,
		`GET /p.json?orderBy="age"&equalTo=99`, `200 {}`,
		`GET /p.json?orderBy="$key"&startAt="c"`, `200 {"cat":{"age":40},"dog":7}`,
		`GET /p.json?orderBy="$value"&equalTo=7`, `200 {"dog":7}`,
		`GET /p.json?orderBy="$priority"&limitToFirst=1&print=pretty`, "200 {\n  \"ann\" : {\n    \"age\" : 30\n  }\n}",
		`GET /p.json?orderBy="name"`, `400 `+errorBody(`Index not defined, add \".indexOn\": \"name\", for path \"/p\", to the rules`),
		`GET /p.json?limitToFirst=1`, `400 `+errorBody(`orderBy must be defined when other query parameters are defined`),
		`GET /p.json?orderBy="age"&orderBy="age"`, `400 `+errorBody(`the parameter orderBy is repeated`),
		`GET /p/dog.json?orderBy="$key"`, `200 null`,
		`PUT /p.json?orderBy="age" 1`, `400 `+errorBody(`the parameter orderBy works with GET only`),
	)
}

func TestExplain(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := "auth=" + secret
	s.expect(
		`PUT /.settings/rules.json?`+a+` {"rules":{".read":true,".write":true,"p":{".indexOn":"age"}}}`, `200 {"status":"ok"}`,
		`PUT /p.json {"ann":{"age":30},"ben":{"age":20}}`, `200 {"ann":{"age":30},"ben":{"age":20}}`,
		`GET /p.json?explain=true`, `403 `+errorBody("Permission denied"),
		`GET /p.json?explain=true&orderBy="name"&`+a, `200 {"path":"/p","how":"none","index":"name","state":"missing","rows":0,"bytes":0,"result":0,"add":"\".indexOn\": \"name\" for path \"/p\""}`,
		`PUT /p.json?explain=true 1`, `400 `+errorBody("the parameter explain works with GET only"),
	)
	got := ""
	await(t, "the index to be built", func() bool {
		got, _ = s.do(`GET /p.json?explain=true&orderBy="age"&limitToFirst=1&` + a)
		return !strings.Contains(got, `"state":"building"`)
	})
	if !strings.HasPrefix(got, `200 {"path":"/p","how":"chunk","index":"age","state":"ready","rows":1,`) {
		t.Errorf("a query inside a chunk is explained by %s", got)
	}
	many := strings.Repeat("x", 100)
	for i := range 100 {
		s.do(fmt.Sprintf(`PUT /p/k%03d.json {"age":%d,"text":"%s"}`, i, i, many))
	}
	got, _ = s.do(`GET /p.json?explain=true&orderBy="age"&limitToLast=3&` + a)
	if !strings.HasPrefix(got, `200 {"path":"/p","how":"index","index":"age","state":"ready","rows":6,`) {
		t.Errorf("a query by index is explained by %s", got)
	}
	got, _ = s.do(`GET /p.json?explain=true&orderBy="$key"&limitToLast=3&` + a)
	if !strings.HasPrefix(got, `200 {"path":"/p","how":"keys",`) {
		t.Errorf("a query by key is explained by %s", got)
	}
}

// TestExplainExpiry: a query by the child that .expireOn names uses its index, as if .indexOn named it.
func TestExplainExpiry(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := "auth=" + secret
	s.expect(`PUT /.settings/rules.json?`+a+` {"rules":{".read":true,".write":true,"s":{".expireOn":"meta/until"}}}`, `200 {"status":"ok"}`)
	many := strings.Repeat("x", 100)
	for i := range 60 {
		s.do(fmt.Sprintf(`PUT /s/k%03d.json {"meta":{"until":%d},"text":"%s"}`, i, 9_000_000_000_000+int64(i), many))
	}
	got := ""
	await(t, "the index to be built", func() bool {
		got, _ = s.do(`GET /s.json?explain=true&orderBy="meta/until"&limitToFirst=3&` + a)
		return !strings.Contains(got, `"state":"building"`)
	})
	if !strings.HasPrefix(got, `200 {"path":"/s","how":"index","index":"meta/until","state":"ready","rows":6,`) {
		t.Errorf("a query by the time of .expireOn is explained by %s", got)
	}
	if got, _ = s.do(`GET /s.json?explain=true&orderBy="meta"&` + a); !strings.Contains(got, `"state":"missing"`) {
		t.Errorf("a query by another child is explained by %s", got)
	}
	s.expect(`GET /s.json?orderBy="meta/until"&startAt=9000000000059&`+a, fmt.Sprintf(`200 {"k059":{"meta":{"until":9000000000059},"text":"%s"}}`, many))
}

// TestDatabaseThatWasHalfMade: a kill may come when a database has its name, and no rules
// yet. A write goes on with making it.
func TestDatabaseThatWasHalfMade(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *rest.Options) {
		o.Dev = true
		if _, err := o.Catalog.Create("half"); err != nil {
			t.Fatal(err)
		}
	})
	s.expect("GET /a.json?ns=half", "200 null")
	s.expect("PUT /a.json?ns=half 1", "200 1")
	s.expect("GET /a.json?ns=half", "200 1")
}
