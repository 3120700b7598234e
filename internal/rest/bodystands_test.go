package rest_test

import (
	"context"
	"crypto/rand"
	"io"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/rest"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// A turning is a reader that does something before it ends.
type turning func()

func (do turning) Read([]byte) (int, error) {
	do()
	return 0, io.EOF
}

// A revoking is a server whose secret can be taken away, and whose clock can be set, in the middle of a body.
type revoking struct {
	*server
	handler  *rest.Handler
	database *engine.Database
	ahead    atomic.Int64 // of the clock by which credentials are verified
}

func serveRevoking(t *testing.T) *revoking {
	t.Helper()
	r := &revoking{}
	now := func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }
	var opts rest.Options
	r.server = serveOver(t, func(s *store.Store) *catalog.Catalog {
		verifier, err := auth.New(auth.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		c := catalog.New(s, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, s.LastMillis()), Verifier: verifier, Deadline: patience})
		if r.database, err = c.Database("default"); err != nil {
			t.Fatal(err)
		}
		return c
	}, func(o *rest.Options) {
		o.Now = now
		opts = *o
	})
	r.handler = rest.New(opts)
	return r
}

// send answers a request whose body ends when something was done.
func (s *revoking) send(method, target, body string, do func()) string {
	content := io.MultiReader(strings.NewReader(body), turning(do))
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, "https://localhost"+target, content)
	r.ContentLength = -1
	s.handler.ServeHTTP(w, r)
	return w.Result().Status[:3]
}

// TestCredentialEndsInTheBody: a body may take hours. What it brings is not written if the
// credential of the request was taken away, or has expired, before it had come.
func TestCredentialEndsInTheBody(t *testing.T) {
	t.Parallel()
	s := serveRevoking(t)
	mint := func(c auth.Claims) string {
		token, err := auth.Mint(secret, c)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	ann := map[string]any{"uid": "ann"}
	lasting, short := mint(auth.Claims{Data: ann}), mint(auth.Claims{Data: ann, Expires: time.Now().Add(time.Hour)})
	setSecret := func(secret string) func() {
		return func() {
			if err := s.database.SetSecrets(context.Background(), secret); err != nil {
				t.Error(err)
			}
		}
	}
	taken := setSecret("another secret, which is long enough")
	expired := func() { s.ahead.Store(int64(time.Hour)) }
	override := "&auth_variable_override=%7B%22uid%22:%22ann%22%7D"
	for _, c := range []struct {
		name, method, target, body string
		do                         func()
	}{
		{"a secret that is taken away", "PUT", "/a.json?auth=" + secret, "1", taken},
		{"one that asks as somebody else", "PUT", "/a.json?auth=" + secret + override, "1", taken},
		{"one with a PATCH", "PATCH", "/a.json?auth=" + secret, `{"b":1}`, taken},
		{"one with a POST", "POST", "/a.json?auth=" + secret, "1", taken},
		{"one with rules", "PUT", "/.settings/rules.json?auth=" + secret, `{"rules":{}}`, taken},
		{"one with an option", "PUT", "/.settings/dialect.json?auth=" + secret, `"firebase"`, taken},
		{"a token whose secret is taken away", "PUT", "/a.json?auth=" + lasting, "1", taken},
		{"a token that expires", "PUT", "/a.json?auth=" + short, "1", expired},
	} {
		if got := s.send(c.method, c.target, c.body, c.do); got != "401" {
			t.Errorf("%s is answered %s, want 401", c.name, got)
		}
		s.ahead.Store(0)
		setSecret(secret)()
	}
	s.expect("GET /.json", "200 null", "GET /.settings/rules.json?auth="+secret, "200 "+strings.TrimSpace(state.OpenRules), "GET /.settings/dialect.json?auth="+secret, `200 "spec"`)

	// What stays good stays good, whatever else changes meanwhile.
	other := func() {
		if err := s.database.SetSecrets(context.Background(), secret, "another secret, which is long enough"); err != nil {
			t.Error(err)
		}
	}
	for _, target := range []string{"/b.json", "/b.json?auth=" + secret, "/b.json?auth=" + secret + override, "/b.json?auth=" + lasting, "/b.json?auth=" + short} {
		if got := s.send("PUT", target, "2", other); got != "200" {
			t.Errorf("PUT %.20s, whose credential is good at its end, is answered %s, want 200", target, got)
		}
		setSecret(secret)()
	}
}
