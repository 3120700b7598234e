package rest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
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
	s.attack(request("POST", "/a.json?X-HTTP-METHOD-OVERRIDE=PUT", "1"), "400 {\n  \"error\" : \"unknown parameter")
	// Who may not write may not write by override either.
	for _, method := range []string{"PUT", "PATCH", "DELETE", "put", "Delete"} {
		s.attack(request("POST", "/a.json?ns=closed\nX-HTTP-Method-Override: "+method, "{}"), "403 ")
		s.attack(request("POST", "/a.json?ns=closed&x-http-method-override="+method, "{}"), "403 ")
	}
}

func TestAttackBySizeOfBody(t *testing.T) {
	t.Parallel()
	s := newTarget(t, func(o *rest.Options) { o.MaxBody, o.MaxBodies = 12<<20, 24<<20 })
	const tooLarge = "400 {\n  \"error\" : \"Data to write exceeds the maximum size"
	const deep = "400 {\n  \"error\" : \"Invalid data; couldn't parse JSON object, array, or value. ("
	s.attack("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 10737418240\n\n[", tooLarge)
	s.attack("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 12582913\n\n[", tooLarge)
	s.attack(request("PUT", "/a.json", strings.Repeat("[", 2<<20)), deep)
	s.attack(request("PUT", "/a.json", `"`+strings.Repeat("x", 11<<20)+`"`), deep)
	for _, body := range []string{
		strings.Repeat("[", 1<<20), strings.Repeat(`{"a":`, 100_000), strings.Repeat("[", 33) + strings.Repeat("]", 33),
		strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
		`{".value":` + strings.Repeat(`{".value":`, 1000) + "1" + strings.Repeat("}", 1001),
	} {
		s.attack(request("PUT", "/a.json", body), deep)
		s.attack(request("POST", "/a.json", body), deep)
	}
	// Five bytes of memory and more for each byte of text.
	s.attack(request("PUT", "/a.json", "["+strings.Repeat("1,", 700_000)+"1]"), tooLarge)
	s.attack(request("PUT", "/a.json", `{"`+strings.Repeat("k", 1<<20)+`":1}`), "400 {\n  \"error\" : \"Invalid data; couldn't parse key beginning at 1:2.")
	s.attack(request("PATCH", "/a.json", `{"`+strings.Repeat("k", 1<<20)+`":1}`), "400 ")
	s.attack(request("PATCH", "/a.json", `{"`+strings.Repeat("k/", 1<<19)+`":1}`), "400 ")
	s.attack(request("PATCH", "/.json", "{"+manyMembers("a/", 100_001)+"}"), "400 ")
	s.endless(tooLarge)
	s.noLeak()
}

// manyMembers returns the members of an object of many keys.
func manyMembers(prefix string, count int) string {
	var b strings.Builder
	for i := range count {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%sk%d":1`, prefix, i)
	}
	return b.String()
}

// endless sends a body that never ends. It is answered all the same.
func (s *target) endless(want string) {
	s.t.Helper()
	w := s.dial()
	w.send("PUT /a.json HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n1\r\n[\r\n")
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 1<<16, strings.Repeat(" ", 1<<16))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := io.WriteString(w.Conn, chunk); err != nil {
				return
			}
		}
	}()
	head, body := w.receive("PUT")
	if got := head[len("HTTP/1.1 "):][:3] + " " + body; !strings.HasPrefix(got, want) || header(head, "Connection") != "close" {
		s.t.Errorf("an endless body is answered %s%s", head, body)
	}
	w.Close()
	<-ended
	s.unharmed()
}

