package rowshttp_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/rows/rowshttp"
	"github.com/livetree/livetree/internal/shares"
	"github.com/livetree/livetree/internal/store"
)

// A stand is handlers with a database, behind HTTP.
type stand struct {
	*enginetest.Fixture
	handlers *rowshttp.Handlers
	url      string
	ahead    atomic.Int64 // by how many seconds the clock is ahead
}

func newStand(t *testing.T) *stand {
	s := &stand{Fixture: enginetest.Open(t, store.Options{})}
	s.handlers = rowshttp.New(rowshttp.Options{
		Now: func() time.Time {
			return time.Now().Add(time.Duration(s.ahead.Load()) * time.Second)
		},
		Logger: slog.New(slog.DiscardHandler), MaxCopy: 1 << 20,
	})
	mux := http.NewServeMux()
	with := func(f func(http.ResponseWriter, *http.Request, *engine.Database)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { f(w, r, s.Database) }
	}
	mux.HandleFunc("POST /watch", with(s.handlers.Watch))
	mux.HandleFunc("GET /changes", with(s.handlers.Changes))
	mux.HandleFunc("GET /denials", with(s.handlers.Denials))
	me := shares.Who{Session: "me"}
	mux.HandleFunc("POST /copy", func(w http.ResponseWriter, r *http.Request) { s.handlers.Copy(w, r, s.Database, me) })
	mux.HandleFunc("POST /find", func(w http.ResponseWriter, r *http.Request) { s.handlers.Find(w, r, s.Database, me) })
	mux.HandleFunc("POST /exports", func(w http.ResponseWriter, r *http.Request) { s.handlers.Export(w, r, s.Database, me, admitAll) })
	mux.HandleFunc("GET "+rowshttp.ExportsPath+"{token}", func(w http.ResponseWriter, r *http.Request) { s.handlers.Download(w, r) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *stand) do(ctx context.Context, method, path, body string) *http.Response {
	s.T.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func (s *stand) text(answer *http.Response) string {
	s.T.Helper()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return string(text)
}

// event returns the next event of a stream that is not a keep-alive: its name and its data.
func event(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	name := ""
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = text
		}
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && name != "keep-alive" {
			return name + " " + text
		}
	}
	t.Fatal("the stream has ended")
	return ""
}

// TestStreams: each begins with an id, and tells what happens.
func TestStreams(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.Put("/a", `{"x":1}`)
	watch := s.do(t.Context(), "POST", "/watch", `{"locations":[{"path":"/a"}]}`)
	changes := s.do(t.Context(), "GET", "/changes?under=/a", "")
	for _, answer := range []*http.Response{watch, changes} {
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("a stream begins with %v", answer)
		}
	}
	rows, commits := bufio.NewScanner(watch.Body), bufio.NewScanner(changes.Body)
	for _, lines := range []*bufio.Scanner{rows, commits} {
		if lines.Scan(); !strings.HasPrefix(lines.Text(), "id: ") || !strings.HasSuffix(lines.Text(), "-1") {
			t.Errorf("a stream begins with %q", lines.Text())
		}
	}
	s.Put("/a/y", `"<b>"`)
	if got := event(t, rows); !strings.HasPrefix(got, "rows ") || !strings.HasSuffix(got, `"rows":[{"key":"y","type":"string","value":"\"<b>\""}]}`) {
		t.Errorf("the watch is told %s", got)
	}
	if got := event(t, commits); !strings.HasSuffix(got, `"patch":false,"set":[{"path":"/a/y","value":"\"<b>\"","cut":false,"bytes":5}],"more":false}`) {
		t.Errorf("the changes are %s", got)
	}
	find := bufio.NewScanner(s.do(t.Context(), "POST", "/find", `{"under":"/","text":"B"}`).Body)
	if got, want := event(t, find), `hit {"path":"/a/y","value":"\"<b>\""}`; got != want {
		t.Errorf("a search tells %s, want %s", got, want)
	}
	if got, want := event(t, find), `end {"complete":true}`; got != want {
		t.Errorf("a search ends with %s, want %s", got, want)
	}
}

// TestRefusals: bad requests are answered with their status, before any stream begins.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.Put("/", `{"a":1,"b":2}`)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/watch", `{}`, 400},
		{"POST", "/watch", `{"locations":[{"path":"/"}]} {}`, 400},
		{"POST", "/watch", `{"locations":[{"path":"/","more":1}]}`, 400},
		{"POST", "/watch", strings.Repeat(" ", 2<<20), 413},
		{"GET", "/changes?under=/a$", ``, 400},
		{"GET", "/denials?since=x", ``, 400},
		{"POST", "/find", `{"text":""}`, 400},
		{"POST", "/copy", `{"from":"/a","to":"/b"}`, 409},
		{"POST", "/copy", `{"from":"/a","to":"/c","etag":"x"}`, 412},
		{"POST", "/copy", `{"from":"/none","to":"/c"}`, 404},
		{"POST", "/copy", `{"from":"/a","to":"/c","move":true}`, 200},
		{"POST", "/exports", `{"path":"/a$"}`, 400},
		{"GET", rowshttp.ExportsPath + "none", ``, 404},
	} {
		answer := s.do(t.Context(), c.method, c.path, c.body)
		if text := s.text(answer); answer.StatusCode != c.status || c.status != 200 && !strings.Contains(text, `"error"`) {
			t.Errorf("%s %s %.60s = %d %s, want %d", c.method, c.path, c.body, answer.StatusCode, text, c.status)
		}
	}
}

