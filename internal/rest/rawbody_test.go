package rest_test

import (
	"io"
	"strings"
	"testing"
)

func TestRawBodyIsIgnoredWhereNoneBelongs(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

func TestRawLengthsThatDisagree(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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

func TestRawChunkedBody(t *testing.T) {
	t.Parallel()
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