func TestAttackByBodyThatIsValid(t *testing.T) {
	t.Parallel()
	s := newTarget(t, func(o *rest.Options) { o.MaxBody, o.MaxBodies = 8<<20, 64<<20 })
	for body, want := range map[string]string{
		`{"2147483647":1}`:                            `200 {"2147483647":1}`,
		`{"4294967295":1,"18446744073709551615":2}`:   `200 {"18446744073709551615":2,"4294967295":1}`,
		"[" + strings.Repeat("null,", 100_000) + "1]": `200 {"100000":1}`,
		`{"0":1,"1":2,"2147483648":3}`:                `200 {"0":1,"1":2,"2147483648":3}`,
		`{"__proto__":{"x":1},"constructor":2}`:       `200 {"__proto__":{"x":1},"constructor":2}`,
		`"<script>alert(1)</script>"`:                 `200 "<script>alert(1)</script>"`,
	} {
		w := s.dial()
		if got := w.ask(request("PUT", "/scratch.json", body)); got != want {
			t.Errorf("%.60s is answered %.200s, want %s", body, got, want)
		}
		if got := w.ask(request("GET", "/scratch.json", "")); got != want {
			t.Errorf("%.60s is read as %.200s, want %s", body, got, want)
		}
		s.expect(`DELETE /scratch.json`, `200 null`)
		s.unharmed()
	}
	// Keys that a poor hash or sort would stumble over.
	for name, key := range map[string]func(i int) string{
		"equal but for two letters": func(i int) string { return fmt.Sprintf("k%06dxxxxm%06dxxxxxk", i, i) },
		"common prefix":             func(i int) string { return strings.Repeat("p", 60) + fmt.Sprintf("%06d", 999_999-i) },
		"integers backwards":        func(i int) string { return fmt.Sprint(2_000_000_000 - i) },
		"many zeros":                func(i int) string { return strings.Repeat("0", 1+i%200) + "x" + fmt.Sprint(i) },
	} {
		var body strings.Builder
		for i := range 5_000 {
			fmt.Fprintf(&body, `,"%s":1`, key(i))
		}
		if got := s.dial().ask(request("PUT", "/scratch.json?print=silent", "{"+body.String()[1:]+"}")); got != "204" {
			t.Errorf("keys with %s are answered %.200s", name, got)
		}
		s.expect(`DELETE /scratch.json`, `200 null`)
		s.unharmed()
	}
}

func TestAttackByText(t *testing.T) {
	s := newTarget(t, nil)
	const bad = "400 {\n  \"error\" : \"Invalid data; couldn't parse"
	for _, body := range []string{
		"1e999", "-1e999", "NaN", "Infinity", "-Infinity", "0x1", "01", "-01", "+1", "1.", ".5", "1e", "1e+", "--1", "1_000", "1,5", strings.Repeat("1", 5000),
		"\xef\xbb\xbf1", "\xfe\xff\x00\x31", "\xff", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf5\x80\x80\x80\"", "\"\xc3\"", "\"\\ud800\"", "\"\\udc00\"",
		`"\ud800\ud800"`, `"\u12"`, `"\u12g4"`, `"\x41"`, `"\'"`, "\"a\nb\"", "\"a\x00b\"", "\"a", "'a'", "`a`",
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":null,"a":null}`, `{"0":1,"0":2}`, `{".value":1,".value":2}`, `{".priority":1,"a":1,".priority":2}`,
		`{"a":1}{"a":2}`, "1 2", "1\x00", "\x001", "nul", "nulll", "true false", "True", "undefined", "[1,]", "[,1]", "{,}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`,
		`{1:1}`, `{null:1}`, "[1}", "{]", "]", "}", ",", ":", "/* c */ 1", "1 // c", "(1)", "<x/>",
		`{".settings":{"rules":{}}}`, `{".settings/rules":1}`, `{"a":{".settings":1}}`, `{".info":1}`, `{".x":1}`, `{".":1}`, `{"..":1}`,
		`{".sv":"timestamp","x":1}`, `{".sv":"now"}`, `{".sv":{"increment":"1"}}`, `{".sv":{".sv":"timestamp"}}`, `{".value":{".value":1}}`, `{".value":1,"a":1}`,
		`{".priority":{"a":1}}`, `{".priority":[1]}`, `{".priority":true,"a":1}`, `{"a":{".priority":1e999,"b":1}}`,
		`{"a/b":1}`, `{"a.b":1}`, `{"$a":1}`, `{"a#":1}`, `{"a[":1}`, `{"a]":1}`, `{"":1}`, `{"\u0000":1}`, `{"\u001f":1}`, `{"\u007f":1}`, "{\"\xff\":1}", `{"\ud800":1}`,
	} {
		for _, method := range []string{"PUT", "POST"} {
			s.attack(request(method, "/a.json", body), bad)
		}
		s.attack(request("PATCH", "/.json", `{"a":`+body+`}`), bad)
	}
	for _, body := range []string{
		"[]", "1", `"x"`, "true", `{"a":1,"a":2}`, `{"a":1,"a/b":2}`, `{"a/b":1,"a/b/c":2}`, `{"a":1,"a/.priority":2}`, `{"/":1}`, `{"":1}`, `{"a/../b":1}`, `{"a//.priority/b":1}`,
		`{".settings/rules":{}}`, `{".settings":{}}`, `{"a%2Fb.c":1}`, `{"a/.value":1}`, `{"a/.sv":"timestamp"}`, `{".value":1}`, `{".sv":"timestamp"}`, "null null", `{"a":1} x`,
	} {
		s.attack(request("PATCH", "/.json", body), "400 ")
	}
	s.noLeak()
}

