package rest_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/state"
)

// resume opens a stream that goes on behind an id, over plain HTTP.
func (s *streaming) resume(target, id string) *listening {
	s.t.Helper()
	conn, err := s.dial("plain")
	if err != nil {
		s.t.Fatal(err)
	}
	c := &listening{Reader: bufio.NewReader(conn), t: s.t, conn: conn, close: func() { _ = conn.Close() }}
	s.t.Cleanup(c.close)
	if _, err := fmt.Fprintf(conn, "GET %s?resume=true HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nLast-Event-ID: %s\r\n\r\n", target, id); err != nil {
		s.t.Fatal(err)
	}
	for !strings.HasSuffix(c.head, "\r\n\r\n") {
		line, err := c.ReadString('\n')
		if c.head += line; err != nil {
			s.t.Fatalf("the head of a stream: %v after %q", err, c.head)
		}
	}
	return c
}

// splitID takes the id off a frame.
func splitID(t testing.TB, frame string) (id, rest string) {
	t.Helper()
	line, rest, _ := strings.Cut(frame, "\n")
	id, ok := strings.CutPrefix(line, "id: ")
	if !ok {
		t.Fatalf("the frame %q has no id", frame)
	}
	return id, rest
}

// TestResumeInAnotherDatabase: positions of one database mean nothing in another,
// least of all in one that was made under the name of one that was dropped.
func TestResumeInAnotherDatabase(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{})
	s.write("/a", `{"old":1}`)
	frame, err := s.resume("/a.json", "").frame()
	if err != nil {
		t.Fatal(err)
	}
	id, first := splitID(t, frame)
	if want := put("/", `{"old":1}`); first != want {
		t.Fatalf("the first event is %q, want %q", first, want)
	}
	if err := s.catalog.Drop("default"); err != nil {
		t.Fatal(err)
	}
	if s.database, err = s.catalog.Create("default"); err == nil {
		_, err = s.database.SetRules(t.Context(), state.OpenRules)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		s.write("/a/new", fmt.Sprint(i))
	}
	if frame, err = s.resume("/a.json", id).frame(); err != nil {
		t.Fatal(err)
	}
	if _, got := splitID(t, frame); got != put("/", `{"new":9}`) {
		t.Errorf("behind an id of the database that was dropped comes %q, want all that is there", got)
	}
}

// TestForgedResume: a client that makes up an id is not told what was overwritten
// before the time opened the location for it.
func TestForgedResume(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, outbox.Options{})
	opens := time.Now().Add(time.Second).UnixMilli()
	document := fmt.Sprintf(`{"rules": {".write": true, "open": {".read": true}, "a": {".read": "now > %d"}}}`, opens)
	if _, err := s.database.SetRules(t.Context(), document); err != nil {
		t.Fatal(err)
	}
	s.write("/open", "1")
	s.write("/a", `"hidden"`)
	s.write("/a", `"shown"`)
	id := s.firstID("/open.json")
	epoch, text, _ := strings.Cut(id, "-")
	last, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("the id %q: %v", id, err)
	}
	await(t, "the time to open the location", func() bool { return s.allows("/a.json") })
	for position := range last {
		forged := fmt.Sprintf("%s-%d", epoch, position)
		frame, err := s.resume("/a.json", forged).frame()
		if err != nil {
			t.Fatal(err)
		}
		if _, got := splitID(t, frame); got != put("/", `"shown"`) {
			t.Errorf("after the forged id %s comes %q, want what is there", forged, got)
		}
	}
}

// firstID returns the id of the first event of a stream.
func (s *streaming) firstID(target string) string {
	s.t.Helper()
	frame, err := s.resume(target, "").frame()
	if err != nil {
		s.t.Fatal(err)
	}
	id, _ := splitID(s.t, frame)
	return id
}

// allows reports whether everybody may read a location now.
func (s *streaming) allows(target string) bool {
	s.t.Helper()
	answer, err := s.plain.Client().Get(s.plain.URL + target)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
