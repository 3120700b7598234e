package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/client"
)

// steps collects what a migration tells, and lets a test wait for it.
type steps struct {
	mu   sync.Mutex
	told []client.MigrationEvent
	more chan struct{}
}

func newSteps() *steps { return &steps{more: make(chan struct{}, 1)} }

func (s *steps) tell(e client.MigrationEvent) {
	s.mu.Lock()
	s.told = append(s.told, e)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default: // a migration goes on, also when nobody waits any more
	}
}

func (s *steps) count(step string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.told {
		if e.Step == step {
			n++
		}
	}
	return n
}

// wait waits until a step was told so many times.
func (s *steps) wait(t *testing.T, step string, times int, ended <-chan error) {
	t.Helper()
	timeout := time.After(8 * time.Minute) // a machine may be busy, but tests have ten
	for s.count(step) < times {
		select {
		case <-s.more:
		case err := <-ended:
			t.Fatalf("the migration ends with %v before it says %q; it said %+v", err, step, s.told)
		case <-timeout:
			t.Fatalf("the migration does not say %q; it said %+v", step, s.told)
		}
	}
}

// expectEnd waits until the migration ends with an error, without advice to begin again, which would delete the target.
func (s *steps) expectEnd(t *testing.T, want error, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, want) || strings.Contains(err.Error(), "--replace") {
			t.Errorf("the migration ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("the migration goes on; it said %+v", s.told)
	}
}

// waitEqual waits until both sides are equal when it is said, for so many times or
// more, that they are: while somebody writes slowly, it is also said in between.
func (s *steps) waitEqual(t *testing.T, from, to *client.Client, times int, ended <-chan error) {
	t.Helper()
	want := exported(t, from, "/")
	for ; ; times++ {
		s.wait(t, "verified", times, ended)
		if exported(t, to, "/") == want {
			return
		}
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	source, target := startServer(t, "127.0.0.1:0"), startServer(t, "127.0.0.1:0")
	from, to := source.client(t), target.client(t)
	put(t, from, "/", rooms(20000)) // more than one request can carry
	told := newSteps()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- client.Migration{From: from, To: to, Path: "/", Quiet: 10 * time.Millisecond, Tell: told.tell}.Run(ctx)
	}()
	// Writers go on while the first copy is made.
	told.wait(t, "copying", 1, ended)
	for i := range 50 {
		put(t, from, fmt.Sprintf("live/k%d", i), fmt.Sprintf(`{".value":%d,".priority":%d}`, i, i))
	}
	patch(t, from, "rooms/room000001", `{"seats":null,"topic":"new","a/b":[1,{"c":2}]}`)
	put(t, from, "rooms/room000002", "null")
	told.waitEqual(t, from, to, 1, ended)

	for _, change := range []func(){
		func() { patch(t, from, "/", `{"live/k1":null,"version":4}`) },
		func() { put(t, from, "live/k7/.priority", `"first"`) },
		func() { put(t, from, "rooms/.priority", `2`) }, // too large to be sent again
	} {
		verified := told.count("verified")
		change()
		told.waitEqual(t, from, to, verified+1, ended)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the migration that is interrupted when it is verified: %v", err)
	}
}

func patch(t *testing.T, c *client.Client, path, body string) {
	t.Helper()
	at, err := client.Location(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Bytes(t.Context(), client.Request{Method: http.MethodPatch, Path: at, Body: strings.NewReader(body)}); err != nil {
		t.Fatalf("PATCH %s: %v", path, err)
	}
}

func TestMigrateOnceAndRefusals(t *testing.T) {
	t.Parallel()
	source, target := startServer(t, "127.0.0.1:0"), startServer(t, "127.0.0.1:0")
	from, to := source.client(t), target.client(t)
	put(t, from, "/a", `{"x":1,".priority":2}`)
	put(t, to, "/a", `{"y":1}`)
	put(t, to, "/b", `1`)
	m := client.Migration{From: from, To: to, Path: "/a", Once: true, Quiet: time.Millisecond}
	err := m.Run(t.Context())
	if _, ok := errors.AsType[*client.UsageError](err); !ok || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("a migration to where there is data: %v", err)
	}
	m.Replace = true
	no := errors.New("no")
	m.Confirm = func() error { return no }
	if err := m.Run(t.Context()); !errors.Is(err, no) {
		t.Errorf("a migration that is not confirmed: %v", err)
	}
	m.Confirm = nil
	if err := m.Run(t.Context()); err != nil {
		t.Fatalf("migration: %v", err)
	}
	if got, want := exported(t, to, "/"), `{"a":{".priority":2,"x":1},"b":1}`; got != want {
		t.Errorf("the target holds %s, want %s", got, want)
	}
	stranger, err := client.New(client.Options{URL: source.url, CA: source.ca})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	m.From = stranger
	if err := m.Run(t.Context()); client.ExitCode(err) != client.ExitDenied {
		t.Errorf("a migration from where one may not read: %v", err)
	}
}

// TestMigrateOntoItself: it would delete what it reads, or copy its own copies.
func TestMigrateOntoItself(t *testing.T) {
	t.Parallel()
	server := startServer(t, "127.0.0.1:0")
	from := server.client(t)
	put(t, from, "/a", `1`)
	to, err := client.New(client.Options{URL: strings.Replace(server.url, "127.0.0.1", "localhost", 1), Auth: secret, CA: server.ca})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	err = client.Migration{From: from, To: to, Path: "/", Once: true, Replace: true, Quiet: time.Millisecond}.Run(t.Context())
	if _, ok := errors.AsType[*client.UsageError](err); !ok || !strings.Contains(err.Error(), "the same database") {
		t.Errorf("a migration onto itself: %v", err)
	}
}

