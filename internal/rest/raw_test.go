package rest_test

import (
	"bufio"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/tree"
)

// These tests send and read bytes: device libraries do the same, and search for
// literal text in what comes back. http.Client would hide it.

// A wire is one connection of HTTP/1.1 to a server.
type wire struct {
	t testing.TB
	*tls.Conn
	in *bufio.Reader
}

// patience is how long a test waits for what should come at once, on a machine
// that has much else to do.
const patience = 3 * time.Minute

func (s *server) dial() *wire {
	s.t.Helper()
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	w := &wire{s.t, conn, bufio.NewReader(conn)}
	w.extend()
	return w
}

// extend gives the connection time for one more exchange.
func (w *wire) extend() {
	if err := w.SetDeadline(time.Now().Add(patience)); err != nil {
		w.t.Fatal(err)
	}
}

// send writes a request as wireText makes it.
func (w *wire) send(text string) {
	w.t.Helper()
	w.extend()
	if _, err := io.WriteString(w.Conn, wireText(text)); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// wireText returns a text in which newlines are CR LF up to the first empty
// line.
func wireText(text string) string {
	head, body, isWhole := strings.Cut(text, "\n\n")
	head = strings.ReplaceAll(head, "\n", "\r\n")
	if isWhole {
		head += "\r\n\r\n"
	}
	return head + body
}

// head reads the head of an answer.
func (w *wire) head() string {
	w.t.Helper()
	var head strings.Builder
	for {
		line, err := w.in.ReadString('\n')
		head.WriteString(line)
		if err != nil {
			w.t.Fatalf("read a head after %q: %v", head.String(), err)
		}
		if line == "\r\n" {
			return head.String()
		}
	}
}

// receive reads an answer. A request with HEAD is answered without a body.
func (w *wire) receive(method string) (head, body string) {
	w.t.Helper()
	head = w.head()
	status := head[len("HTTP/1.1 "):][:3]
	if method == "HEAD" || status == "204" || status == "304" || status[0] == '1' {
		return head, ""
	}
	from := io.Reader(w.in)
	if length := header(head, "Content-Length"); length != "" {
		n, err := strconv.Atoi(length)
		if err != nil {
			w.t.Fatal(err)
		}
		from = io.LimitReader(w.in, int64(n))
	} else if header(head, "Transfer-Encoding") == "chunked" {
		from = httputil.NewChunkedReader(w.in)
	}
	text, err := io.ReadAll(from)
	if err != nil {
		w.t.Fatalf("read the body after %q: %v", head, err)
	}
	if header(head, "Transfer-Encoding") == "chunked" {
		if _, err := w.in.Discard(2); err != nil { // the end of the last chunk
			w.t.Fatal(err)
		}
	}
	return head, string(text)
}

// ask sends a request and returns the status and the body of its answer.
func (w *wire) ask(text string) string {
	w.t.Helper()
	w.send(text)
	method, _, _ := strings.Cut(text, " ")
	head, body := w.receive(method)
	return strings.TrimSpace(head[len("HTTP/1.1 "):][:3] + " " + body)
}

// isClosed reports whether the server has ended the connection. It waits for
// that, so it is for cases in which either is known to come: bytes or the end.
func (w *wire) isClosed() bool {
	w.t.Helper()
	_, err := w.in.ReadByte()
	if err == nil {
		w.t.Fatal("there are bytes after the answer")
	}
	return errors.Is(err, io.EOF)
}

// header returns a header of a head in its exact spelling, empty if it is not
// there.
func header(head, name string) string {
	_, rest, ok := strings.Cut(head, "\r\n"+name+": ")
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

func TestRawETagIsSpelledAsDevicesSearchIt(t *testing.T) {
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
	w := serve(t, nil).dial()
	if got := w.ask("POST /a.json HTTP/1.1\nHost: h\nContent-Length: 7\n\n{\"a\":1}"); !strings.HasPrefix(got, `200 {"name":"-`) || len(got) != len(`200 {"name":""}`)+20 {
		t.Errorf("POST is answered %s", got)
	}
}

func TestRawSilentEndsTheConnectionUnlessAsked(t *testing.T) {
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

func TestRawBodyIsIgnoredWhereNoneBelongs(t *testing.T) {
	w := serve(t, nil).dial()
	for _, exchange := range [][2]string{
		{"PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 1\n\n1", "200 1"},
		{"GET /a.json HTTP/1.1\nHost: h\nContent-Length: 4\n\nnull", "200 1"},
		{"GET /a.json HTTP/1.1\nHost: h\nContent-Length: 7\nContent-Encoding: gzip\n\n{not js", "200 1"},
		{"HEAD /a.json HTTP/1.1\nHost: h\nContent-Length: 4\n\nnull", "200"},
		{"DELETE /b.json HTTP/1.1\nHost: h\nContent-Length: 4\n\nnull", "200 null"},
		{"DELETE /a.json HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n4\r\nnull\r\n0\r\n\r\n", "200 null"},
		{"OPTIONS /a.json HTTP/1.1\nHost: h\nContent-Length: 4\n\nnull", "200"},
		{"GET /a.json HTTP/1.1\nHost: h\n\n", "200 null"},
	} {
		if got := w.ask(exchange[0]); got != exchange[1] {
			t.Errorf("%q is answered %s, want %s", exchange[0], got, exchange[1])
		}
	}
}

func TestRawContentTypeIsIgnored(t *testing.T) {
	w := serve(t, nil).dial()
	for _, contentType := range []string{
		"application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x",
		"application/json; charset=iso-8859-1", "", ";;;", "*/*",
	} {
		got := w.ask("PUT /a.json HTTP/1.1\nHost: h\nContent-Type: " + contentType + "\nContent-Length: 5\n\n\"a=b\"")
		if got != `200 "a=b"` {
			t.Errorf("a body of type %q is answered %s", contentType, got)
		}
	}
}

func TestRawQueryBytes(t *testing.T) {
	w := serve(t, nil).dial()
	w.ask("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 1\n\n1")
	for query, want := range map[string]string{
		`_="x"`:                   "200 1",
		`_="x"&_2=`:               "400 " + errorBody(`unknown parameter \"_2\"`) + "\n",
		`_=$key&print=pretty`:     "200 1",
		"_=\u00e9\U0001f600":      "200 1",
		"_=[]{}|\\^`<>":           "200 1",
		"":                        "200 1",
		"&&":                      "200 1",
		"_":                       "200 1",
		"print=pre%74ty":          "200 1",
		"%70rint=pretty":          "200 1",
		"print=+pretty":           "400 " + errorBody("print must be pretty or silent") + "\n",
		"print=pretty#fragment":   "400 " + errorBody("print must be pretty or silent") + "\n",
		"_=%":                     "400 " + errorBody("the query string cannot be parsed") + "\n",
		"_=1;print=pretty":        "400 " + errorBody("the query string cannot be parsed") + "\n",
		"a+b=1":                   "400 " + errorBody(`unknown parameter \"a b\"`) + "\n",
		"%00=1":                   "400 " + errorBody(`unknown parameter \"\\x00\"`) + "\n",
		strings.Repeat("_&", 120): "400 " + errorBody("more than 100 parameters") + "\n",
	} {
		if got := w.ask("GET /a.json?" + query + " HTTP/1.1\nHost: h\n\n"); got != strings.TrimSpace(want) {
			t.Errorf("the query %.40q is answered %s, want %s", query, got, want)
		}
	}
	w.send("GET /a.json?download=a+b%2B%22c HTTP/1.1\nHost: h\n\n")
	if head, _ := w.receive("GET"); header(head, "Content-Disposition") != `attachment; filename="a b+\"c"` {
		t.Errorf("a plus in a file name is answered %s", head)
	}
}

func TestRawLengthsThatDisagree(t *testing.T) {
	s := serve(t, nil)
	for name, request := range map[string]string{
		"two lengths":             "PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 1\nContent-Length: 2\n\n12",
		"a list of lengths":       "PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 1, 2\n\n12",
		"a negative length":       "PUT /a.json HTTP/1.1\nHost: h\nContent-Length: -1\n\n1",
		"a length with a sign":    "PUT /a.json HTTP/1.1\nHost: h\nContent-Length: +1\n\n1",
		"a huge length":           "PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 99999999999999999999\n\n1",
		"two hosts":               "PUT /a.json HTTP/1.1\nHost: h\nHost: i\nContent-Length: 1\n\n1",
		"no host":                 "PUT /a.json HTTP/1.1\nContent-Length: 1\n\n1",
		"a bad host":              "PUT /a.json HTTP/1.1\nHost: a b\nContent-Length: 1\n\n1",
		"an encoding of transfer": "PUT /a.json HTTP/1.1\nHost: h\nTransfer-Encoding: gzip\n\n1",
		"two of them":             "PUT /a.json HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\nTransfer-Encoding: identity\n\n1\r\n1\r\n0\r\n\r\n",
		"a folded header":         "PUT /a.json HTTP/1.1\nHost: h\nX-A: b\n c\nContent-Length: 1\nBad Name: x\n\n1",
		"a header without a name": "PUT /a.json HTTP/1.1\nHost: h\n: x\nContent-Length: 1\n\n1",
		"a space before a colon":  "PUT /a.json HTTP/1.1\nHost: h\nContent-Length : 1\n\n1",
		"a NUL in a header":       "PUT /a.json HTTP/1.1\nHost: h\nX-A: \x00\nContent-Length: 1\n\n1",
		"a space in the target":   "PUT /a b.json HTTP/1.1\nHost: h\nContent-Length: 1\n\n1",
		"a bad escape":            "PUT /a%zz.json HTTP/1.1\nHost: h\nContent-Length: 1\n\n1",
		"half an escape":          "PUT /a.json%2 HTTP/1.1\nHost: h\nContent-Length: 1\n\n1",
		"no version":              "PUT /a.json\nHost: h\nContent-Length: 1\n\n1",
		"a version to come":       "PUT /a.json HTTP/3.0\nHost: h\nContent-Length: 1\n\n1",
		"a bad chunk":             "PUT /a.json HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\nzz\r\n1\r\n0\r\n\r\n",
		"another expectation":     "PUT /a.json HTTP/1.1\nHost: h\nExpect: more\nContent-Length: 1\n\n1",
	} {
		w := s.dial()
		w.send(request)
		if head, _ := w.receive("PUT"); head[len("HTTP/1.1 ")] != '4' && !strings.HasPrefix(head, "HTTP/1.1 501 ") && !strings.HasPrefix(head, "HTTP/1.1 505 ") {
			t.Errorf("%s is answered %s", name, head)
		}
		if !w.isClosed() {
			t.Errorf("%s: the connection stays open, and what follows could be taken for a request", name)
		}
		s.expect("GET /.json", "200 null")
	}
	// Equal lengths mean one thing only, and chunks win over a length.
	w := s.dial()
	if got := w.ask("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 1\nContent-Length: 1\n\n1"); got != "200 1" {
		t.Errorf("two equal lengths are answered %s", got)
	}
	w = s.dial()
	w.send("PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 3\nTransfer-Encoding: chunked\n\n1\r\n2\r\n0\r\n\r\n")
	if head, body := w.receive("PUT"); !strings.HasPrefix(head, "HTTP/1.1 200 ") || body != "2" {
		t.Errorf("a length and chunks are answered %s%s", head, body)
	}
}

func TestRawExpectContinue(t *testing.T) {
	s := serve(t, nil)
	w := s.dial()
	w.send("PUT /a.json HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 1\n\n")
	if head := w.head(); head != "HTTP/1.1 100 Continue\r\n\r\n" {
		t.Fatalf("before the body comes %q", head)
	}
	if _, err := w.Write([]byte("1")); err != nil {
		t.Fatal(err)
	}
	if head, body := w.receive("PUT"); !strings.HasPrefix(head, "HTTP/1.1 200 ") || body != "1" {
		t.Errorf("the answer is %s%s", head, body)
	}
	// Who is refused is not asked for the body.
	for request, status := range map[string]string{
		"PUT /a HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 1\n\n":                                     "404",
		"PUT /a.json?auth=x HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 1\n\n":                         "401",
		"PUT /a.json?nope=1 HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 1\n\n":                         "400",
		"PUT /a.json HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 99999999\n\n":                         "400",
		"PUT /a.json HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Encoding: gzip\nContent-Length: 9\n\n":        "415",
		"PUT /a.json HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 0\n\n":                                "400",
		"GET /a.json HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 4\n\n":                                "200",
		"POST /a.json?x-http-method-override=GET HTTP/1.1\nHost: h\nExpect: 100-continue\nContent-Length: 1000\n\n": "400",
	} {
		w := s.dial()
		w.send(request)
		if head := w.head(); !strings.HasPrefix(head, "HTTP/1.1 "+status+" ") {
			t.Errorf("%q is answered %s, want %s", request, head, status)
		}
	}
	s.expect("GET /.json", `200 {"a":1}`)
}

// TestRawHalfARequest ends requests in the middle: nothing of them is written.
func TestRawHalfARequest(t *testing.T) {
	s := serve(t, nil)
	for _, half := range []string{
		"P",
		"PUT /a.json HTTP/1.1\nHost: h\nContent-Le",
		"PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 9\n\n",
		"PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 9\n\n1",
		"PUT /a.json HTTP/1.1\nHost: h\nContent-Length: 9\n\n{\"b\":1}",
		"POST /a.json HTTP/1.1\nHost: h\nContent-Length: 9\n\n{\"b\":1}",
		"PATCH /a.json HTTP/1.1\nHost: h\nContent-Length: 9\n\n{\"b\":1}",
		"PATCH /a.json HTTP/1.1\nHost: h\nContent-Length: 9\n\nnull",
		"PUT /a/.priority.json HTTP/1.1\nHost: h\nContent-Length: 9\n\n1",
		"PUT /a.json HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n1\r\n1\r\n",
		"PUT /a.json HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n1\r\n1\r\n0\r\n",
	} {
		w := s.dial()
		w.send(half)
		if err := w.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(w.in) // until the server has ended it too
		if err != nil {
			t.Errorf("%q: %v", half, err)
		}
		if len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
			t.Errorf("%q is answered %s", half, answer)
		}
		s.expect("GET /.json", "200 null")
	}
}

func TestRawHead(t *testing.T) {
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

func TestRawChunkedBody(t *testing.T) {
	w := serve(t, nil).dial()
	for _, exchange := range [][2]string{
		{"8\r\n{\"a\":\"\xc3\xa9\r\n2\r\n\"}\r\n0\r\n\r\n", `200 {"a":"é"}`},
		{"7\r\n{\"a\":\"\xc3\r\n3\r\n\xa9\"}\r\n0\r\n\r\n", `200 {"a":"é"}`},
		{"1\r\n1\r\n1\r\n2\r\n1\r\n3\r\n0\r\n\r\n", "200 123"},
		{"3;name=value\r\n123\r\n0\r\n\r\n", "200 123"},
		{"3\r\n123\r\n0\r\nX-Trailer: y\r\n\r\n", "200 123"},
		{"0\r\n\r\n", "400 " + errorBody("Error: No data supplied.")},
		{"2\r\ntr\r\n2\r\nue\r\n0\r\n\r\n", "200 true"},
	} {
		got := w.ask("PUT /a.json HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n" + exchange[0])
		if got != exchange[1] {
			t.Errorf("the chunks %q are answered %s, want %s", exchange[0], got, exchange[1])
		}
	}
}

// TestRawBytesOfPaths tries every byte in a path, raw and in both spellings of
// its escape.
func TestRawBytesOfPaths(t *testing.T) {
	s := serve(t, nil)
	w := s.dial()
	for b := range 256 {
		key := "k" + string([]byte{byte(b)}) + "k"
		valid := tree.CheckKey(key) == nil
		want := "400"
		if valid {
			want = "200"
		}
		for _, spelling := range []string{"k%%%02Xk", "k%%%02xk"} {
			target := "/" + fmt.Sprintf(spelling, b) + ".json"
			if got := w.ask("PUT " + target + " HTTP/1.1\nHost: h\nContent-Length: 1\n\n1"); got[:3] != want {
				t.Errorf("PUT %s is answered %s, want %s", target, got, want)
			}
		}
		if !valid {
			continue
		}
		if got := w.ask("GET /.json HTTP/1.1\nHost: h\n\n"); got != "200 "+string(tree.AppendString([]byte("{"), key))+":1}" {
			t.Errorf("after PUT at the escaped key %q, the tree is %s", key, got)
		}
		if got := w.ask("DELETE /.json HTTP/1.1\nHost: h\n\n"); got != "200 null" {
			t.Fatal(got)
		}
		if strings.ContainsRune("%? ", rune(b)) || b >= 0x80 {
			continue // it means something else, or is half a character
		}
		if got := w.ask("PUT /k" + string(rune(b)) + "k.json HTTP/1.1\nHost: h\nContent-Length: 1\n\n1"); got != "200 1" {
			t.Errorf("PUT at the raw key %q is answered %s", key, got)
		}
		if got := w.ask("GET /" + fmt.Sprintf("k%%%02Xk", b) + ".json HTTP/1.1\nHost: h\n\n"); got != "200 1" {
			t.Errorf("after PUT at the raw key %q, GET is answered %s", key, got)
		}
		if got := w.ask("DELETE /.json HTTP/1.1\nHost: h\n\n"); got != "200 null" {
			t.Fatal(got)
		}
	}
}

// TestRawEscapesAreDecodedOnce has paths with escapes that mean something else
// when they are decoded before the path is split, or twice.
func TestRawEscapesAreDecodedOnce(t *testing.T) {
	s := serve(t, nil)
	s.expect(`PUT /.json {"a":{"b":"deep"},"é":{"b":"deep"}}`, `200 {"a":{"b":"deep"},"é":{"b":"deep"}}`)
	w := s.dial()
	for target, want := range map[string]string{
		"/a%2Fb.json":             "400",
		"/a%2fb.json":             "400",
		"/a%252Fb.json":           "200 null",
		"/%61%2F%62.json":         "400",
		"/a/b.json":               `200 "deep"`,
		"/%61/%62.json":           `200 "deep"`,
		"/a%5Cb.json":             "200 null",
		"/a\\b.json":              "200 null",
		"/\xc3\xa9/b.json":        `200 "deep"`,
		"/%c3%a9/b.json":          `200 "deep"`,
		"/\xc3\xa9%2Fb.json":      "400",
		"/\"%2Fb.json":            "400",
		"/a%2Fb/\"/.json":         "400",
		"/a/b%2F.json?\"":         "400",
		"/{}%2Fb.json":            "400",
		"/|%252Fb.json":           "200 null",
		"/\"/%2e%2e/a/b.json":     "400",
		"/%2e%2e/a/b.json":        "400",
		"/a/../a/b.json":          "400",
		"/a/./b.json":             "400",
		"/%2E/b.json":             "400",
		"/a/b%2Ejson":             "404",
		"/\"/b%2Ejson":            "404",
		"/a/b.json%00":            "404",
		"/a/b%00.json":            "400",
		"/a/b.json%3Fauth=x":      "404",
		"/a%3Fb.json":             "200 null",
		"/a%23b.json":             "400",
		"/a#b.json":               "400",
		"/a+b.json":               "200 null",
		"/%2B.json":               "200 null",
		"/.settings%2Frules.json": "400",
		"/.settings/rules.json":   "403",
		"/%2Esettings/rules.json": "400",
		"/.Settings/rules.json":   "400",
		"/a/.settings/rules.json": "400",
		"https://h/a/b.json":      `200 "deep"`,
		"https://other/a/b.json":  `200 "deep"`,
		"http://h/a/b.json":       `200 "deep"`,
		"https://h":               "404",
		"https:a/b.json":          "404",
		"*":                       "404",
		"//a/b.json":              `200 "deep"`,
		"//h/a/b.json":            "200 null",
	} {
		got := w.ask("GET " + target + " HTTP/1.1\nHost: h\n\n")
		if len(want) == 3 {
			got = got[:3]
		}
		if got != want {
			t.Errorf("GET %q is answered %s, want %s", target, got, want)
		}
	}
}

func TestRawAsteriskOptions(t *testing.T) {
	w := serve(t, nil).dial()
	if got := w.ask("OPTIONS * HTTP/1.1\nHost: h\n\n"); got != "200" {
		t.Errorf("OPTIONS * is answered %s", got)
	}
}

func TestRawCompressedAnswer(t *testing.T) {
	w := serve(t, nil).dial()
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
	for _, accept := range []string{"", "identity", "gzip;q=0", "gzip; q=0.000", "br", "gzip;q=nonsense"} {
		w.send("GET /a.json HTTP/1.1\nHost: h\nAccept-Encoding: " + accept + "\n\n")
		if head, body := w.receive("GET"); header(head, "Content-Encoding") != "" || body != text {
			t.Errorf("Accept-Encoding: %s is answered %s", accept, head)
		}
	}
}

// TestRawHeadersOfEveryAnswer looks for the headers that all answers have, and
// for those that none may have.
func TestRawHeadersOfEveryAnswer(t *testing.T) {
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
