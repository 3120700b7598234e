package rest_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/outbox"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// A profiled server has operations that the test records itself.
type profiled struct {
	*streaming
	operations *rest.Operations
}

func serveOperations(t *testing.T, opts outbox.Options) *profiled {
	t.Helper()
	db, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := auth.New(auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &profiled{&streaming{t: t}, rest.NewOperations()}
	s.catalog = catalog.New(db, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, db.LastMillis()),
		Verifier: verifier, Deadline: patience})
	for _, name := range []string{"other", "default"} {
		if s.database, err = s.catalog.Create(name); err == nil {
			err = s.database.SetSecrets(t.Context(), secret)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	beUnhurried(&opts)
	s.streams = outbox.New(opts)
	s.secure = httptest.NewUnstartedServer(rest.New(rest.Options{Catalog: s.catalog, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Hosts: hosts.Hosts{DefaultDatabase: "default"}, MaxBody: 1 << 20, MaxBodies: 4 << 20, Streams: s.streams, Operations: s.operations}))
	s.secure.EnableHTTP2 = true
	s.secure.StartTLS()
	t.Cleanup(func() {
		s.streams.Close(t.Context())
		s.secure.Close()
		s.catalog.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

const profileTarget = "/.settings/profile.json?auth=" + secret

// operation is what a test looks at of an event.
type operation struct {
	Path []string `json:"path"`
}

// operation returns the next one that is told.
func (c *listening) operation() operation {
	c.t.Helper()
	frame, err := c.frame()
	if err != nil {
		c.t.Fatal(err)
	}
	event, data, _ := strings.Cut(frame, "\n")
	text, isData := strings.CutPrefix(data, "data: ")
	var o operation
	if event != "event: log" || !isData || json.Unmarshal([]byte(text), &o) != nil {
		c.t.Fatalf("the stream has %q, want an operation", frame)
	}
	return o
}

func TestOperationFrame(t *testing.T) {
	t.Parallel()
	s := serveOperations(t, outbox.Options{})
	start := time.UnixMilli(1_700_000_000_123)
	for _, protocol := range []string{"http/1.1", "h2"} {
		c := s.listen(protocol, profileTarget)
		s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationRead, Path: `/rooms/a "b".json`,
			Bytes: 7, Start: start, Duration: 1500 * time.Microsecond})
		s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationWrite, Path: "/.json", Start: start, Denied: true})
		s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationRead, Path: "/users", Index: "age/years", Start: start})
		s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationListen, Path: "/users", Index: ".value", Start: start})
		c.want(
			"event: log\n"+`data: {"name":"rest-read","path":["rooms","a \"b\""],"bytes":7,"millis":1.500,"pendingTime":0,"timestamp":1700000000123,"allowed":true}`,
			"event: log\n"+`data: {"name":"rest-write","path":[],"bytes":0,"millis":0.000,"pendingTime":0,"timestamp":1700000000123,"allowed":false}`,
			"event: log\n"+`data: {"name":"rest-read","path":["users"],"bytes":0,"millis":0.000,"pendingTime":0,"timestamp":1700000000123,"allowed":true,"unIndexed":true,"querySet":[{"index":{"path":["age","years"]}}]}`,
			"event: log\n"+`data: {"name":"listener-listen","path":["users"],"bytes":0,"millis":0.000,"pendingTime":0,"timestamp":1700000000123,"allowed":true,"unIndexed":true,"querySet":[{"index":{}}]}`,
		)
	}
}

func TestOperationsOfAnotherDatabaseAreNotTold(t *testing.T) {
	t.Parallel()
	s := serveOperations(t, outbox.Options{})
	mine, also := s.listen("http/1.1", profileTarget), s.listen("h2", profileTarget)
	other := s.listen("http/1.1", profileTarget+"&ns=other")
	s.operations.Record(rest.Operation{Database: "other", Name: rest.OperationRead, Path: "/theirs.json"})
	s.operations.Record(rest.Operation{Database: "nobody", Name: rest.OperationRead, Path: "/nobodys.json"})
	s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationUpdate, Path: "/ours.json"})
	for c, want := range map[*listening]string{mine: "ours", also: "ours", other: "theirs"} {
		if o := c.operation(); len(o.Path) != 1 || o.Path[0] != want {
			t.Errorf("a stream is told of %q, want %q", o.Path, want)
		}
	}
}

// TestOperationsBehindADrop: who was the operator of a database is not told what is
// done with another that gets its name.
func TestOperationsBehindADrop(t *testing.T) {
	t.Parallel()
	s := serveOperations(t, outbox.Options{})
	c := s.listen("http/1.1", profileTarget)
	s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationRead, Path: "/ours.json"})
	c.operation()
	if err := s.catalog.Drop("default"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.catalog.Create("default"); err != nil {
		t.Fatal(err)
	}
	s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationRead, Path: "/theirs.json"})
	c.want("event: auth_revoked\n" + `data: "credential is no longer valid"`)
	c.wantEnd()
}