// TestMigrateThatEnds: a source that refuses to go on in the middle leaves a copy
// that is not whole, which is said.
func TestMigrateThatEnds(t *testing.T) {
	t.Parallel()
	source := plainServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "text/event-stream" {
			http.Error(w, `{"error":"Permission denied"}`, http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: put\ndata: {\"path\":\"/\",\"data\":1}\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	from, err := client.New(client.Options{URL: source, Source: true, Auth: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to := startServer(t, "127.0.0.1:0").client(t)
	err = client.Migration{From: from, To: to, Path: "/", Once: true, Quiet: time.Millisecond}.Run(t.Context())
	if client.ExitCode(err) != client.ExitDenied || !strings.Contains(err.Error(), "the source answered 403") ||
		!strings.Contains(err.Error(), "run the command again with --replace") {
		t.Errorf("a migration whose source refuses: %v", err)
	}
	if hint := client.Hint(err); !strings.Contains(hint, "LIVETREE_FROM_AUTH") {
		t.Errorf("its hint is %q", hint)
	}
}

// TestMigrateNoticesDifferences: somebody writes to the target.
func TestMigrateNoticesDifferences(t *testing.T) {
	t.Parallel()
	source, target := startServer(t, "127.0.0.1:0"), startServer(t, "127.0.0.1:0")
	from, to := source.client(t), target.client(t)
	put(t, from, "/", `{"a":1,"b":{"c":2}}`)
	told := newSteps()
	m := client.Migration{From: from, To: to, Path: "/", Once: true, Quiet: time.Millisecond, Tell: func(e client.MigrationEvent) {
		told.tell(e)
		if e.Step == "verifying" {
			put(t, to, "/b/d", "3")
		}
	}}
	if err := m.Run(t.Context()); !errors.Is(err, client.ErrDiffers) || !strings.Contains(err.Error(), "/b") {
		t.Errorf("a migration to a target that others write to: %v", err)
	}
	if told.count("differs") == 0 || told.count("verified") != 0 {
		t.Errorf("the migration says %+v", told.told)
	}
}

// TestMigrateAfterUsersMoved: a source that tells all again when a connection breaks does not take back what users have
// written to the target since both sides were equal.
func TestMigrateAfterUsersMoved(t *testing.T) {
	t.Parallel()
	breaks := make(chan struct{})
	source := plainServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "text/event-stream" {
			_, _ = w.Write([]byte(`{"a":1}`))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: put\ndata: {\"path\":\"/\",\"data\":{\"a\":1}}\n\n"))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-breaks:
		case <-r.Context().Done():
		}
	}))
	from, err := client.New(client.Options{URL: source, Source: true, Auth: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to := startServer(t, "127.0.0.1:0").client(t)
	told, ended := newSteps(), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		ended <- client.Migration{From: from, To: to, Path: "/", Quiet: time.Millisecond, Tell: told.tell}.Run(ctx)
	}()
	told.wait(t, "verified", 1, ended)
	breakStream := func() {
		select {
		case breaks <- struct{}{}:
		case err := <-ended:
			t.Fatalf("the migration ends with %v", err)
		}
	}
	breakStream() // nobody has moved: it goes on
	told.wait(t, "verified", 2, ended)
	put(t, to, "/b", "2")
	breakStream()
	told.expectEnd(t, client.ErrMoved, ended)
	if got, want := exported(t, to, "/"), `{"a":1,"b":2}`; got != want {
		t.Errorf("the target holds %s, want %s", got, want)
	}
}

// TestMigrateToRulesThatExpire copies children that the rules of the target delete at once: no copy of them can be equal.
func TestMigrateToRulesThatExpire(t *testing.T) {
	t.Parallel()
	source, target := startServer(t, "127.0.0.1:0"), startServer(t, "127.0.0.1:0")
	from, direct := source.client(t), target.client(t)
	to := clientOf(t, plainServer(t, sweptFirst(t, target)))
	put(t, from, "/sessions", `{"over":{"until":1000},"lasts":{"until":99999999999999}}`)
	rules := strings.NewReader(`{"rules":{"sessions":{".expireOn":"until"}}}`)
	if _, err := direct.Bytes(t.Context(), client.Request{Method: http.MethodPut, Path: "/.settings/rules.json", Body: rules}); err != nil {
		t.Fatal(err)
	}
	told := newSteps()
	err := client.Migration{From: from, To: to, Path: "/", Quiet: 10 * time.Millisecond, Once: true, Tell: told.tell}.Run(t.Context())
	if !errors.Is(err, client.ErrDiffers) || !strings.Contains(err.Error(), "/sessions") || !strings.Contains(err.Error(), ".expireOn") {
		t.Errorf("the migration ends with %v", err)
	}
	if s := told.told[len(told.told)-2]; s.Text != "/sessions differs and is copied again" {
		t.Errorf("the last but one thing that is told is %+v", s)
	}
}

// sweptFirst returns a proxy before a server that answers reads only when the server has deleted /sessions/over, or never does.
func sweptFirst(t *testing.T, i *instance) http.Handler {
	forward, direct := newFlaky(t, i, 1<<30), i.client(t)
	late := time.Now().Add(time.Minute)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Method == http.MethodGet && time.Now().Before(late) {
			gone, err := direct.IsEmpty(r.Context(), "/sessions/over")
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			if gone {
				break
			}
			time.Sleep(time.Millisecond) //nolint:forbidigo // the server deletes it in its own time
		}
		forward.ServeHTTP(w, r)
	})
}
