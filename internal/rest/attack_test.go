package rest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/livetree/livetree/internal/rest"
)

// These are the lines of the table of attacks that concern what the package
// does. Each attack has one expected answer; after it the data is what it was,
// and others are served as before.

const (
	// tenantSecret is the secret of a database whose users attack.
	tenantSecret = "tenant7890123456789012345678901234567890"
	// victimData is in the databases that are attacked.
	victimData = `{".priority":1,"a":{"b":"deep"},"list":{"0":1,"1":2},"p":{".value":"v",".priority":"x"}}`
)

// A target is a server under attack, and what it logs.
type target struct {
	*server
	log  *syncBuffer
	wire *wire // for the next attack, nil if the last one ended it
}

// syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// newTarget returns a server with an open database and two closed ones that
// have secrets of their own.
func newTarget(t *testing.T, change func(*rest.Options)) *target {
	t.Helper()
	log := &syncBuffer{}
	s := serve(t, func(o *rest.Options) {
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		tenant, err := o.Catalog.Create("tenant")
		if err != nil {
			t.Fatal(err)
		}
		if err := tenant.SetSecrets(context.Background(), tenantSecret); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(o)
		}
	})
	for _, where := range []string{"?ns=default", "?ns=closed&auth=" + secret, "?ns=tenant&auth=" + tenantSecret} {
		if got, _ := s.do("PUT /.json" + where + " " + victimData); !strings.HasPrefix(got, "200 ") {
			t.Fatal(got)
		}
	}
	return &target{server: s, log: log}
}

// unharmed fails if the data is not what it was.
func (s *target) unharmed() {
	s.t.Helper()
	s.expect(
		`GET /.json?format=export`, `200 `+victimData,
		`GET /.json?format=export&ns=closed&auth=`+secret, `200 `+victimData,
		`GET /.json?format=export&ns=tenant&auth=`+tenantSecret, `200 `+victimData,
	)
}

// attack sends a request as it is and compares the beginning of its answer.
func (s *target) attack(request, want string) {
	s.t.Helper()
	w := s.wire
	if w == nil {
		w = s.dial()
	}
	w.extend()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		// The answer may come before the end of the request, and the end never
		// get through.
		_, _ = io.WriteString(w.Conn, wireText(request))
	}()
	method, _, _ := strings.Cut(request, " ")
	head, body := w.receive(method)
	if got := strings.TrimSpace(head[len("HTTP/1.1 "):][:3] + " " + body); !strings.HasPrefix(got, want) {
		s.t.Errorf("%.200q\n got %.300s\nwant %s", request, got, want)
	}
	s.wire = w
	if header(head, "Connection") == "close" {
		s.wire = nil
		w.Close()
	}
	<-sent
	s.unharmed()
}

// request returns the bytes of a request. The target may be followed by headers
// on lines of their own.
func request(method, target, body string) string {
	target, headers, ok := strings.Cut(target, "\n")
	if ok {
		headers += "\n"
	}
	return fmt.Sprintf("%s %s HTTP/1.1\nHost: h\n%sContent-Length: %d\n\n%s", method, target, headers, len(body), body)
}

// noLeak fails if a secret is in the log.
func (s *target) noLeak() {
	s.t.Helper()
	for _, hidden := range []string{secret, tenantSecret, secret[:39], "deep"} {
		if strings.Contains(s.log.String(), hidden) {
			s.t.Errorf("the log holds %q", hidden)
		}
	}
}

