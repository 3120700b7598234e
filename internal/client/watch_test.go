package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/client"
)

// A streamer answers each connection with the next of its scripts and then ends
// it. It notes the requests.
type streamer struct {
	mu       sync.Mutex
	scripts  []func(w http.ResponseWriter, r *http.Request)
	requests []string
}

func (s *streamer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, fmt.Sprintf("%s resume=%s last=%s auth=%s", r.URL.Path, r.URL.Query().Get("resume"), r.Header.Get("Last-Event-ID"), r.Header.Get("Authorization")))
	if len(s.scripts) == 0 {
		s.mu.Unlock()
		<-r.Context().Done()
		return
	}
	script := s.scripts[0]
	s.scripts = s.scripts[1:]
	s.mu.Unlock()
	script(w, r)
}

func (s *streamer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// stream sends a text as a stream.
func stream(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = w.Write([]byte(text))
	}
}

func status(code int, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, code) }
}

func putEvent(data, id string) string {
	if id != "" {
		id = "id: " + id + "\n"
	}
	return "event: put\n" + id + `data: {"path":"/","data":` + data + "}\n\n"
}

// watch runs a watch against a streamer until it has seen want events or ends.
func watch(t *testing.T, url string, want int) (string, error) {
	t.Helper()
	c, err := client.New(client.Options{URL: url, Auth: "correct-horse"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var events []client.Event
	err = c.Watch(ctx, client.Watch{Path: "a"}, func(e client.Event) error {
		if events = append(events, e); len(events) == want {
			cancel()
		}
		return nil
	})
	return printed(events), err
}

func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	s := &streamer{scripts: []func(http.ResponseWriter, *http.Request){
		stream(putEvent("1", "7-1") + putEvent("2", "7-2") + "event: put\ndata: {\"pa"),
		status(http.StatusServiceUnavailable, "busy"),
		status(http.StatusBadGateway, "starting"),
		stream(putEvent("3", "7-3")),
		stream("event: keep-alive\ndata: null\n\n" + putEvent("4", "")),
	}}
	server := httptest.NewServer(s)
	defer server.Close()
	got, err := watch(t, server.URL, 5)
	want := "put / 1 id=7-1\nput / 2 id=7-2\nput / 3 id=7-3\nkeep-alive  null\nput / 4\n"
	if got != want || !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ends with %v after\n%swant\n%s", err, got, want)
	}
	for i, last := range []string{"", "7-2", "7-2", "7-2", "7-3"} {
		if want, got := "/a.json resume=true last="+last+" auth=Bearer correct-horse", s.seen()[i]; got != want {
			t.Errorf("request %d is %q, want %q", i, got, want)
		}
	}
}

// TestWatchFollowsRedirects: at the same server, and to no other, which would get
// the secret.
func TestWatchFollowsRedirects(t *testing.T) {
	t.Parallel()
	second := &streamer{scripts: []func(http.ResponseWriter, *http.Request){stream(putEvent("1", "")), stream(putEvent("1", ""))}}
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("moved") == "" {
			http.Redirect(w, r, r.URL.String()+"&moved=1", http.StatusTemporaryRedirect)
			return
		}
		second.ServeHTTP(w, r)
	}))
	defer moved.Close()
	if got, err := watch(t, moved.URL, 1); got != "put / 1\n" {
		t.Errorf("the watch ends with %v after %q", err, got)
	}
	if got := second.seen()[0]; got != "/a.json resume=true last= auth=Bearer correct-horse" {
		t.Errorf("the request that was redirected is %q", got)
	}

	other := httptest.NewServer(second)
	defer other.Close()
	for _, to := range []string{other.URL + "/a.json", "http://db.example.com/a.json", "https://db.example.com/a.json", "//[::1]:1/a.json"} {
		away := httptest.NewServer(http.RedirectHandler(to, http.StatusTemporaryRedirect))
		_, err := watch(t, away.URL, 1)
		away.Close()
		if err == nil || !strings.Contains(err.Error(), "where the secret is not sent") {
			t.Errorf("a redirect to %s: %v", to, err)
		}
	}
	if n := len(second.seen()); n != 1 {
		t.Errorf("the other server got %d requests, want none", n-1)
	}
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		scripts []func(http.ResponseWriter, *http.Request)
		want    string
		code    int
	}{
		{"cancel", []func(http.ResponseWriter, *http.Request){stream(putEvent("1", "") + "event: cancel\ndata: null\n\n")}, "no longer allow", client.ExitDenied},
		{"revoked", []func(http.ResponseWriter, *http.Request){stream("event: auth_revoked\ndata: credential is no longer valid\n\n")}, "credential is no longer valid", client.ExitDenied},
		{"denied", []func(http.ResponseWriter, *http.Request){status(403, `{"error":"Permission denied"}`)}, "403: Permission denied", client.ExitDenied},
		{"denied later", []func(http.ResponseWriter, *http.Request){stream(putEvent("1", "")), status(403, `{"error":"Permission denied"}`)}, "403: Permission denied", client.ExitDenied},
		{"no stream", []func(http.ResponseWriter, *http.Request){func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }}, "does not stream", client.ExitData},
		{"malformed", []func(http.ResponseWriter, *http.Request){stream("event: put\ndata: {}\n\n")}, "no path", client.ExitData},
	}
	for _, test := range tests {
		s := &streamer{scripts: test.scripts}
		server := httptest.NewServer(s)
		_, err := watch(t, server.URL, 99)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), test.want) || client.ExitCode(err) != test.code {
			t.Errorf("%s: the watch ends with %v and exit code %d, want %q and %d", test.name, err, client.ExitCode(err), test.want, test.code)
		}
	}
}

// TestWatchWithoutResume: a server that does not know the parameter is asked
// without it.
func TestWatchWithoutResume(t *testing.T) {
	t.Parallel()
	s := &streamer{scripts: []func(http.ResponseWriter, *http.Request){status(400, "unknown parameter resume"), stream(putEvent("1", ""))}}
	server := httptest.NewServer(s)
	defer server.Close()
	if got, err := watch(t, server.URL, 1); got != "put / 1\n" || s.seen()[1] != "/a.json resume= last= auth=Bearer correct-horse" {
		t.Errorf("the watch ends with %v after %q; requests %q", err, got, s.seen())
	}
}
