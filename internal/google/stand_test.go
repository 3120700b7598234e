package google_test

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/enginetest"
	"github.com/livetree/livetree/internal/google"
	"github.com/livetree/livetree/internal/hosts"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

const secret = "0123456789012345678901234567890123456789"

// A server has the endpoints and the databases default, which is open, and closed
// behind real HTTPS.
type server struct {
	*httptest.Server
	t         testing.TB
	databases *catalog.Catalog
}

// serve starts a server that is called by hosts, or runs for trying out.
func serve(t testing.TB, hosts hosts.Hosts, dev bool) *server {
	t.Helper()
	s, err := store.Open("data", store.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := auth.New(auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	databases := catalog.New(s, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, s.LastMillis()), Verifier: verifier, Deadline: enginetest.Unhurried})
	for name, rules := range map[string]string{"default": state.OpenRules, "closed": state.ClosedRules} {
		d, err := databases.Create(name)
		if err == nil {
			err = d.SetSecrets(t.Context(), secret)
		}
		if err == nil {
			_, err = d.SetRules(t.Context(), rules)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	hosts.DefaultDatabase = "default"
	logger := slog.New(slog.DiscardHandler)
	opts := rest.Options{
		Catalog: databases, Hosts: hosts, Logger: logger, Now: time.Now, Dev: dev, MaxBody: 1 << 20, MaxBodies: 4 << 20,
		Endpoint: google.New(google.Options{Catalog: databases, Hosts: hosts, Creates: dev, Logger: logger, Now: time.Now}),
	}
	if dev {
		opts.Create = func(_ context.Context, name string) (*engine.Database, error) { return databases.Create(name) }
	}
	srv := httptest.NewUnstartedServer(rest.New(opts))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(func() {
		srv.Close()
		databases.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &server{srv, t, databases}
}

// do sends a request, given as "METHOD /target body" and headers, and returns
// the answer as "status body".
func (s *server) do(line string, headers ...string) (string, http.Header) {
	s.t.Helper()
	method, rest, _ := strings.Cut(line, " ")
	target, body, _ := strings.Cut(rest, " ")
	req, err := http.NewRequest(method, s.URL+target, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	answer, err := s.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(answer.Status[:3] + " " + string(text)), answer.Header
}

// expect sends requests, with headers on lines of their own, and compares their
// answers.
func (s *server) expect(pairs ...string) {
	s.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		lines := strings.Split(pairs[i], "\n")
		if got, _ := s.do(lines[0], lines[1:]...); got != pairs[i+1] {
			s.t.Errorf("%s\n got %s\nwant %s", lines[0], got, pairs[i+1])
		}
	}
}

func errorBody(text string) string { return "{\n  \"error\" : \"" + text + "\"\n}" }