func TestAttackByContentEncoding(t *testing.T) {
	s := newTarget(t, nil)
	bomb := "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	for _, encoding := range []string{"gzip", "GZIP", "x-gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip", "compress", "nonsense"} {
		for _, method := range []string{"PUT", "POST", "PATCH"} {
			s.attack(request(method, "/a.json\nContent-Encoding: "+encoding, bomb), "415 {\n  \"error\" : \"a Content-Encoding is not supported")
		}
	}
}

func TestAttackByHeader(t *testing.T) {
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

func TestAttackByCredential(t *testing.T) {
	s := newTarget(t, nil)
	const bad = "401 {\n  \"error\" : \"Could not parse auth token."
	const two = "401 {\n  \"error\" : \"the request carries two different credentials"
	// In order: {"alg":"none"}, {"alg":"None"}, {"alg":"HS256"} without a
	// signature, with kid, jku and jwk in the header.
	tokens := []string{
		"eyJhbGciOiJub25lIn0.eyJ2IjowLCJkIjp7InVpZCI6ImEifSwiYWRtaW4iOnRydWV9.",
		"eyJhbGciOiJOb25lIn0.eyJ2IjowLCJhZG1pbiI6dHJ1ZX0.",
		"eyJhbGciOiJIUzI1NiJ9.eyJ2IjowLCJhZG1pbiI6dHJ1ZX0.",
		"eyJhbGciOiJIUzI1NiIsImtpZCI6Ii4uLy4uL2Rldi9udWxsIn0.eyJ2IjowLCJhZG1pbiI6dHJ1ZX0.AAAA",
		"eyJhbGciOiJSUzI1NiIsImprdSI6Imh0dHBzOi8vZXZpbC5leGFtcGxlIn0.eyJhZG1pbiI6dHJ1ZX0.AAAA",
		"..", ".", "a.b.c", "eyJ9.eyJ9.eyJ9",
	}
	wrong := append([]string{
		secret[:39], secret[1:], secret + "x", "x" + secret, strings.ToUpper(tenantSecret), tenantSecret, secret + secret,
		"owner", "null", "true", "undefined", "0", "*", "%25", "%00", secret + "%00", secret + "%20", "%20" + secret, secret + "%0A", secret + "%09", secret + "+",
		strings.Repeat("x", 100_000), "",
	}, tokens...)
	for _, credential := range wrong {
		for _, query := range []string{"auth=", "access_token="} {
			s.attack(request("GET", "/a.json?ns=closed&"+query+credential, ""), bad)
			s.attack(request("PUT", "/a.json?ns=closed&"+query+credential, "1"), bad)
		}
		s.attack(request("GET", "/a.json?auth="+credential, ""), bad) // though the rules are open
	}
	for _, header := range append([]string{
		"Bearer " + secret[:39], "Bearer " + secret + "x", "Bearer x " + secret, "Bearer " + secret + " x", "Bearer " + tenantSecret, "Bearer owner", "Bearer", "Bearer ", "",
		secret, "Basic " + secret, "Digest " + secret, "Firebase " + secret, "Bearer: " + secret, "Bearer\t" + secret, "\"Bearer " + secret + "\"", "Bearer null",
	}, tokens...) {
		s.attack(request("GET", "/a.json?ns=closed\nAuthorization: "+header, ""), bad)
		s.attack(request("DELETE", "/a.json?ns=closed\nAuthorization: "+header, ""), bad)
	}
	for _, attack := range []string{
		"/a.json?ns=closed&auth=x\nAuthorization: Bearer " + secret,
		"/a.json?ns=closed&auth=" + secret + "\nAuthorization: Bearer x",
		"/a.json?ns=closed&auth=" + secret + "&access_token=x",
		"/a.json?ns=closed&auth=" + secret + "&auth=x",
		"/a.json?ns=closed&auth=x&auth=" + secret,
		"/a.json?ns=closed\nAuthorization: Bearer " + secret + "\nAuthorization: Bearer x",
		"/a.json?ns=closed&auth=" + secret + "\nAuthorization: Bearer owner",
	} {
		s.attack(request("GET", attack, ""), two)
		s.attack(request("DELETE", attack, ""), two)
	}
	s.attack(request("GET", "/a.json?ns=closed&auth="+secret+"&access_token=", ""), bad)
	s.attack(request("GET", "/a.json?ns=closed&Auth="+secret, ""), "400 {\n  \"error\" : \"unknown parameter")
	s.attack(request("GET", "/a.json?ns=closed\nX-Auth: "+secret+"\nCookie: auth="+secret, ""), "403 ")
	s.attack(request("PUT", "/a.json?ns=closed", "{\"auth\":\""+secret+"\"}"), "403 ")
	s.noLeak()
}

func TestAttackByOverrideOfIdentity(t *testing.T) {
	s := newTarget(t, nil)
	for _, override := range []string{"null", "%7B%22admin%22:true%7D", "%7B%7D", "true", "1"} {
		s.attack(request("GET", "/a.json?ns=closed&auth_variable_override="+override, ""), "403 ")
		s.attack(request("GET", "/a.json?ns=closed&auth="+secret+"&auth_variable_override="+override, ""), "403 {\n  \"error\" : \"Permission denied")
		s.attack(request("DELETE", "/a.json?ns=closed&auth="+secret+"&auth_variable_override="+override, ""), "403 ")
		s.attack(request("GET", "/a.json?ns=closed&auth=x&auth_variable_override="+override, ""), "401 ")
	}
	for _, override := range []string{"", "nonsense", "%7B", "%7B%7D%7B%7D", "%00"} {
		s.attack(request("GET", "/a.json?ns=closed&auth="+secret+"&auth_variable_override="+override, ""), "400 ")
	}
}

func TestAttackAcrossTenants(t *testing.T) {
	s := newTarget(t, func(o *rest.Options) {
		o.Domain = "db.example"
		o.HostMap = map[string]string{"closed.example": "closed"}
	})
	const bad = "401 "
	for target, want := range map[string]string{
		"/a.json?ns=closed&auth=" + tenantSecret:                            bad,
		"/a.json?ns=default&auth=" + tenantSecret:                           bad,
		"/a.json?ns=tenant&auth=" + secret:                                  bad,
		"/a.json?ns=tenant&ns=closed&auth=" + tenantSecret:                  "400 ",
		"/a.json?ns=closed&ns=tenant&auth=" + tenantSecret:                  bad,
		"/a.json?ns=closed,tenant&auth=" + tenantSecret:                     "400 ",
		"/a.json?n%73=closed&auth=" + tenantSecret:                          bad,
		"/a.json?ns=c%6Cosed&auth=" + tenantSecret:                          bad,
		"/a.json?NS=closed&auth=" + tenantSecret:                            bad, // which is no parameter, and the default database not theirs
		"/a.json?ns=CLOSED&auth=" + tenantSecret:                            "400 ",
		"/a.json?ns=Closed&auth=" + tenantSecret:                            "400 ",
		"/a.json?ns=closed%00&auth=" + tenantSecret:                         "400 ",
		"/a.json?ns=closed%20&auth=" + tenantSecret:                         "400 ",
		"/a.json?ns=tenant%2F..%2Fclosed&auth=" + tenantSecret:              "400 ",
		"/a.json?ns=../closed&auth=" + tenantSecret:                         "400 ",
		"/a.json?ns=&auth=" + tenantSecret:                                  "400 ",
		"/a.json?ns=nowhere&auth=" + tenantSecret:                           "404 ",
		"/a.json?ns=" + strings.Repeat("x", 64) + "&auth=" + tenantSecret:   "400 ",
		"/a.json?ns=tenant\nX-Forwarded-Host: closed.example":               "403 ",
		"/closed/a.json?ns=tenant&auth=" + tenantSecret:                     "200 null",
		"/../closed/a.json?ns=tenant&auth=" + tenantSecret:                  "400 ",
		"https://closed.example/a.json?auth=" + tenantSecret:                bad,
		"https://closed.db.example/a.json?auth=" + tenantSecret:             bad,
		"https://closed.db.example/a.json?ns=tenant&auth=" + secret:         bad,
		"https://tenant.db.example/a.json?ns=closed&auth=" + tenantSecret:   bad,
		"https://tenant.db.example./a/b.json?auth=" + tenantSecret:          `200 "deep"`,
		"https://TENANT.DB.EXAMPLE/a/b.json?auth=" + tenantSecret:           `200 "deep"`,
		"https://closed.tenant.db.example/a.json?auth=" + tenantSecret:      "400 ",
		"https://tenant.db.example:443/a/b.json?auth=" + tenantSecret:       `200 "deep"`,
		"https://tenant@closed.db.example/a.json?auth=" + tenantSecret:      bad,
		"https://closed.db.example@tenant.db.example/a.json?auth=" + secret: bad,
	} {
		s.attack(request("GET", target, ""), want)
		if strings.HasPrefix(want, "4") {
			s.attack(request("PUT", target, "1"), want)
			s.attack(request("DELETE", target, ""), want)
		}
	}
	s.noLeak()
}

func TestAttackOnDev(t *testing.T) {
	// Without --dev, the credential of emulators is nothing.
	s := newTarget(t, nil)
	for _, attack := range []string{
		"/a.json?ns=closed\nAuthorization: Bearer owner", "/a.json?ns=closed&access_token=owner", "/a.json?ns=closed&auth=owner",
		"/a.json\nAuthorization: Bearer owner", "/a.json?ns=closed\nAuthorization: Bearer owner\nHost2: localhost",
	} {
		s.attack(request("GET", attack, ""), "401 ")
		s.attack(request("DELETE", attack, ""), "401 ")
	}
	// With it, not for one who comes through a proxy.
	s = newTarget(t, func(o *rest.Options) { o.Dev = true })
	for _, header := range []string{"Forwarded: for=1.2.3.4", "X-Forwarded-For: 127.0.0.1", "x-forwarded-proto: https", "X-FORWARDED-HOST: localhost", "X-Forwarded-Anything:"} {
		s.attack(request("GET", "/a.json?ns=closed\nAuthorization: Bearer owner\n"+header, ""), "401 ")
		s.attack(request("DELETE", "/a.json?ns=closed&access_token=owner\n"+header, ""), "401 ")
	}
	for _, credential := range []string{"Owner", "owner%20", "owner%00", "OWNER"} {
		s.attack(request("GET", "/a.json?ns=closed&access_token="+credential, ""), "401 ")
	}
	s.attack(request("GET", "/a/b.json?ns=closed&access_token=owner", ""), `200 "deep"`)
}

// TestAttackOnTheBudgetForBodies has more bodies in flight than there is memory
// for. Everybody is told to come back, or is served; and then it is all free.
func TestAttackOnTheBudgetForBodies(t *testing.T) {
	t.Parallel()
	for name, announced := range map[string]bool{"of known length": true, "in chunks": false} {
		t.Run(name, func(t *testing.T) {
			handler, s := serveHandler(t, 4<<20)
			storm := &storm{server: s, announced: announced, refused: make(chan struct{}), answers: map[string]int{}}
			storm.refuse = sync.OnceFunc(func() { close(storm.refused) })
			var wait sync.WaitGroup
			for i := range 64 {
				wait.Go(func() { storm.put(i) })
			}
			wait.Wait()
			if storm.answers["204"] == 0 || storm.answers["503"] == 0 {
				t.Errorf("the answers are %v, want some of either", storm.answers)
			}
			s.expect("PUT /last.json?print=silent ["+strings.Repeat("1,", 40_000)+"1]", "204")
			s.Close() // returns when all handlers have
			if taken := handler.BodiesTaken(); taken != 0 {
				t.Errorf("%d bytes are still taken", taken)
			}
		})
	}
}

// A storm is many clients that send bodies at once.
type storm struct {
	*server
	announced bool // the lengths of the bodies are
	refused   chan struct{}
	refuse    func() // closes it

	mu      sync.Mutex
	answers map[string]int // how many there were of each status
}

// put sends a body as client i. Everybody holds back the end of the body until
// somebody was refused, as must happen: there are more than fit.
func (s *storm) put(i int) {
	defer s.refuse() // so that nobody waits for ever
	data := "[" + strings.Repeat(`"`+strings.Repeat("x", 1<<10)+`",`, 60) + `"y"]`
	end := strings.Repeat(" ", 100<<10)
	length := fmt.Sprintf("Content-Length: %d", len(data)+len(end))
	if !s.announced {
		length = "Transfer-Encoding: chunked"
		data = fmt.Sprintf("%x\r\n%s\r\n", len(data), data)
		end = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(end), end)
	}
	w := s.dial()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		// Who is refused may not get rid of all of it. http.Client would tell of that,
		// and not of the answer.
		_, _ = io.WriteString(w.Conn, wireText(fmt.Sprintf("PUT /c%d.json?print=silent HTTP/1.1\nHost: h\n%s\n\n", i, length))+data)
		<-s.refused
		_, _ = io.WriteString(w.Conn, end)
	}()
	head, body := w.receive("PUT")
	switch status := head[len("HTTP/1.1 "):][:3]; status {
	case "204":
	case "503":
		if header(head, "Retry-After") == "" {
			s.t.Errorf("client %d is told to come back, but not when", i)
		}
	default:
		s.t.Errorf("client %d is answered %s%s", i, head, body)
	}
	s.mu.Lock()
	s.answers[head[len("HTTP/1.1 "):][:3]]++
	s.mu.Unlock()
	s.refuse()
	w.Close()
	<-sent
}

