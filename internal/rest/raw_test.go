package rest_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rest"
)

// These tests send and read bytes: device libraries do the same, and search for
// literal text in what comes back. http.Client would hide it.

func TestRawETagIsSpelledAsDevicesSearchIt(t *testing.T) {
	t.Parallel()
	w := serve(t, nil).dial()
	w.send("PUT /a.json HTTP/1.1\nHost: h\nX-Firebase-ETag: true\nContent-Length: 1\n\n1")
	head, _ := w.receive("PUT")
	tag := header(head, "ETag")
	if tag == "" || strings.ContainsAny(tag, `" `) {
		t.Errorf("the answer has the ETag %q, want a bare one under this spelling: %s", tag, head)
	}
	for _, request := range []string{
		"GET /a.json HTTP/1.1\nHost: h\nX-Firebase-ETag: true\n\n",
		"GET /a.json HTTP/1.1\nHost: h\nif-none-match: " + tag + "\n\n",
		"GET /a.json HTTP/1.1\nHost: h\nif-none-match: other\n\n",
		"HEAD /a.json HTTP/1.1\nHost: h\nx-firebase-etag: true\n\n",
		"PUT /a.json HTTP/1.1\nHost: h\nif-match: other\nContent-Length: 1\n\n2",
		"DELETE /a.json HTTP/1.1\nHost: h\nif-match: other\n\n",
	} {
		w.send(request)
		method, _, _ := strings.Cut(request, " ")
		if head, _ := w.receive(method); header(head, "ETag") != tag || strings.Contains(head, "Etag:") {
			t.Errorf("%q is answered without ETag: %s: %s", request, tag, head)
		}
	}
}

func TestRawErrorIsTheSameToTheByte(t *testing.T) {
	t.Parallel()
	w := serve(t, nil).dial()
	w.send("GET /a.json?ns=closed HTTP/1.1\nHost: h\n\n")
	head, body := w.receive("GET")
	if want := "{\n  \"error\" : \"Permission denied\"\n}\n"; body != want {
		t.Errorf("the body is %q, want %q", body, want)
	}
	if !strings.HasPrefix(head, "HTTP/1.1 403 Forbidden\r\n") ||
		header(head, "Content-Length") != "36" || header(head, "Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("the head is %s", head)
	}
}

func TestRawPostAnswerStartsAsDevicesSearchIt(t *testing.T) {
	t.Parallel()
	w := serve(t, nil).dial()
	if got := w.ask("POST /a.json HTTP/1.1\nHost: h\nContent-Length: 7\n\n{\"a\":1}"); !strings.HasPrefix(got, `200 {"name":"-`) || len(got) != len(`200 {"name":""}`)+20 {
		t.Errorf("POST is answered %s", got)
	}
}

func TestRawSilentEndsTheConnectionUnlessAsked(t *testing.T) {
	t.Parallel()
	tests := []struct {
		headers string
		closes  bool
	}{
		{"", true},
		{"Connection: keep-alive\n", false},
		{"Connection: Keep-Alive\n", false},
		{"Connection: TE, keep-alive\nTE: trailers\n", false},
		{"Keep-Alive: timeout=30, max=100\n", false},
		{"keep-alive: 300\n", false},
		{"Connection: close\n", true},
	}
	s := serve(t, nil)
	for _, test := range tests {
		for _, method := range []string{"PUT", "POST", "PATCH", "DELETE", "GET"} {
			body := ""
			if method != "GET" && method != "DELETE" {
				body = `{"x":1}`
			}
			w := s.dial()
			w.send(fmt.Sprintf("%s /a.json?print=silent HTTP/1.1\nHost: h\n%sContent-Length: %d\n\n%s", method, test.headers, len(body), body))
			head, _ := w.receive(method)
			if !strings.HasPrefix(head, "HTTP/1.1 204 No Content\r\n") || header(head, "Content-Length") != "" || header(head, "Content-Type") != "" {
				t.Errorf("%s with %q is answered %s", method, test.headers, head)
			}
			if closes := header(head, "Connection") == "close"; closes != test.closes {
				t.Errorf("%s with %q: the answer says %q", method, test.headers, header(head, "Connection"))
			}
			if test.closes {
				if !w.isClosed() {
					t.Errorf("%s with %q: the connection stays open", method, test.headers)
				}
			} else if got := w.ask("GET /none.json HTTP/1.1\nHost: h\n\n"); got != "200 null" {
				t.Errorf("%s with %q: the next request is answered %s", method, test.headers, got)
			}
		}
	}
}

