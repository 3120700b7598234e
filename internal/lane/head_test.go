package lane

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// parse reads a head as a connection does.
func parse(head string) (*request, bool) {
	c := &conn{lane: New(Options{Context: testContext})}
	c.request.reset(c)
	return &c.request, c.request.parse(head)
}

var ordinaryHeads = []string{
	"GET /a/b.json HTTP/1.1\r\nHost: localhost:9000\r\n",
	"GET /.json?auth=x%20y&print=silent HTTP/1.1\r\nHost: [::1]:9000\r\nUser-Agent: curl/8\r\nAccept: */*\r\n",
	"GET /a%2Fb/%C3%A9.json?orderBy=\"$key\" HTTP/1.1\r\nhost: db.example.com\r\n",
	"GET //a.json? HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\ncontent-type: application/json\r\n",
	"PATCH /a.json HTTP/1.1\r\nX-FIREBASE-ETAG: true\r\nHost: a\r\ncontent-length: 0\r\nif-match:\t null_etag \r\n",
	"POST /a.json HTTP/1.1\r\nHost: a\r\n",
	"DELETE /a.json HTTP/1.1\r\nHost: a\r\nAccept: a\r\nAccept: b\r\nX-Odd: \xc3\xa9\r\n",
}

var extraordinaryHeads = []string{
	"",
	"\r\n",
	"GET\r\n",
	"GET /a.json\r\n",
	"GET /a.json HTTP/1.0\r\nHost: a\r\n",
	"GET /a.json  HTTP/1.1\r\nHost: a\r\n",
	"GET  /a.json HTTP/1.1\r\nHost: a\r\n",
	"GET http://a/a.json HTTP/1.1\r\nHost: a\r\n",
	"GET * HTTP/1.1\r\nHost: a\r\n",
	"GET /%zz HTTP/1.1\r\nHost: a\r\n",
	"GET /\x01 HTTP/1.1\r\nHost: a\r\n",
	"get /a.json HTTP/1.1\r\nHost: a\r\n",
	"HEAD /a.json HTTP/1.1\r\nHost: a\r\n",
	"OPTIONS /a.json HTTP/1.1\r\nHost: a\r\n",
	"CONNECT /a.json HTTP/1.1\r\nHost: a\r\n",
	"GET /a.json HTTP/1.1\r\n",                       // without a host
	"GET /a.json HTTP/1.1\r\nHost: \r\n",             //
	"GET /a.json HTTP/1.1\r\nHost: a\r\nHost: a\r\n", // with two
	"GET /a.json HTTP/1.1\r\nHost:\r\nHost: a\r\n",   //
	"GET /a.json HTTP/1.1\r\nHost: a b\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a@b\r\n",
	"GET /a.json HTTP/1.1\nHost: a\n",
	"GET /a.json HTTP/1.1\r\nHost: a\nX: y\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\n folded: b\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nX : b\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\n: b\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nX\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nAccept: */*, TEXT/Event-Stream;q=1\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nAccept: text/event-\u017ftream\r\n", // which is the same to strings.EqualFold
	"GET /a.json HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n",
	"DELETE /a.json HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000000\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\nContent-Length: 3\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n",
	"PUT /a.json HTTP/1.1\r\nHost: a\r\nTrailer: x\r\nContent-Length: 3\r\n",
	"GET /a.json HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", maxHeaders+1),
}

func TestOrdinaryHeads(t *testing.T) {
	for _, head := range ordinaryHeads {
		if _, ok := parse(head); !ok {
			t.Errorf("%q is not ordinary", head)
		}
		compare(t, head)
	}
	for _, head := range extraordinaryHeads {
		if _, ok := parse(head); ok {
			t.Errorf("%q is ordinary", head)
		}
	}
}

// compare holds what is accepted against net/http: it must accept it too, read the
// same, and end where we do.
func compare(t *testing.T, head string) {
	q, ok := parse(head)
	if !ok {
		return
	}
	const behind = "GET /other.json HTTP/1.1\r\n"
	text := head + "\r\n" + strings.Repeat("x", int(min(q.body.left, 1<<16))) + behind
	reader := bufio.NewReader(strings.NewReader(text))
	want, err := http.ReadRequest(reader)
	if err != nil {
		t.Fatalf("net/http refuses %q: %v", head, err)
	}
	got := &q.http
	type request struct {
		method, uri, host, proto string
		url                      url.URL
		header                   http.Header
		length                   int64
		chunked                  int
		last                     bool
	}
	flat := func(r *http.Request) request {
		return request{r.Method, r.RequestURI, r.Host, r.Proto, *r.URL, r.Header, r.ContentLength, len(r.TransferEncoding), r.Close}
	}
	if g, w := flat(got), flat(want); !reflect.DeepEqual(g, w) {
		t.Fatalf("%q is read as\n%+v\nwant\n%+v", head, g, w)
	}
	if q.body.left > 1<<16 {
		return
	}
	_, _ = io.Copy(io.Discard, want.Body)
	if rest, _ := io.ReadAll(reader); string(rest) != behind {
		t.Fatalf("net/http goes on behind %q at %q", head, rest)
	}
}

// FuzzHead compares with net/http: what a lane accepts, net/http reads the same.
func FuzzHead(f *testing.F) {
	for _, head := range append(ordinaryHeads, extraordinaryHeads...) {
		f.Add(head)
	}
	f.Fuzz(func(t *testing.T, head string) {
		if !strings.Contains(head, "\r\n\r\n") { // which a connection ends it at
			compare(t, head)
		}
	})
}
