// Package s3test is as much of S3 as an archive needs, for tests: one bucket in memory, which can fail, and hold requests up.
package s3test

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Fake serves a bucket of the name "bucket". Its key has the id "id"; the secret is not looked at.
type Fake struct {
	*httptest.Server
	// IgnoreNew has it put over objects although it was asked not to, as older services do. It is set before the first request.
	IgnoreNew bool

	mu      sync.Mutex
	objects map[string][]byte
	fail    func(r *http.Request) int
	hold    func(r *http.Request)
	refused []string
}

// New starts one, which ends with the test.
func New(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{objects: map[string][]byte{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// SetFail has requests fail with the status that a function returns, if that is not 0; -1 cuts the connection after the work is done.
func (f *Fake) SetFail(fail func(r *http.Request) int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// SetHold has a function be called with each request before it is done. While it does not return, only that request waits.
func (f *Fake) SetHold(hold func(r *http.Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold = hold
}

// Store puts an object, whatever was there.
func (f *Fake) Store(key string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[key] = content
}

// Keys returns the names of all objects.
func (f *Fake) Keys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.objects))
}

// Refused returns the names of objects that were not put because they were there, in the order of the requests.
func (f *Fake) Refused() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.refused)
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	content, err := body(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	f.mu.Lock()
	hold := f.hold
	f.mu.Unlock()
	if hold != nil {
		hold(r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	status := 0
	if f.fail != nil {
		status = f.fail(r)
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case status > 0:
		refuse(w, status, "Fault")
	case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=id/"):
		refuse(w, http.StatusForbidden, "AccessDenied")
	case bucket != "bucket":
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case key == "":
		f.list(w, r)
	default:
		f.object(w, r, key, content)
	}
	if status < 0 {
		panic(http.ErrAbortHandler)
	}
}

func (f *Fake) object(w http.ResponseWriter, r *http.Request, key string, content []byte) {
	there, ok := f.objects[key]
	switch {
	case r.Method == http.MethodPut && ok && r.Header.Get("If-None-Match") == "*" && !f.IgnoreNew:
		f.refused = append(f.refused, key)
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		f.objects[key] = content
		w.Header().Set("ETag", `"etag"`)
	case r.Method == http.MethodDelete:
		delete(f.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !ok:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", `"etag"`)
		w.Header().Set("Last-Modified", "Tue, 14 Nov 2023 22:13:20 GMT")
		w.Header().Set("Content-Length", strconv.Itoa(len(there)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(there)
		}
	}
}

// body reads what was sent, also if it was sent in signed chunks.
func body(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	var all []byte
	for from := bufio.NewReader(r.Body); ; {
		line, err := from.ReadString('\n')
		if err != nil {
			return nil, err
		}
		digits, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		size, err := strconv.ParseInt(digits, 16, 32)
		if err != nil || size == 0 {
			return all, err
		}
		chunk := make([]byte, size+2)
		if _, err := io.ReadFull(from, chunk); err != nil {
			return nil, err
		}
		all = append(all, chunk[:size]...)
	}
}

func (f *Fake) list(w http.ResponseWriter, r *http.Request) {
	type contents struct {
		Key  string
		Size int
	}
	var answer struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []contents
	}
	query := r.URL.Query()
	after := max(query.Get("start-after"), query.Get("continuation-token"))
	most, err := strconv.Atoi(query.Get("max-keys"))
	if err != nil {
		most = 1000
	}
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		if !strings.HasPrefix(key, query.Get("prefix")) || key <= after {
			continue
		}
		if len(answer.Contents) == most {
			answer.IsTruncated = true
			answer.NextContinuationToken = answer.Contents[most-1].Key
			break
		}
		answer.Contents = append(answer.Contents, contents{key, len(f.objects[key])})
	}
	_ = xml.NewEncoder(w).Encode(answer)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>a message</Message></Error>", code)
}