func TestRawConnectionIsReused(t *testing.T) {
	t.Parallel()
	w := serve(t, nil).dial()
	for i := range 5 {
		text := strconv.Itoa(i)
		if got := w.ask("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 1\n\n" + text); got != "200 "+text {
			t.Errorf("request %d is answered %s", i, got)
		}
	}
	if got := w.ask("GET /a.b.json HTTP/1.1\nHost: h\n\n"); !strings.HasPrefix(got, "400 ") {
		t.Errorf("a bad request is answered %s", got)
	}
	if got := w.ask("GET /a.json HTTP/1.1\nHost: h\n\n"); got != "200 4" {
		t.Errorf("the request after a bad one is answered %s", got)
	}
	w.send("GET /a.json HTTP/1.1\nHost: h\nConnection: close\n\n")
	if w.receive("GET"); !w.isClosed() {
		t.Error("the connection stays open after Connection: close")
	}
}

func TestRawOldVersionOfHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	w := s.dial()
	w.send("GET /a.json HTTP/1.0\nHost: h\n\n")
	head, body := w.receive("GET")
	if !strings.HasPrefix(head, "HTTP/1.0 200 OK\r\n") || body != "null" || !w.isClosed() {
		t.Errorf("a request of HTTP/1.0 is answered %s%s", head, body)
	}
	w = s.dial()
	w.send("GET /a.json HTTP/1.0\nHost: h\nConnection: keep-alive\n\n")
	if head, _ := w.receive("GET"); header(head, "Connection") != "keep-alive" {
		t.Errorf("keep-alive of HTTP/1.0 is answered %s", head)
	}
	if got := w.ask("GET /a.json HTTP/1.1\nHost: h\n\n"); got != "200 null" {
		t.Errorf("the next request is answered %s", got)
	}
}

func TestRawHead(t *testing.T) {
	t.Parallel()
	w := serve(t, nil).dial()
	w.ask("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 7\n\n{\"b\":1}")
	big := `"` + strings.Repeat("x", 100_000) + `"`
	w.ask(fmt.Sprintf("PUT /big.json HTTP/1.1\nHost: h\nContent-Length: %d\n\n%s", len(big), big))
	for target, length := range map[string]string{
		"/a.json": "7", "/a/b.json": "1", "/none.json": "4", "/a.json?shallow=true": "10", "/a.json?format=export": "7",
		"/big.json": "100002", "/a/.priority.json": "4",
	} {
		w.send("HEAD " + target + " HTTP/1.1\nHost: h\n\n")
		if head, _ := w.receive("HEAD"); !strings.HasPrefix(head, "HTTP/1.1 200 ") || header(head, "Content-Length") != length {
			t.Errorf("HEAD %s is answered %s, want the length %s", target, head, length)
		}
	}
	for target, status := range map[string]string{
		"/a": "404", "/a.b.json": "400", "/a.json?ns=closed": "403", "/a.json?print=silent": "204", "/a.json?print=pretty": "200", "/a.json?callback=f": "200",
	} {
		w.send("HEAD " + target + " HTTP/1.1\nHost: h\nConnection: keep-alive\n\n")
		if head, _ := w.receive("HEAD"); !strings.HasPrefix(head, "HTTP/1.1 "+status+" ") {
			t.Errorf("HEAD %s is answered %s, want %s", target, head, status)
		}
	}
	if got := w.ask("GET /a.json HTTP/1.1\nHost: h\n\n"); got != `200 {"b":1}` {
		t.Errorf("after HEAD requests GET is answered %s", got)
	}
}

func TestRawPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	w := serve(t, nil).dial()
	var all strings.Builder
	const count = 50
	for i := range count {
		fmt.Fprintf(&all, "PUT /a/k%d.json HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n%02dGET /a/k%d.json HTTP/1.1\r\nHost: h\r\n\r\n", i, i+10, i)
	}
	if _, err := io.WriteString(w.Conn, all.String()); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		for _, method := range []string{"PUT", "GET"} {
			if _, body := w.receive(method); body != strconv.Itoa(i+10) {
				t.Fatalf("%s %d is answered %s", method, i, body)
			}
		}
	}
}

func TestRawAsteriskOptions(t *testing.T) {
	t.Parallel()
	w := serve(t, nil).dial()
	if got := w.ask("OPTIONS * HTTP/1.1\nHost: h\n\n"); got != "200" {
		t.Errorf("OPTIONS * is answered %s", got)
	}
}

func TestRawCompressedAnswer(t *testing.T) {
	t.Parallel()
	w := serve(t, func(o *rest.Options) { o.MaxBodies = 64 << 20 }).dial()
	text := `"` + strings.Repeat("compress me ", 20_000) + `"`
	w.ask(fmt.Sprintf("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: %d\n\n%s", len(text), text))
	for _, accept := range []string{"gzip", "GZIP", "deflate, gzip;q=0.5", "x\nAccept-Encoding: gzip"} {
		w.send("GET /a.json HTTP/1.1\nHost: h\nAccept-Encoding: " + accept + "\n\n")
		head, body := w.receive("GET")
		if header(head, "Content-Encoding") != "gzip" || !strings.Contains(header(head, "Vary"), "Accept-Encoding") {
			t.Errorf("Accept-Encoding: %s is answered %s", accept, head)
			continue
		}
		unpacker, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(unpacker); err != nil || string(got) != text {
			t.Errorf("Accept-Encoding: %s: the answer unpacks to %.40q, %v", accept, got, err)
		}
	}
	for _, accept := range []string{"", "identity", "gzip;q=0", "gzip; q=0.000", "gzip ;\tq=0", "gzip;Q=0", "br", "gzip;q=nonsense"} {
		w.send("GET /a.json HTTP/1.1\nHost: h\nAccept-Encoding: " + accept + "\n\n")
		if head, body := w.receive("GET"); header(head, "Content-Encoding") != "" || body != text {
			t.Errorf("Accept-Encoding: %s is answered %s", accept, head)
		}
	}
}

// TestRawHeadersOfEveryAnswer looks for the headers that all answers have, and
// for those that none may have.
func TestRawHeadersOfEveryAnswer(t *testing.T) {
	t.Parallel()
	w := serve(t, nil).dial()
	for _, request := range []string{
		"GET /a.json", "GET /a", "GET /a.b.json", "GET /a.json?ns=closed", "GET /a.json?auth=x", "DELETE /a.json",
		"GET /a.json?callback=f", "GET /a.json?nope=1", "TRACE /a.json", "OPTIONS /a.json", "HEAD /a.json",
	} {
		w.send(request + " HTTP/1.1\nHost: h\n\n")
		method, _, _ := strings.Cut(request, " ")
		head, _ := w.receive(method)
		for _, want := range []string{"Cache-Control: no-cache", "Access-Control-Allow-Origin: *", "X-Content-Type-Options: nosniff"} {
			if !strings.Contains(head, "\r\n"+want+"\r\n") {
				t.Errorf("the answer to %s has no %s: %s", request, want, head)
			}
		}
		for _, unwanted := range []string{"Set-Cookie", "Server", "Access-Control-Allow-Credentials", "Location", "X-Powered-By"} {
			if header(head, unwanted) != "" {
				t.Errorf("the answer to %s has %s: %s", request, unwanted, head)
			}
		}
		names := []string{}
		for line := range strings.SplitSeq(head, "\r\n") {
			if name, _, ok := strings.Cut(line, ": "); ok {
				names = append(names, strings.ToLower(name))
			}
		}
		slices.Sort(names)
		if len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("the answer to %s has a header twice: %s", request, head)
		}
	}
}