func TestAttackByPath(t *testing.T) {
	t.Parallel()
	s := newTarget(t, nil)
	const bad = "400 {\n  \"error\" : \"Invalid path: Invalid token in path"
	const denied = "403 {\n  \"error\" : \"Permission denied"
	const noSuffix = "404 {\n  \"error\" : \"append .json"
	refused := map[string]string{
		"/a%2Fb.json": bad, "/a%2fb.json": bad, "/../a.json": bad, "/a/../../a.json": bad, "/%2e%2e/a.json": bad,
		"/./a.json": bad, "/%2e/a.json": bad, "/a%00.json": bad, "/%00.json": bad, "/a%0d%0ab.json": bad, "/%ff.json": bad, "/%7f.json": bad,
		"/a.json/b.json": bad, "/a.json.json": bad, "/..json": bad, "/...json": bad,
		"/.settings%2Frules.json": bad, "/%2Esettings/rules.json": bad, "/.settings/rules.json": denied, "/.Settings/rules.json": bad,
		"/a/.settings/rules.json": bad, "//.settings/rules.json": bad, "/.settings//rules.json": bad, "/.settings.json": bad,
		"/.value.json": bad, "/a/.value.json": bad, "/a/.sv.json": bad, "/.priority/a.json": bad, "/a/.priority/.priority.json": bad,
		"/a/.value/.priority.json": bad, "/.info/connected.json": bad, "/.inspect/databases.json": denied, "/.settings/dialect.json": denied, "/.settings/defaultWriteSizeLimit.json": denied,
		"/.settings/nothing.json": "404 {\n  \"error\" : \"there is no setting", "/.settings/a.b.json": bad, "/.Inspect/databases.json": bad, "/a/.inspect/databases.json": bad,
		"/" + strings.Repeat("a/", 40) + "x.json": bad, "/" + strings.Repeat("k", 100<<10) + ".json": bad,
		"/" + strings.Repeat("a/", 50<<10) + ".json": bad, "/" + strings.Repeat("%C3%A9", 385) + ".json": bad,
		"/a.json;x": noSuffix, "/.json%20": noSuffix, "/.json/": noSuffix, "/.json;.css": noSuffix, "/": noSuffix, "/a": noSuffix,
		"*": noSuffix, "https://h/a": noSuffix, "/.settings/rules": noSuffix, "/.JSON": noSuffix, "/a%2Ejson": noSuffix,
		"/.ws?v=5": noSuffix, "/.lp?start=t": noSuffix, "/metrics": noSuffix, "/debug/pprof/": noSuffix, "/healthz": noSuffix,
	}
	for path, want := range refused {
		for method, body := range map[string]string{"GET": "", "PUT": `{"x":1}`, "POST": `1`, "PATCH": `{"a":null}`, "DELETE": ""} {
			s.attack(request(method, path, body), want)
		}
	}
	// These are names like any other, and nothing is there.
	for _, path := range []string{`/\.json`, "/%5C.json", "/a%5Cb.json", "/a%252Fb.json", "/a;x.json", "/~root.json", "/%25.json", "/CON.json", "/a%20.json"} {
		s.attack(request("GET", path, ""), "200 null")
	}
	s.noLeak()
}

func TestAttackByMethodOverride(t *testing.T) {
	t.Parallel()
	s := newTarget(t, nil)
	const name = "400 {\n  \"error\" : \"x-http-method-override"
	for _, header := range []string{
		"GET", "HEAD", "POST", "OPTIONS", "TRACE", "CONNECT", "", " ", "PUT PATCH", "PUT,DELETE", "DELETE\nX-HTTP-Method-Override: PUT",
		"PUT\nX-HTTP-Method-Override: GET", "\"DELETE\"", "DELETE;", "PUTT",
	} {
		s.attack(request("POST", "/a.json\nX-HTTP-Method-Override: "+header, "1"), name)
	}
	for _, query := range []string{
		"=GET", "=POST", "=TRACE", "=", "", "=PUT&x-http-method-override=DELETE", "=PUT%20", "=%50UT%00",
	} {
		s.attack(request("POST", "/a.json?x-http-method-override"+query, "1"), name)
	}
	s.attack(request("POST", "/a.json?x-http-method-override=DELETE\nX-HTTP-Method-Override: PUT", "1"), name)
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE"} {
		s.attack(request(method, "/a.json\nX-HTTP-Method-Override: DELETE", "{}"), "400")
		s.attack(request(method, "/a.json?x-http-method-override=DELETE", "{}"), "400")
	}
	s.attack(request("TRACE", "/a.json\nX-HTTP-Method-Override: DELETE", ""), "405 ")
	s.attack(request("POST", "/a.json?x-http-method-override=PUT&x-http-method-override=PUT", "1"),
		"400 {\n  \"error\" : \"the parameter x-http-method-override is repeated")
	// The letter case of the parameter does not count, and so hides nothing.
	s.attack(request("POST", "/a.json?X-HTTP-METHOD-OVERRIDE=GET", "1"), name)
	s.attack(request("POST", "/a.json?X-HTTP-METHOD-OVERRIDE=PUT&x-http-method-override=PUT", "1"),
		"400 {\n  \"error\" : \"the parameter x-http-method-override is repeated")
	s.attack(request("PUT", "/a.json?X-Http-Method-Override=DELETE", "{}"), "400")
	s.attack(request("POST", "/a.json?ns=closed&X-Http-Method-Override=DELETE", "{}"), "403 ")
	// Who may not write may not write by override either.
	for _, method := range []string{"PUT", "PATCH", "DELETE", "put", "Delete"} {
		s.attack(request("POST", "/a.json?ns=closed\nX-HTTP-Method-Override: "+method, "{}"), "403 ")
		s.attack(request("POST", "/a.json?ns=closed&x-http-method-override="+method, "{}"), "403 ")
	}
}