func TestOperationsAreForTheOperator(t *testing.T) {
	t.Parallel()
	s := serveOperations(t, outbox.Options{MaxStreams: 1})
	front := &server{s.secure, t, nil}
	const stream = "Accept: text/event-stream"
	for _, c := range []struct{ line, want string }{
		{"GET /.settings/profile.json", "403 " + errorBody("Permission denied")},
		{"GET /.settings/profile.json?auth=x", "401 " + errorBody("Could not parse auth token.")},
		{"GET " + profileTarget + "&auth_variable_override=null", "403 " + errorBody("Permission denied")},
		{"PUT " + profileTarget + " 1", "405 " + errorBody("the stream of operations knows GET")},
		{"GET " + profileTarget + "&orderBy=\"$key\"", "400 " + errorBody(`unknown parameter \"orderBy\"`)},
	} {
		if got, _ := front.do(c.line, stream); got != c.want {
			t.Errorf("%s is answered %s, want %s", c.line, got, c.want)
		}
	}
	if got, _ := front.do("GET " + profileTarget); got != "400 "+errorBody("profile is a stream: send Accept: text/event-stream") {
		t.Errorf("without Accept it is answered %s", got)
	}
	// It is a stream like others: counted, and bounded in number.
	s.listen("h2", profileTarget)
	if got, header := front.do("GET "+profileTarget, stream); !strings.HasPrefix(got, "503 ") || header.Get("Retry-After") == "" {
		t.Errorf("one stream too many is answered %s", got)
	}
}

func TestOperationsEndWithTheSecret(t *testing.T) {
	t.Parallel()
	s := serveOperations(t, outbox.Options{KeepAlive: 20 * time.Millisecond})
	c := s.listen("http/1.1", profileTarget)
	s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationRead, Path: "/before.json"})
	if err := s.database.SetSecrets(context.Background(), "another secret, which is long enough"); err != nil {
		t.Fatal(err)
	}
	s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationRead, Path: "/behind.json"})
	// What came before may have been on its way. Nothing may come behind the end.
	for {
		frame, err := c.frame()
		switch {
		case err != nil:
			t.Fatalf("the stream ended with %v, want auth_revoked", err)
		case strings.HasPrefix(frame, "event: auth_revoked\n"):
			c.wantEnd()
			s.awaitOpen(0)
			return
		case strings.Contains(frame, "behind"):
			t.Fatalf("a revoked secret is told %q", frame)
		}
	}
}

// TestOperationsEndWithTheSecretUnasked: no operation has to come for it.
func TestOperationsEndWithTheSecretUnasked(t *testing.T) {
	t.Parallel()
	s := serveOperations(t, outbox.Options{KeepAlive: 20 * time.Millisecond})
	c := s.listen("h2", profileTarget)
	if err := s.database.SetSecrets(t.Context(), "another secret, which is long enough"); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := c.frame()
		if err != nil {
			t.Fatalf("the stream ended with %v, want auth_revoked", err)
		}
		if strings.HasPrefix(frame, "event: auth_revoked\n") {
			break
		}
	}
	c.wantEnd()
}

// TestOperationsAreBounded: a client that takes nothing misses some, and is told
// again what comes when it does.
func TestOperationsAreBounded(t *testing.T) {
	t.Parallel()
	s := serveOperations(t, outbox.Options{})
	c := s.listen("http/1.1", profileTarget)
	const count, size = 2000, 16 << 10 // 32 MiB, more than is kept and in the connection
	long := strings.Repeat("x", size)
	for i := range count {
		s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationRead, Path: fmt.Sprintf("/%d/%s.json", i, long)})
	}
	told := make(chan int, 1)
	go func() {
		defer close(told)
		for n := 0; ; n++ {
			frame, err := c.frame()
			switch {
			case err != nil:
				return
			case strings.Contains(frame, `["end"]`):
				told <- n
				return
			}
		}
	}()
	await(t, "the client to be told again", func() bool {
		s.operations.Record(rest.Operation{Database: "default", Name: rest.OperationRead, Path: "/end.json"})
		return len(told) > 0
	})
	if n := <-told; n >= count {
		t.Errorf("all %d operations were kept for a client that takes nothing", n)
	}
}

func TestOperationsThatNobodyProfilesCostNothing(t *testing.T) {
	operations := rest.NewOperations()
	o := rest.Operation{Database: "default", Name: rest.OperationRead, Path: "/a.json"}
	if n := testing.AllocsPerRun(100, func() { operations.Record(o) }); n != 0 {
		t.Errorf("recording without a profile allocates %g times", n)
	}
}