// TestAttackOnTheBudgetBySlowness holds back the ends of bodies: what has come
// of them is charged all the same.
func TestAttackOnTheBudgetBySlowness(t *testing.T) {
	piece := strings.Repeat("x", 1<<10)
	for name, body := range map[string]string{
		"many strings": "[" + strings.Repeat(`"`+piece+`",`, 500),
		"many numbers": "[" + strings.Repeat("1,", 50_000),
		"many keys":    "{" + manyMembers("", 20_000) + ",",
		"one string":   `"` + strings.Repeat(piece, 500),
	} {
		t.Run(name, func(t *testing.T) {
			handler, _ := serveHandler(t, 64<<20)
			reader, writer := io.Pipe()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", "/a.json", reader))
			}()
			// The second piece is taken when the first one has been decoded.
			for _, text := range []string{body, " "} {
				if _, err := io.WriteString(writer, text); err != nil {
					t.Fatal(err)
				}
			}
			if taken := handler.BodiesTaken(); taken < int64(len(body))*3/4 {
				t.Errorf("%d bytes are taken for %d that have come", taken, len(body))
			}
			writer.Close()
			<-ended
			if taken := handler.BodiesTaken(); taken != 0 {
				t.Errorf("%d bytes are still taken", taken)
			}
		})
	}
}

