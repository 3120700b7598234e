package rest_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rest"
)

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
	t.Parallel()
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
	t.Parallel()
	s := newTarget(t, nil)
	bomb := "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	for _, encoding := range []string{"gzip", "GZIP", "x-gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip", "compress", "nonsense"} {
		for _, method := range []string{"PUT", "POST", "PATCH"} {
			s.attack(request(method, "/a.json\nContent-Encoding: "+encoding, bomb), "415 {\n  \"error\" : \"a Content-Encoding is not supported")
		}
	}
}
