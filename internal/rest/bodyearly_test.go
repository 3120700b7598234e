package rest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/rest"
)

// stalled is a body that never ends.
type stalled struct{ reads int }

func (s *stalled) Read(p []byte) (int, error) {
	if s.reads++; s.reads > 1 {
		return 0, os.ErrDeadlineExceeded
	}
	p[0] = '['
	return 1, nil
}

// TestStalledBody: a body that stops is answered 408, and its connection closed,
// however short it is.
func TestStalledBody(t *testing.T) {
	t.Parallel()
	handler, _ := serveHandler(t, 4<<20)
	for _, length := range []int64{2, 1000, 1_000_000, -1} {
		for _, major := range []int{1, 2} {
			w, r := httptest.NewRecorder(), httptest.NewRequest("PUT", "https://localhost/a.json", &stalled{})
			r.ContentLength, r.ProtoMajor = length, major
			handler.ServeHTTP(w, r)
			if w.Code != http.StatusRequestTimeout || w.Header().Get("Connection") != "close" {
				t.Errorf("a body of %d bytes that stops, over HTTP/%d, is answered %d %s with %v", length, major, w.Code, w.Body, w.Header())
			}
		}
	}
	if taken := handler.BodiesTaken(); taken != 0 {
		t.Errorf("%d bytes are still taken", taken)
	}
}

// counted counts what is read of a body.
type counted struct {
	io.Reader
	bytes int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes += n
	return n, err
}

// TestDeniedBeforeTheBody: of a large body that cannot be allowed, nothing is read
// and no memory is taken; of a small one, the JSON is judged first.
func TestDeniedBeforeTheBody(t *testing.T) {
	t.Parallel()
	var opts rest.Options
	s := serve(t, func(o *rest.Options) { opts = *o })
	s.expect(`PUT /.settings/rules.json?auth=`+secret+` {"rules":{"mine":{".write":"auth != null && newData.exists()"},"text":{".write":"newData.isString()"}}}`, `200 {"status":"ok"}`)
	handler := rest.New(opts)
	put := func(method, target, body string, announced bool) (status, read int) {
		content := &counted{Reader: strings.NewReader(body)}
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, "https://localhost"+target, content)
		if r.ContentLength = -1; announced {
			r.ContentLength = int64(len(body))
		}
		handler.ServeHTTP(w, r)
		return w.Code, content.bytes
	}
	wrong := "[" + strings.Repeat(" ", 200<<10) // that is not JSON
	for _, test := range []struct {
		method, target, body string
		announced            bool
		status, most         int
	}{
		{"PUT", "/other.json", wrong, true, 403, 0},
		{"PUT", "/mine.json", wrong, true, 403, 0},
		{"PATCH", "/other.json", wrong, true, 403, 0},
		{"POST", "/mine.json", wrong, true, 403, 0},
		{"PUT", "/other.json", wrong, false, 403, 128 << 10},
		{"PUT", "/other.json", "[", true, 400, 1},
		{"PUT", "/other.json", "[1]", true, 403, 3},
		{"PUT", "/text.json", wrong, true, 400, len(wrong)}, // it may be allowed
		{"PATCH", "/.json", wrong, true, 400, len(wrong)},   // as may this
		{"PUT", "/mine.json?auth=" + secret, wrong, true, 400, len(wrong)},
	} {
		status, read := put(test.method, test.target, test.body, test.announced)
		if status != test.status || read > test.most {
			t.Errorf("%s %s of %d bytes (announced: %v) is answered %d after %d of them, want %d after at most %d", test.method, test.target,
				len(test.body), test.announced, status, read, test.status, test.most)
		}
	}
	if taken := handler.BodiesTaken(); taken != 0 {
		t.Errorf("%d bytes are still taken", taken)
	}
}