// TestAttackOnTheBudgetByErrors gives the budget back after bodies that are cut,
// wrong or too large.
func TestAttackOnTheBudgetByErrors(t *testing.T) {
	t.Parallel()
	handler, s := serveHandler(t, 1<<20)
	large := strings.Repeat(" ", 70<<10) // of a small body no account is kept
	for range 5 {
		for _, body := range []string{
			`{"a":1`, `{"a":"` + strings.Repeat("x", 1000), `[1,2,3,{"a":`, strings.Repeat("[", 100), `{"a":1}}`, "[" + strings.Repeat("1,", 50_000) + "1]", `{"a":1}`,
		} {
			body = large + body
			// The one before may not have given its memory back yet: 503.
			if got := s.dial().ask(request("PUT", "/a.json?ns=closed", body)); got[0] != '4' && got[:3] != "503" {
				t.Errorf("%q is answered %s", body[len(large):][:5], got)
			}
			w := s.dial()
			w.send(fmt.Sprintf("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: %d\n\n%s", len(body)+1, body))
			if err := w.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(w.in) // an answer or none
		}
	}
	s.expect("GET /a.json", "200 null")
	s.Close()
	if taken := handler.BodiesTaken(); taken != 0 {
		t.Errorf("%d bytes are still taken", taken)
	}
}

// serveHandler is serve with the handler at hand, and a budget for bodies.
func serveHandler(t *testing.T, budget int64) (*rest.Handler, *server) {
	t.Helper()
	var opts rest.Options
	s := serve(t, func(o *rest.Options) {
		o.MaxBodies = budget
		opts = *o
	})
	handler := rest.New(opts)
	front := httptest.NewUnstartedServer(handler)
	front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	front.StartTLS()
	t.Cleanup(front.Close)
	return handler, &server{front, s.t}
}