func TestAttackByHeader(t *testing.T) {
	t.Parallel()
	s := newTarget(t, nil)
	many := strings.Repeat("X-Header: x\n", 10_000)
	s.attack("GET /a.json HTTP/1.1\nHost: h\n"+many+"\n", "200 ")
	s.attack("GET /a/b.json HTTP/1.1\nHost: h\nX-Forwarded-For: 127.0.0.1\nX-Original-URL: /p.json\nX-Rewrite-URL: /p.json\nForwarded: host=x\n\n", `200 "deep"`)
	s.attack("GET /a/b.json HTTP/1.1\nHost: ../../etc\n\n", "400")
	s.attack("GET /a/b.json HTTP/1.1\nHost: \n\n", `200 "deep"`)
	s.attack("GET /a/b.json HTTP/1.1\nHost: h\nRange: bytes=0-1\n\n", `200 "deep"`)
	s.attack("GET /a/b.json HTTP/1.1\nHost: h\nUpgrade: h2c\nConnection: Upgrade, HTTP2-Settings\nHTTP2-Settings: AAMAAABkAAQAAP__\n\n", `200 "deep"`)
	s.attack("GET /a/b.json HTTP/1.1\nHost: h\nUpgrade: websocket\nConnection: Upgrade\n\n", `200 "deep"`)
	for _, condition := range []string{"*", "", "a, b", "\"a\", \"b\"", "a\nif-match: b", `""`, "a b", "W/"} {
		s.attack(request("PUT", "/a.json\nif-match: "+condition, "1"), "400 {\n  \"error\" : \"If-Match must hold exactly one ETag")
	}
	for _, condition := range []string{"x", "null_etag", `"x"`, strings.Repeat("x", 10_000)} {
		s.attack(request("PUT", "/a.json\nif-match: "+condition, "1"), `412 {"b":"deep"}`)
		s.attack(request("DELETE", "/a.json\nif-match: "+condition, ""), `412 {"b":"deep"}`)
		s.attack(request("PATCH", "/a.json\nif-match: "+condition, `{"b":1}`), "400 ")
		s.attack(request("POST", "/a.json\nif-match: "+condition, "1"), "400 ")
	}
	// More than net/http reads.
	w := s.dial()
	_, _ = io.WriteString(w.Conn, "GET /a.json HTTP/1.1\r\nHost: h\r\nX-Header: "+strings.Repeat("x", 2<<20)) // it may be cut
	if head := w.head(); !strings.HasPrefix(head, "HTTP/1.1 431 ") {
		t.Errorf("a header of 2 MiB is answered %s", head)
	}
	s.unharmed()
	s.noLeak()
}

