package server

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/livetree/livetree/internal/auth"
)

// TestSecretsAreRotatedByTheirFile: two secrets are valid at once while clients
// move over, and one that is taken away is refused at once, with its tokens.
func TestSecretsAreRotatedByTheirFile(t *testing.T) {
	t.Parallel()
	c := newCatalog(t)
	f := &founder{Catalog: c, secretsDir: t.TempDir()}
	database, err := f.found(t.Context(), "db", "")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	keeper := newSecretKeeper(f, slog.New(slog.NewTextHandler(&log, nil)))
	text, err := os.ReadFile(f.secretFile("db"))
	if err != nil {
		t.Fatal(err)
	}
	first := strings.TrimSpace(string(text))
	second := strings.Repeat("second", 7)
	token, err := auth.Mint(first, auth.Claims{Data: map[string]any{"uid": "ann"}})
	if err != nil {
		t.Fatal(err)
	}
	written := time.Now()
	for _, step := range []struct {
		file          string
		first, second bool
	}{
		{first + "\n", true, false},
		{first + "\n" + second + "\n", true, true},
		{"", true, true},                   // in the middle of being written
		{second + "\nshort\n", true, true}, // likewise
		{second + "\n", false, true},       // the old one is taken away
		{"two words in it\n", false, true}, // a mistake
		{first + "\r\n\r\n", true, false},  // and back again
	} {
		if err := os.WriteFile(f.secretFile("db"), []byte(step.file), 0o600); err != nil {
			t.Fatal(err)
		}
		written = written.Add(time.Second) // file systems have coarse clocks
		if err := os.Chtimes(f.secretFile("db"), written, written); err != nil {
			t.Fatal(err)
		}
		keeper.look(t.Context())
		for credential, want := range map[string]bool{first: step.first, token: step.first, second: step.second} {
			if _, err := database.Identify(t.Context(), credential); (err == nil) != want {
				t.Errorf("with the file %q a credential gives %v, want it accepted: %v", step.file, err, want)
			}
		}
	}
	if strings.Contains(log.String(), first) || strings.Contains(log.String(), second) {
		t.Error("the log holds a secret")
	}
	// Files of no database, and what is no file, are left alone.
	if err := os.Mkdir(filepath.Join(f.secretsDir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if n := keeper.look(t.Context()); n != 2 {
		t.Errorf("there are %d files", n)
	}
}

// TestSecretsAreTriedAgain: a file whose secrets the database could not take is applied as soon as it
// can, though it is as it was: a secret that was taken away must not stay good. The log says so once.
func TestSecretsAreTriedAgain(t *testing.T) {
	t.Parallel()
	f := &founder{Catalog: newCatalog(t), secretsDir: t.TempDir()}
	database, err := f.found(t.Context(), "db", "")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	keeper := newSecretKeeper(f, slog.New(slog.NewTextHandler(&log, nil)))
	second := strings.Repeat("second", 7)
	write := func(text string) {
		if err := os.WriteFile(f.secretFile("db"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := func() int { return strings.Count(log.String(), "is not applied") }
	write(second + "\n")
	broken, cancel := context.WithCancel(t.Context())
	cancel() // nothing is written
	keeper.look(broken)
	keeper.look(broken)
	if database.HasSecret(second) || said() != 1 {
		t.Fatalf("the database has the secret: %v; the log says %d times that it has not, want once", database.HasSecret(second), said())
	}
	keeper.look(t.Context())
	if !database.HasTheseSecrets([]string{second}) {
		t.Error("the file is not tried again when the database takes secrets")
	}
	// What is wrong with the file itself is said once, until that changes.
	write("two words in it\n")
	for range 3 {
		keeper.look(t.Context())
	}
	if said() != 2 {
		t.Errorf("the log says %d times that a file is not applied, want twice", said())
	}
	// It may be good later though it looks as it did, as one that could not be read for a moment.
	third := strings.Repeat("third", 9)
	write("two words" + strings.Repeat(" ", len(third)-9))
	keeper.look(t.Context())
	info, err := os.Stat(f.secretFile("db"))
	if err != nil {
		t.Fatal(err)
	}
	write(third)
	if err := os.Chtimes(f.secretFile("db"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	keeper.look(t.Context())
	if !database.HasTheseSecrets([]string{third}) {
		t.Error("a file that could not be read is not tried again")
	}
}

// TestSecretThatIsNotUsed: a secret of the environment that differs from those of the
// database opens nothing, and the operator who has changed it is told.
func TestSecretThatIsNotUsed(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("first", 8), strings.Repeat("second", 7)
	const warning = "LIVETREE_SECRET is not used"
	data := t.TempDir()
	for _, step := range []struct {
		secret string
		warned bool
	}{{first, false}, {first, false}, {second, true}, {"", false}} {
		m := startManaged(t, data, func(c *Config) { c.Secret = step.secret })
		m.wantData(200, "GET", "/.json", first, "")
		m.stop()
		if log := m.log.String(); strings.Contains(log, warning) != step.warned || strings.Contains(log, second) {
			t.Errorf("with the secret %.6s… the log is %s", step.secret, log)
		}
	}
}
