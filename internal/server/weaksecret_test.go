package server

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
	"github.com/livetree/livetree/internal/catalog"
	"github.com/livetree/livetree/internal/engine"
	"github.com/livetree/livetree/internal/state"
	"github.com/livetree/livetree/internal/store"
)

// TestWeakSecret: a secret that is too short is refused where it would be new. One
// that an older version has stored works, and is warned of.
func TestWeakSecret(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	refused := func(secret string) {
		t.Helper()
		err := Run(t.Context(), Config{
			Data: data, Addr: ownHost() + ":0", DefaultDatabase: "default", Secret: secret, Logger: slog.New(slog.DiscardHandler), Out: &lockedBuffer{},
		})
		if !errors.Is(err, auth.ErrSecret) || strings.Contains(err.Error(), secret) {
			t.Errorf("a start with LIVETREE_SECRET=%s: %v, want that it is refused without telling it", secret, err)
		}
	}
	refused("swordfish")
	refused("sword fish of the seven seas")

	m := startManaged(t, data, nil)
	m.want(400, "POST", "/v1/databases/default/secrets", `{"value":"swordfish"}`)
	m.stop()
	storeSecret(t, data, "swordfish")

	refused("trout")
	for _, secret := range []string{"swordfish", ""} {
		m := startManaged(t, data, func(c *Config) { c.Secret = secret })
		m.wantData(200, "GET", "/.json", "swordfish", "")
		if _, r := m.readiness(); !r.Ready || !strings.Contains(states(r), "secrets=weak(warn)") {
			t.Errorf("/readyz says %s, want a warning", states(r))
		}
		if log := m.log.String(); !strings.Contains(log, "short enough to be guessed") || strings.Contains(log, "swordfish") {
			t.Errorf("the log does not warn, or tells the secret:\n%s", log)
		}
		m.stop()
	}
}

// storeSecret gives the default database of a data directory a secret that no
// version of today would take.
func storeSecret(t *testing.T, data, secret string) {
	t.Helper()
	s, err := store.Open(data, store.Options{BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(s, engine.Options{Clock: state.NewClock(time.Now, rand.Reader, s.LastMillis())})
	database, err := c.Database("default")
	if err == nil {
		err = database.SetSecrets(t.Context(), secret)
	}
	c.Close()
	if err = errors.Join(err, s.Close(), os.Remove(filepath.Join(data, "secrets", "default"))); err != nil {
		t.Fatal(err)
	}
}