func TestAttackByCallback(t *testing.T) {
	t.Parallel()
	s := newTarget(t, nil)
	for _, name := range []string{
		"", "alert(1)//", "a%3Bb", "%3C/script%3E", "</script>", "%C3%A9", "\u00e9", strings.Repeat("f", 129), strings.Repeat("f", 10<<10), "a.b.", ".a", "a..b",
		"1a", "a%20b", "a+b", "a%0Ab", "a%0A", "a%00", "a[0]", "a['b']", "a%22", "a=1", "a,b", "a%E2%80%A8", "-a", "*/a", "a/**/b",
	} {
		s.attack(request("GET", "/a.json?callback="+name, ""), "400 {\n  \"error\" : \"callback must be the name of a JavaScript function")
	}
	for _, method := range []string{"PUT", "POST", "PATCH", "DELETE"} {
		s.attack(request(method, "/a.json?callback=f", "{}"), "400 {\n  \"error\" : \"the parameter callback works with GET only")
	}
	// Errors are never scripts.
	for query, status := range map[string]string{"ns=closed": "403", "auth=x": "401", "ns=none": "404", "nope=1": "400", "shallow=true": "400", "callback=g": "400"} {
		w := s.dial()
		w.send(request("GET", "/a.json?callback=f&"+query, ""))
		head, body := w.receive("GET")
		if !strings.HasPrefix(head, "HTTP/1.1 "+status) || header(head, "Content-Type") != "application/json; charset=utf-8" || !strings.HasPrefix(body, "{\n  \"error\" : ") {
			t.Errorf("callback with %s is answered %s%s, want %s", query, head, body, status)
		}
	}
	// What is answered is a script and nothing else.
	w := s.dial()
	w.send(request("GET", "/a/b.json?callback=f", ""))
	head, body := w.receive("GET")
	if body != `/**/f("deep");` || header(head, "Content-Type") != "application/javascript; charset=utf-8" || header(head, "X-Content-Type-Options") != "nosniff" {
		t.Errorf("a callback is answered %s%s", head, body)
	}
	// The character that ends lines in old JavaScript, at every place of a buffer.
	for size := range 8 {
		pad := strings.Repeat("x", size) + strings.Repeat("\u2028\u2029\u2027e\u0301", 10_000)
		s.expect(`PUT /scratch.json?print=silent "`+pad+`"`, "204")
		got, _ := s.do("GET /scratch.json?callback=f")
		want := `200 /**/f("` + strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`).Replace(pad) + `");`
		if got != want {
			t.Errorf("line separators after %d bytes are answered %.100q", size, got)
		}
	}
	s.expect(`DELETE /scratch.json`, "200 null")
	s.unharmed()
}

func TestAttackByDownload(t *testing.T) {
	t.Parallel()
	s := newTarget(t, nil)
	for name, want := range map[string]string{
		"a%22b%22.json":                 `attachment; filename="a\"b\".json"`,
		"a%0D%0ASet-Cookie:%20x=y":      "attachment; filename*=utf-8''a%0D%0ASet-Cookie%3A%20x%3Dy",
		"a%0Ab":                         "attachment; filename*=utf-8''a%0Ab",
		"../../etc/passwd":              "attachment; filename=passwd",
		"..%2F..%2Fetc%2Fpasswd":        "attachment; filename=passwd",
		"..%5C..%5Cwindows%5Csystem.in": "attachment; filename=system.in",
		"C:%5Ca":                        "attachment; filename=a",
		"/etc/passwd":                   "attachment; filename=passwd",
		"%C3%A9.json":                   "attachment; filename*=utf-8''%C3%A9.json",
		"a%3Bfilename=b.exe":            `attachment; filename="a;filename=b.exe"`,
		"%ff":                           "attachment; filename*=utf-8''%FF",
		strings.Repeat("n", 255):        "attachment; filename=" + strings.Repeat("n", 255),
	} {
		w := s.dial()
		w.send(request("GET", "/a/b.json?download="+name, ""))
		head, body := w.receive("GET")
		if got := header(head, "Content-Disposition"); got != want || body != `"deep"` || header(head, "Set-Cookie") != "" {
			t.Errorf("download=%s is answered %s%s\nwant %s", name, head, body, want)
		}
	}
	for _, name := range []string{"", "..", ".", "/", "%5C", "a/..", strings.Repeat("n", 256), strings.Repeat("n", 10<<10)} {
		if got := s.dial().ask(request("GET", "/a/b.json?download="+name, "")); !strings.HasPrefix(got, "400 {\n  \"error\" : \"download must be a file name") {
			t.Errorf("download=%.60s is answered %s", name, got)
		}
	}
	s.unharmed()
}