// TestExports: a download is exact, comes once, within a minute, and while its session stands.
func TestExports(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	long := strings.Repeat("x", 200_000)
	s.Put("/a b", `{"l":"`+long+`","n":{".value":9007199254740993,".priority":1}}`)
	ask := func(gzip string) string {
		answer := s.do(t.Context(), "POST", "/exports", `{"path":"/a b","gzip":`+gzip+`}`)
		var got struct{ URL string }
		if err := json.Unmarshal([]byte(s.text(answer)), &got); err != nil || answer.StatusCode != http.StatusCreated {
			t.Fatal(answer.StatusCode, err)
		}
		return got.URL
	}
	for _, zip := range []string{"false", "true"} {
		url := ask(zip)
		answer := s.do(t.Context(), "GET", url, "")
		text := s.text(answer)
		if zip == "true" {
			r, err := gzip.NewReader(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			var plain bytes.Buffer
			if _, err := plain.ReadFrom(r); err != nil {
				t.Fatal(err)
			}
			text = plain.String()
		}
		if text != s.Export("/a b") || !strings.HasPrefix(answer.Header.Get("Content-Disposition"), `attachment; filename="a b.json`) {
			t.Errorf("a download is %.100s with %v", text, answer.Header)
		}
		if again := s.do(t.Context(), "GET", url, ""); again.StatusCode != http.StatusNotFound {
			t.Errorf("a second download is %d", again.StatusCode)
		}
	}
	late := ask("false")
	s.ahead.Store(61)
	if answer := s.do(t.Context(), "GET", late, ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a late download is %d", answer.StatusCode)
	}
	ended := ask("false")
	s.handlers.EndSession("me")
	if answer := s.do(t.Context(), "GET", ended, ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a download of a session that has ended is %d", answer.StatusCode)
	}
	for range 8 {
		ask("false")
	}
	if answer := s.do(t.Context(), "POST", "/exports", `{"path":"/"}`); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one download too many is %d", answer.StatusCode)
	}
}

// admitAll is for a session that does not end.
func admitAll(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) bool {
	next(w, r)
	return true
}

// A slowClient takes each piece within the time that it has, and so a large download in hours.
type slowClient struct {
	http.ResponseWriter
	stand *stand
	took  int
}

func (c *slowClient) Write(p []byte) (int, error) {
	c.stand.ahead.Add(9)
	c.took += len(p)
	return len(p), nil
}

// Flush implements http.Flusher.
func (c *slowClient) Flush() {}

// TestSlowDownloads: who takes a download at less than a certain rate does not get all of it.
func TestSlowDownloads(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var members []string
	for i := range 40 {
		members = append(members, fmt.Sprintf(`"k%d":"%s"`, i, strings.Repeat("x", 60_000)))
	}
	s.Put("/", "{"+strings.Join(members, ",")+"}")
	var made struct{ URL string }
	if err := json.Unmarshal([]byte(s.text(s.do(t.Context(), "POST", "/exports", `{"path":"/"}`))), &made); err != nil {
		t.Fatal(err)
	}
	client := &slowClient{ResponseWriter: httptest.NewRecorder(), stand: s}
	r := httptest.NewRequest("GET", made.URL, nil)
	r.SetPathValue("token", strings.TrimPrefix(made.URL, rowshttp.ExportsPath))
	func() {
		defer func() {
			if cause := recover(); cause != http.ErrAbortHandler { //nolint:errorlint // it is what was panicked with
				t.Errorf("a slow download ends with %v, want it cut", cause)
			}
		}()
		s.handlers.Download(client, r)
	}()
	if client.took < 100_000 || client.took > 1_000_000 {
		t.Errorf("a slow client was sent %d bytes of 2.4 million", client.took)
	}
}

// TestExportsAreShared: downloads of a database's sessions leave the operator some.
func TestExportsAreShared(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	ask := func(who shares.Who) int {
		w := httptest.NewRecorder()
		s.handlers.Export(w, httptest.NewRequest("POST", "/", strings.NewReader(`{"path":"/"}`)), s.Database, who, admitAll)
		return w.Code
	}
	got := map[string]int{}
	for i := range 100 {
		if ask(shares.Who{Session: fmt.Sprint(i), Group: "shop"}) == http.StatusCreated {
			got["shop"]++
		}
	}
	for i := range 100 {
		for _, group := range []string{"shop", "bank", "blog", "news"} {
			if ask(shares.Who{Session: fmt.Sprint(i), Group: group}) == http.StatusCreated {
				got[group]++
			}
		}
	}
	if got["shop"] != 16 || got["shop"]+got["bank"]+got["blog"]+got["news"] != 48 {
		t.Errorf("downloads of databases: %v, want at most 16 each and 48 in all", got)
	}
	if code := ask(shares.Who{Session: "operator"}); code != http.StatusCreated {
		t.Errorf("the operator's download is answered %d", code)
	}
}
