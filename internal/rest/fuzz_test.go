package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/rest"
)

// fuzzHandler returns a handler with some data.
func fuzzHandler(f *testing.F) http.Handler {
	f.Helper()
	var handler http.Handler
	s := serve(f, func(o *rest.Options) { handler = rest.New(*o) })
	s.expect(`PUT /.json?print=silent `+victimData, "204")
	return handler
}

// mayFail are the answers above 500 that a client can ask for.
var mayFail = map[int]bool{http.StatusNotImplemented: true, http.StatusServiceUnavailable: true, http.StatusHTTPVersionNotSupported: true}

// FuzzHTTP sends bytes as a request. Whatever they are, the server does not panic
// and takes no blame.
func FuzzHTTP(f *testing.F) {
	for _, text := range []string{
		"GET /a.json HTTP/1.1\r\nHost: h\r\n\r\n",
		"PUT /a/b.json?print=silent HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
		"PATCH /.json?auth=" + secret + " HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1}\r\n0\r\n\r\n",
		"POST /a.json?x-http-method-override=DELETE HTTP/1.1\r\nHost: h\r\nIf-Match: x\r\n\r\n",
		"GET /.settings/rules.json HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + secret + "\r\n\r\n",
		"GET /a%2Fb/.priority.json?orderBy=%22$key%22&limitToLast=1&ns=closed HTTP/1.1\r\nHost: h\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: h\r\nOrigin: x\r\n\r\n",
	} {
		f.Add(text)
	}
	handler := fuzzHandler(f)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil || strings.Contains(r.Header.Get("Accept"), "event-stream") {
			return // net/http answers it, or it would be a stream
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 && !mayFail[w.Code] {
			t.Errorf("%q is answered %d %s", text, w.Code, w.Body)
		}
	})
}

var (
	scriptText = regexp.MustCompile(`^/\*\*/[A-Za-z_$][\w$.]{0,127}\((?s:.*)\);$`)
	fileName   = regexp.MustCompile(`[/\\]`)
)

// FuzzParameters asks for a node with any query string. A script is of the one
// allowed form, a file name has no directory, and JSON is JSON.
func FuzzParameters(f *testing.F) {
	for _, query := range []string{
		"callback=f", "callback=a.b$c&print=pretty", "download=../a.json", "download=%22;x", "shallow=true&print=pretty", "format=export",
		`orderBy="$key"&limitToFirst=1`, `orderBy="a/b"&startAt="x"&endAt=5`, "timeout=3s&writeSizeLimit=tiny", "ns=default&auth=" + secret, "explain=true", `list=true&startAt="a"&limitToLast=3&cut=20`, "outline=5", "a=%zz", "callback=f&callback=g",
	} {
		f.Add(query)
	}
	handler := fuzzHandler(f)
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest(http.MethodGet, "/a.json", nil)
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		kind, _, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
		switch body := w.Body.String(); {
		case w.Code >= 500 && !mayFail[w.Code]:
			t.Errorf("%q is answered %d %s", query, w.Code, body)
		case w.Code == http.StatusNoContent || w.Code == http.StatusNotModified:
		case err != nil:
			t.Errorf("%q is answered with the type %q", query, w.Header().Get("Content-Type"))
		case kind == "application/javascript" && !scriptText.MatchString(body):
			t.Errorf("%q is answered with the script %q", query, body)
		case kind == "application/json" && !json.Valid([]byte(body)):
			t.Errorf("%q is answered with %q, which is no JSON", query, body)
		}
		if disposition := w.Header().Get("Content-Disposition"); disposition != "" {
			_, names, err := mime.ParseMediaType(disposition)
			if err != nil || names["filename"] == "" || fileName.MatchString(names["filename"]) {
				t.Errorf("%q is to be saved as %q: %v", query, disposition, err)
			}
		}
	})
}

// FuzzSSE puts any string and any key into the tree and reads them back from a
// stream, by the rules for event streams: a line of data is one line.
func FuzzSSE(f *testing.F) {
	f.Add("k", "text")
	f.Add("\u2028", "a\nb\r\nc\rd\u2028e\x00f\ndata: x\n\n")
	f.Add("é", "\\n\"</script>\ufeff")
	streams := outbox.New(outbox.Options{})
	f.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		streams.Close(ended)
	})
	s := serve(f, func(o *rest.Options) { o.Streams = streams })
	f.Fuzz(func(t *testing.T, key, value string) {
		want, err := json.Marshal(map[string]string{"k" + key: value}) // 0 alone would be an array
		if err != nil {
			return
		}
		r, err := http.NewRequest(http.MethodPut, s.URL+"/sse.json?print=silent", strings.NewReader(string(want)))
		if err != nil {
			t.Fatal(err)
		}
		put, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		put.Body.Close()
		if put.StatusCode != http.StatusNoContent {
			return // the key is none
		}
		r, err = http.NewRequest(http.MethodGet, s.URL+"/sse.json?"+url.Values{"_": {key}}.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		answer, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var event struct{ Data json.RawMessage }
		if err := json.Unmarshal([]byte(firstData(t, answer)), &event); err != nil {
			t.Fatal(err)
		}
		var got, wanted any
		if json.Unmarshal(event.Data, &got) != nil || json.Unmarshal(want, &wanted) != nil || !equalJSON(got, wanted) {
			t.Errorf("%q is told as %q", want, event.Data)
		}
	})
}

// firstData returns the data of the first event. A line ends with CR, LF or both.
func firstData(t *testing.T, answer *http.Response) string {
	t.Helper()
	in := bufio.NewReader(answer.Body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ends: %v", err)
		}
		if strings.Contains(strings.TrimSuffix(line, "\n"), "\r") {
			t.Fatalf("the line %q is two", line)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSuffix(data, "\n")
		}
	}
}

func equalJSON(a, b any) bool {
	first, _ := json.Marshal(a) // both were unmarshalled
	second, _ := json.Marshal(b)
	return string(first) == string(second)
}
